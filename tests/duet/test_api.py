"""The pairs of a project through the typed API, beside the command line."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from podium.domain.errors import CallRefused
from podium.domain.terminals import KeysPressed, Terminal
from podium.rpc import RemoteTerminals, reach, serve
from podium.testing import retry_until
from podium.wiring.configuration import load_configuration
from podium.wiring.duet_api import api_socket, terminals_of_project
from podium.wiring.podium import open_podium
from tests.cli.desk import Desk
from tests.duet.stage import Hall
from tests.duet.terminals import Theatre, theatre
from tests.rpc.papers import authority, certificates

PLANNER = Terminal(side="PLANNER")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Theatre]:
    with theatre(Desk(tmp_path)) as stage:
        yield stage


@asynccontextmanager
async def served(stage: Theatre) -> AsyncIterator[RemoteTerminals]:
    environ = {**stage.desk.environ, **stage.variables, "XDG_RUNTIME_DIR": str(stage.short)}
    configuration = load_configuration(environ, project=stage.desk.project)
    async with open_podium(configuration, environ) as podium:
        socket = api_socket(podium)
        assert stage.short in socket.parents
        async with serve(terminals_of_project(podium, environ), socket), reach(socket) as terminals:
            yield terminals


async def test_a_pair_of_the_command_line_is_the_same_pair_by_the_api(stage: Theatre) -> None:
    async with served(stage) as terminals:
        with pytest.raises(CallRefused, match="nobody has granted"):
            await terminals.start("main")
        up = stage.duet("up", "--grant", "--json")
        assert up.code == 0, up.err

        states = await terminals.start("main")

        assert [each.pane for each in states] == [each["pane"] for each in up.json["sides"]]
        await terminals.send_keys(KeysPressed(terminal=PLANNER, keys=("hello",)))

        async def is_typed() -> bool:
            return "hello" in "\n".join((await terminals.capture(PLANNER, whole=False)).lines)

        await retry_until(is_typed, seconds=60)
        before = states[0].pid
        assert (await terminals.resume(PLANNER)).pid not in (0, before)


def papers(ca: Path, name: str) -> str:
    """A folder as `--papers` wants it."""
    made, folder = certificates(ca, name), ca.parent / f"papers-{name}"
    folder.mkdir()
    made.key.rename(folder / "key.pem")
    made.certificate.rename(folder / "certificate.pem")
    (folder / "authority.pem").write_bytes(ca.read_bytes())
    return str(folder)


@contextmanager
def serving(stage: Theatre, *arguments: str) -> Iterator[list[str]]:
    """`podium duet serve` in a process of its own, and where it serves."""
    started = subprocess.Popen(
        stage.desk.command("duet", "serve", *arguments, "--json"),
        cwd=stage.desk.project,
        env={**stage.desk.environ, **stage.variables},
        stdout=subprocess.PIPE,
    )
    assert started.stdout is not None
    try:
        yield json.loads(started.stdout.readline())["at"]
    finally:
        started.send_signal(signal.SIGINT)
        started.stdout.close()
        assert started.wait(60) == 130


def test_a_daemon_serves_the_command_line_here_and_over_tls(stage: Theatre, tmp_path: Path) -> None:
    assert stage.duet("up", "--grant").code == 0
    ca = authority(tmp_path / "ca")
    server, client = papers(ca, "server"), papers(ca, "client")
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
    assert "both ends show certificates" in bare.err
    assert stage.duet("screen", "planner", "--at", socket).code == 1, "it is gone"
    assert stage.duet("keys", "user", "x").code == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("keys", "planner", ""), "keys ''"),
        (("keys", "planner", "x", "--pair", "a b"), "pair 'a b'"),
        (("keys", "planner", "x" * 20_000), "at most 10000"),
        (("screen", "planner", "--pair", "a b"), "pair 'a b'"),
        (("watch", "--pair", "a b"), "pair 'a b'"),
    ],
)
def test_options_that_do_not_fit_are_the_persons_to_put_right(
    hall: Hall, arguments: tuple[str, ...], told: str
) -> None:
    refused = hall.duet(*arguments)
    assert refused.code == 2
    assert told in refused.err
    assert "put it right" in refused.err
