"""A server that outlives its supervisor, comes up once, and departs without a trace."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podium.agents.tui import Program
from podium.agents.tui.control import ServerGone, quoted
from podium.core.errors import BadInput, NotPossibleNow
from podium.sandbox import end_orphans
from podium.testing import retry_until, retry_until_blocking
from tests.integration.agents.tui.tmux_harness import Harness, a_server, housed, is_gone
from tests.unit.sandbox.trees import ROOT, alive, new_token


async def test_coming_up_again_finds_the_same_server(harness: Harness) -> None:
    first = await harness.server.identity()
    assert await harness.server.come_up() == first
    another = a_server(harness.root)
    assert await another.come_up() == first
    await another.close()


async def test_two_podiums_that_come_up_at_once_share_one_server(root: Path) -> None:
    servers = [a_server(root) for _ in range(3)]
    lives = await asyncio.gather(*(server.come_up() for server in servers))
    assert len(set(lives)) == 1
    for server in servers:
        await server.close()
    await servers[0].departing()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")
async def test_departing_leaves_no_process_not_even_one_that_ignores_its_terminals_end(
    root: Path,
) -> None:
    token = new_token()
    deaf = f"trap '' HUP TERM; setsid sh -c 'trap \"\" HUP TERM; sleep 1000; : {token}' & sleep 1000; : {token}"
    async with housed(root) as harness:
        life = await harness.server.identity()
        await harness.panes.open(Program(name="deaf", argv=("sh", "-c", deaf), cwd=root))
        await retry_until(lambda: len(alive(token)) == 2)
    assert alive(token) == []
    assert is_gone(life.pid)
    assert sorted(path.name for path in root.iterdir()) == []


async def test_departing_without_a_server_is_harmless(root: Path) -> None:
    await a_server(root).departing()
    assert list(root.iterdir()) == []


async def test_new_server_at_the_same_socket_is_distinguished_from_the_first(root: Path) -> None:
    """Pane ids begin at %0 again, so they say nothing by themselves."""
    async with housed(root) as harness:
        first = await harness.server.identity()
        pane = await harness.open("composer")
    async with housed(root) as harness:
        assert await harness.server.identity() != first
        assert await harness.open("composer") == pane


@pytest.mark.soak
async def test_a_server_comes_up_right_after_another_was_ended_in_its_place(root: Path) -> None:
    """tmux 3.3a refuses newcomers while it ends."""
    server = a_server(root)
    lives = set()
    for _ in range(8):
        lives.add(await server.come_up())
        subprocess.run(["tmux", "-S", str(root / "s"), "kill-server"], check=True)
    assert len(lives) == 8
    await server.departing()


async def test_a_killed_supervisor_leaves_the_server_and_no_client(root: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(root)], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert supervisor.stdout is not None
    pid, client = map(int, supervisor.stdout.readline().split())
    supervisor.kill()
    supervisor.communicate()
    retry_until_blocking(lambda: is_gone(client))
    end_orphans()
    async with housed(root) as harness:
        assert (await harness.server.identity()).pid == pid


SUPERVISOR = """
import asyncio, sys
from pathlib import Path
from tests.integration.agents.tui.tmux_harness import a_server
async def main():
    server = a_server(Path(sys.argv[1]))
    life = await server.come_up()
    (client,) = await server.control.ask("list-clients -F '#{client_pid}'")
    print(life.pid, client, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_clients_that_are_ended_while_they_attach_do_not_hurt_the_server(
    harness: Harness,
) -> None:
    """tmux 3.3a crashes when one of them is killed instead."""
    life = await harness.server.identity()
    for pause in range(10):
        other = a_server(harness.root)
        asking = asyncio.ensure_future(other.control.ask("list-panes"))
        await asyncio.sleep(pause / 1000)
        asking.cancel()
        await asyncio.wait({asking})
        await other.close()
    assert await harness.server.identity() == life


async def test_the_server_keeps_no_record_of_commands(harness: Harness) -> None:
    """It would hold the last thousand of them, with every message and variable."""
    await harness.control.run(f"set -g @x {quoted('s3cret words')}")
    assert not [line for line in await harness.control.ask("show-messages") if "s3cret" in line]


async def test_a_small_terminal_that_attaches_does_not_shrink_the_panes(harness: Harness) -> None:
    pane = await harness.open("composer")
    await harness.panes.resize(120, 40)
    manager, terminal = pty.openpty()
    os.set_blocking(manager, False)
    attached = subprocess.Popen(
        ["tmux", "-S", str(harness.root / "s"), "attach"],
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        env={"TERM": "xterm", "PATH": os.environ["PATH"]},
    )  # fmt: skip

    async def is_there() -> bool:
        return len(await harness.control.ask("list-clients")) == 2

    await retry_until(is_there)
    screen = await harness.shows(pane, ">")
    assert (screen.columns, screen.rows) == (120, 40)
    attached.send_signal(signal.SIGTERM)
    attached.wait()
    os.close(manager)
    os.close(terminal)


async def test_a_server_that_somebody_else_started_is_neither_used_nor_ended(root: Path) -> None:
    theirs = ["tmux", "-S", str(root / "s"), "-f", "/dev/null"]
    subprocess.run([*theirs, "new-session", "-d", "-s", "main", "sleep 1000"], check=True)
    options = subprocess.check_output([*theirs, "show-options", "-g"])
    server = a_server(root)
    with pytest.raises(NotPossibleNow, match="did not start"):
        await server.come_up()
    with pytest.raises(NotPossibleNow, match="did not start"):
        await server.departing()
    assert subprocess.check_output([*theirs, "show-options", "-g"]) == options
    subprocess.run([*theirs, "kill-server"], check=True)


@pytest.mark.parametrize("place", ["socket", "folder"])
async def test_a_place_that_is_open_to_others_is_refused(root: Path, place: str) -> None:
    shared = root / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(BadInput, match="accessible to other users"):
        await a_server(root, **{place: shared / "s" if place == "socket" else shared}).come_up()


async def test_a_socket_whose_path_is_too_long_is_refused_in_words(root: Path) -> None:
    with pytest.raises(BadInput, match="choose a shorter folder"):
        await a_server(root, socket=root / ("x" * 120)).come_up()


async def test_server_crash_is_reported_afterwards(harness: Harness) -> None:
    life = await harness.server.identity()
    os.kill(life.pid, signal.SIGKILL)
    retry_until_blocking(lambda: is_gone(life.pid))
    await harness.server.close()
    with pytest.raises(ServerGone):
        await harness.server.identity()
    assert await harness.server.come_up() != life
