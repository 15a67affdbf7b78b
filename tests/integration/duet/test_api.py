"""The pairs of a project through the typed API, beside the command line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

import podium.jobs.duet
from podium.app.app import Podium, open_podium
from podium.config.configuration import load_configuration
from podium.core.errors import BadInput, CallRefused, NeedsHuman
from podium.core.terminals import KeysPressed, Terminal
from podium.jobs.duet.project_terminals import api_socket, settings_digest, terminals_of_project
from podium.rpc import Greeting, RemoteTerminals, reach, serve
from podium.testing import MemoryTerminals, retry_until
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.duet.duet_harness import Hall
from tests.integration.duet.terminals import Terminals, duet_terminals
from tests.integration.rpc.certificates import authority, certificates

PLANNER = Terminal(side="PLANNER")


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminals]:
    with duet_terminals(CommandRunner(tmp_path, capsys)) as stage:
        yield stage


@asynccontextmanager
async def pretending(
    stage: Terminals, behind: MemoryTerminals, greeting: Greeting | None = None
) -> AsyncIterator[None]:
    """A fake where the daemon of the project would serve, which says that it is of the same kind unless told otherwise."""
    environ = {**stage.cli.environ, **stage.variables, "XDG_RUNTIME_DIR": str(stage.short)}
    configuration = load_configuration(environ, project=stage.cli.project)
    async with open_podium(configuration, environ) as podium:
        same = Greeting(settings=settings_digest(podium))
        async with serve(behind, api_socket(podium), greeting or same):
            yield


@asynccontextmanager
async def served(stage: Terminals) -> AsyncIterator[RemoteTerminals]:
    environ = {**stage.cli.environ, **stage.variables, "XDG_RUNTIME_DIR": str(stage.short)}
    configuration = load_configuration(environ, project=stage.cli.project)
    async with open_podium(configuration, environ) as podium:
        socket = api_socket(podium)
        assert stage.short in socket.parents
        async with serve(terminals_of_project(podium, environ), socket), reach(socket) as terminals:
            yield terminals


@pytest.mark.soak
async def test_a_pair_of_the_command_line_is_the_same_pair_by_the_api(stage: Terminals) -> None:
    async with served(stage) as terminals:
        with pytest.raises(CallRefused, match="is not granted"):
            await terminals.start("main")
        # Beside this loop, which serves it.
        up = await asyncio.to_thread(stage.spawned, "up", "--grant", "--json")
        assert up.code == 0, up.err

        states = await terminals.start("main")

        assert [state.pane for state in states] == [side["pane"] for side in up.json["sides"]]
        await terminals.send_keys(KeysPressed(terminal=PLANNER, keys=("hello",)))

        async def is_typed() -> bool:
            return "hello" in "\n".join((await terminals.capture(PLANNER, whole=False)).lines)

        await retry_until(is_typed, seconds=60)
        before = states[0].pid
        assert (await terminals.resume(PLANNER)).pid not in (0, before)


def certificate(ca: Path, name: str) -> str:
    """A folder as `--papers` wants it."""
    made, folder = certificates(ca, name), ca.parent / f"papers-{name}"
    folder.mkdir()
    made.key.rename(folder / "key.pem")
    made.certificate.rename(folder / "certificate.pem")
    (folder / "authority.pem").write_bytes(ca.read_bytes())
    return str(folder)


@contextmanager
def serving(stage: Terminals, *arguments: str) -> Iterator[list[str]]:
    """`podium duet serve` in a process of its own, and where it serves."""
    started = subprocess.Popen(
        stage.cli.command("duet", "serve", *arguments, "--json"),
        cwd=stage.cli.project,
        env={**stage.cli.environ, **stage.variables},
        stdout=subprocess.PIPE,
    )
    assert started.stdout is not None
    try:
        yield json.loads(started.stdout.readline())["at"]
    finally:
        started.send_signal(signal.SIGINT)
        started.stdout.close()
        assert started.wait(60) == 130


def test_a_daemon_serves_the_command_line_here_and_over_tls(
    stage: Terminals, tmp_path: Path
) -> None:
    assert stage.duet("up", "--grant").code == 0
    ca = authority(tmp_path / "ca")
    server, client = certificate(ca, "server"), certificate(ca, "client")
    assert stage.duet("keys", "planner", "one").code == 0, "without a daemon"
    with serving(stage, "--listen", "127.0.0.1:0", "--papers", server) as (socket, address):
        assert stage.duet("keys", "planner", "two", "--at", socket).code == 0
        far = stage.duet("keys", "planner", "three", "--at", address, "--papers", client)
        assert far.code == 0, far.err
        shown = stage.duet("screen", "planner").out
        bare = stage.duet("screen", "planner", "--at", address)
        assert stage.duet("serve").code == 7, "two daemons for one project"
    assert "onetwothree" in shown
    assert bare.code == 2
    assert "needs certificates on both ends" in bare.err
    assert stage.duet("screen", "planner", "--at", socket).code == 1, "it is gone"
    assert stage.duet("keys", "user", "x").code == 2


@pytest.mark.soak
def test_a_pair_comes_up_and_is_looked_at_through_the_daemon_and_outlives_it(
    stage: Terminals,
) -> None:
    with serving(stage) as (socket,):
        up = stage.duet("up", "--grant", "--json")
        assert (up.code, up.err) == (0, "")
        through = stage.status()["pairs"]
        Path(socket).unlink()
        assert stage.status()["pairs"] == through, (
            "the daemon and tmux itself tell different things"
        )
    [status] = through
    assert status["sides"] == up.json["sides"]
    assert [side["status"] for side in status["sides"]] == ["ready", "ready"]
    assert stage.status()["pairs"] == through, "it went with the daemon"


@pytest.mark.soak  # a real daemon is asked above
async def test_what_the_command_line_asks_goes_to_the_daemon(stage: Terminals) -> None:
    """A fake behind the socket: nothing else could have told these states."""
    behind = MemoryTerminals()
    async with pretending(stage, behind):
        up = await asyncio.to_thread(stage.spawned, "up", "--grant", "--json")
        assert (up.code, up.err, behind.starts) == (0, "", 1)
        behind.lines.clear()
        result = await asyncio.to_thread(stage.spawned, "status", "--json")
        assert [side["status"] for side in result.json["pairs"][0]["sides"]] == ["down", "down"]
        behind.next_error = NeedsHuman("it asks: trust this folder?")
        asked = await asyncio.to_thread(stage.spawned, "up")
        assert (asked.code, "trust this folder?" in asked.err) == (3, True)
        behind.next_error = BadInput("not so")
        refused = await asyncio.to_thread(stage.spawned, "up", "--session", "other")
        assert (refused.code, "not so" in refused.err) == (2, True)
    left = await asyncio.to_thread(stage.spawned, "status", "--json")
    assert left.json["pairs"][0]["session"] == "main", "what was refused was remembered"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("greeting", "why"),
    [
        (Greeting(version="0.0.1"), "which has version '0.0.1'"),
        (Greeting(settings="others"), "which has other settings"),
    ],
)
async def test_daemon_of_another_kind_is_reported_and_not_used(
    stage: Terminals, greeting: Greeting, why: str
) -> None:
    async with pretending(stage, MemoryTerminals(), greeting):
        result = await asyncio.to_thread(stage.spawned, "status", "--json")
    assert result.code == 0, result.err
    assert why in result.err
    assert "; restart it" in result.err


def test_killed_daemon_is_reported_and_not_missed(stage: Terminals) -> None:
    with serving(stage) as (socket,):
        place = Path(socket)
    place.touch()  # as one that was killed leaves it
    result = stage.duet("status", "--json")
    assert result.code == 0, result.err
    assert "continuing without the daemon" in result.err
    assert [side["status"] for side in result.json["pairs"][0]["sides"]] == ["down", "down"]


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """The path of a socket has at most 100 bytes."""
    with tempfile.TemporaryDirectory(prefix="pd", dir="/tmp") as folder:
        yield Path(folder)


def test_daemon_unreachable_for_lack_of_a_package_is_reported_and_not_used(
    hall: Hall, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall.settings(transport="tui")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    configuration = load_configuration(os.environ, project=hall.cli.project)
    socket = api_socket(Podium(configuration, os.environ))
    socket.parent.mkdir()
    socket.touch()
    # The only way to have it missing where all others need it.
    monkeypatch.delattr(podium.jobs.duet, "daemon", raising=False)
    monkeypatch.setitem(sys.modules, "podium.jobs.duet.daemon", None)

    result = hall.duet("status", "--json")
    far = hall.duet("screen", "planner", "--at", str(socket))

    assert result.code == 0, result.err
    assert "continuing without the daemon" in result.err
    assert "pip install 'podium[duet]'" in result.err
    assert result.json["pairs"][0]["up"] is False
    assert far.code == 1, "only that Podium could have answered"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("keys", "planner", ""), "keys ''"),
        (("keys", "planner", "x", "--pair", "a b"), "pair 'a b'"),
        (("keys", "planner", "x" * 20_000), "at most 10000"),
        (("screen", "planner", "--pair", "a b"), "pair 'a b'"),
        (("watch", "--pair", "a b"), "pair 'a b'"),
    ],
)
def test_options_that_do_not_fit_are_the_persons_to_put_right(
    hall: Hall, arguments: tuple[str, ...], text: str
) -> None:
    refused = hall.duet(*arguments)
    assert refused.code == 2
    assert text in refused.err
