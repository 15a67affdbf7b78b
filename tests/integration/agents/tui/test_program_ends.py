"""The kernel tells that a program ended which somebody else started."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from podium.agents.tui.activity import EndWatch
from tests.integration.agents.tui.rig import House
from tests.integration.agents.tui.test_activity import shell


@pytest.fixture
def program() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as started:
        yield started


async def test_an_end_is_told_once(program: subprocess.Popen[bytes]) -> None:
    ended = asyncio.Event()
    told = Mock(side_effect=ended.set)
    EndWatch(program.pid, told)
    program.kill()
    async with asyncio.timeout(60):
        await ended.wait()
    await asyncio.sleep(0)
    told.assert_called_once_with()


async def test_of_a_program_that_is_gone_the_end_is_told_too() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    ended = asyncio.Event()
    EndWatch(gone.pid, ended.set)
    assert await asyncio.wait_for(ended.wait(), 60)


async def test_after_it_was_stopped_it_tells_nothing(program: subprocess.Popen[bytes]) -> None:
    told: list[str] = []
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    for watch in (
        EndWatch(gone.pid, lambda: told.append("gone")),
        EndWatch(program.pid, lambda: told.append("killed")),
    ):
        watch.stop()
        watch.stop()
    open_files = len(os.listdir("/proc/self/fd"))
    program.kill()
    program.wait()
    for _ in range(3):
        await asyncio.sleep(0)
    assert told == []
    assert len(os.listdir("/proc/self/fd")) == open_files


async def test_where_the_kernel_cannot_be_asked_a_pane_is_followed_all_the_same(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    pane = await shell(house, "exec sleep 1000")
    await house.activity.expect_end(pane)
    with pytest.raises(OSError, match="not implemented"):
        EndWatch(os.getpid(), lambda: None)
