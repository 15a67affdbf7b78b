"""A server that a spawn declares may outlive it; nothing else may."""

from __future__ import annotations

import subprocess
import sys

import pytest

from podium.core.errors import NotPossibleNow
from podium.core.processes import Confinement, ProcessSpec
from podium.sandbox import LauncherSettings, ProcessLauncher, end_left_server, end_orphans
from podium.testing import retry_until_blocking
from tests.unit.sandbox.trees import ESCAPES, ROOT, alive, new_token, python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="whole trees are held on Linux")

QUICK = LauncherSettings(grace_seconds=0.2, linger_seconds=0.02)


def leaving(code: str, token: str) -> ProcessSpec:
    return python(ESCAPES + code, token, leaves_server=token)


async def test_a_declared_server_outlives_the_program_that_started_it() -> None:
    token = new_token()
    ended = await ProcessLauncher(QUICK).run(leaving("escape()", token))
    assert (ended.exit_code, ended.survivors_killed) == (0, 0)
    assert len(alive(token)) == 1
    assert end_left_server(token) == 1
    assert alive(token) == []


async def test_the_same_program_without_the_declaration_loses_its_server() -> None:
    token = new_token()
    ended = await ProcessLauncher(QUICK).run(python(ESCAPES + "escape()", token))
    assert ended.survivors_killed == 1
    assert alive(token) == []


async def test_a_program_that_failed_leaves_no_server() -> None:
    token = new_token()
    ended = await ProcessLauncher(QUICK).run(leaving("escape(); sys.exit(1)", token))
    assert (ended.exit_code, ended.survivors_killed) == (1, 1)
    assert alive(token) == []


async def test_a_program_ended_before_it_was_done_leaves_no_server() -> None:
    token = new_token()
    process = await ProcessLauncher(QUICK).start(leaving("escape(); forever()", token))
    await process.end(grace_seconds=0.0)
    assert alive(token) == []


def test_a_server_outlives_a_killed_podium_and_is_no_orphan() -> None:
    token = new_token()
    podium = subprocess.Popen(
        [sys.executable, "-c", PODIUM, token], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert podium.stdout is not None
    assert podium.stdout.readline() == b"left\n"
    podium.kill()
    podium.communicate()
    end_orphans()
    assert len(alive("T" + token)) == 1
    assert end_left_server("T" + token) == 1
    retry_until_blocking(lambda: alive("T" + token) == [])


PODIUM = f"""
import asyncio, sys
from tests.unit.sandbox.trees import python
from podium.sandbox import ProcessLauncher
async def main():
    token = "T" + sys.argv[1]
    await ProcessLauncher().run(python({(ESCAPES + "escape()")!r}, token, leaves_server=token))
    print("left", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_ending_a_server_reaches_what_it_started_without_an_environment() -> None:
    token = new_token()
    bare = "os.execve(sys.executable, ['python', '-c', 'import time; time.sleep(1000)', sys.argv[1]], {})"
    code = f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {bare}
    forever()
"""
    await ProcessLauncher(QUICK).run(leaving(code, token))
    retry_until_blocking(lambda: len(alive(token)) == 2)
    assert end_left_server(token) == 2
    assert alive(token) == []


@pytest.mark.soak
async def test_one_server_is_ended_and_another_goes_on() -> None:
    one, other = new_token(), new_token()
    for token in (one, other):
        await ProcessLauncher(QUICK).run(leaving("escape()", token))
    end_left_server(one)
    assert (len(alive(one)), len(alive(other))) == (0, 1)
    end_left_server(other)


async def test_a_server_to_be_left_cannot_be_confined() -> None:
    spawn = leaving("escape()", new_token())
    confined = spawn.model_copy(update={"confinement": Confinement(kind="kernel")})
    with pytest.raises(NotPossibleNow, match="cannot be confined"):
        await ProcessLauncher().run(confined)
