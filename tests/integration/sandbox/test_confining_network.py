"""Connections open to a confined tree: Podium's listeners for it, and nothing else."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podium.core.errors import NotPossibleNow
from podium.core.processes import Confinement
from podium.sandbox import ProcessLauncher
from podium.sandbox.confining import landlock, seccomp
from podium.sandbox.confining.canary import BUBBLEWRAP, Mechanism
from podium.sandbox.confining.preparation import ports_inside, proxy_port
from podium.sandbox.confining.upstream import proxy_env
from tests.integration.sandbox.confined import Place, achieved, launcher_by

HELLO = """
def ask(port):
    with socket.create_connection(("127.0.0.1", port), 5) as line:
        line.sendall(b"hello\\n")
        return line.makefile().readline()
"""


class Recorder:
    """Serves every listener by saying which one it is."""

    refused_hosts = ("elsewhere.example",)

    def __init__(self) -> None:
        self.closed = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._sockets: list[socket.socket] = []

    def __call__(
        self,
        confinement: Confinement,
        proxy: socket.socket | None,
        by_port: dict[int, socket.socket],
    ) -> Recorder:
        if proxy is not None:
            self._serve("proxy", proxy)
        for port, listener in by_port.items():
            self._serve(str(port), listener)
        return self

    def _serve(self, name: str, listener: socket.socket) -> None:
        self._sockets.append(listener)
        self._tasks.append(asyncio.create_task(self._answer(name, listener)))

    async def _answer(self, name: str, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            line, _ = await loop.sock_accept(listener)
            with line:
                await loop.sock_sendall(line, f"I am {name}\n".encode())

    def close(self) -> None:
        self.closed += 1
        for task in self._tasks:
            task.cancel()
        for listener in self._sockets:
            listener.close()


@asynccontextmanager
async def server() -> AsyncIterator[int]:
    """A program of the user that says who it is."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"I am outside\n")
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


async def test_listeners_of_a_tree_are_served_from_outside(
    mechanism: Mechanism, place: Place
) -> None:
    if mechanism.name != BUBBLEWRAP:
        pytest.skip("has no network of its own")
    recorder = Recorder()
    launcher = launcher_by(mechanism, serve=recorder)
    confinement = place.confinement(network="listed", forwarded_ports=(8001, 8002))
    code = HELLO + "done = [ask(3128), ask(8001), ask(8002), os.environ['HTTPS_PROXY']]"
    ended = await launcher.run(place.attempts(code, confinement=confinement))
    answers = ["I am proxy\n", "I am 8001\n", "I am 8002\n", "http://127.0.0.1:3128"]
    assert achieved(ended) == answers
    assert ended.refused_hosts == ("elsewhere.example",)
    assert recorder.closed == 1


async def test_a_tree_without_a_network_of_its_own_reaches_its_ports_on_this_machine_alone(
    mechanism: Mechanism, place: Place
) -> None:
    if mechanism.name == BUBBLEWRAP:
        pytest.skip("has a network of its own")
    launcher = launcher_by(mechanism, serve=Recorder())
    async with server() as allowed, server() as other:
        confinement = place.confinement(network="listed", forwarded_ports=(allowed,))
        code = (
            HELLO
            + """
proxy = int(os.environ["HTTPS_PROXY"].rpartition(":")[2])
allowed, other = map(int, sys.argv[3:5])
attempt("other", lambda: ask(other))
done += [ask(proxy), ask(allowed)]
"""
        )
        spawn = place.attempts(code, str(allowed), str(other), confinement=confinement)
        ended = await launcher.run(spawn)
    assert achieved(ended) == ["I am proxy\n", "I am outside\n"]


async def test_a_tree_reaches_the_servers_it_starts_itself(
    launcher: ProcessLauncher, place: Place
) -> None:
    code = """
import threading
server = socket.create_server(("127.0.0.1", 0))
def answer():
    line, _ = server.accept()
    line.sendall(b"own")
    line.close()
threading.Thread(target=answer).start()
port = str(server.getsockname()[1])
ask = f"import socket; print(socket.create_connection(('127.0.0.1', {port})).recv(9).decode())"
done.append(subprocess.run([sys.executable, "-IS", "-c", ask], capture_output=True, text=True).stdout)
"""
    assert achieved(await launcher.run(place.attempts(code))) == ["own\n"]


async def test_an_open_network_is_the_machines_own(launcher: ProcessLauncher, place: Place) -> None:
    async with server() as port:
        confinement = place.confinement(network="open")
        code = HELLO + "done.append(ask(int(sys.argv[3])))"
        ended = await launcher.run(place.attempts(code, str(port), confinement=confinement))
    assert achieved(ended) == ["I am outside\n"]


ABSTRACT = """
def connect(address, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as line:
        line.connect(address)
attempt("abstract", lambda: connect("\\0" + sys.argv[3]))
attempt("abstract datagram", lambda: connect("\\0" + sys.argv[3], socket.SOCK_DGRAM))
attempt("hidden", lambda: connect(outside + "/socket"))
attempt("hidden by proc", lambda: connect("/proc/self/../.." + outside + "/socket"))
os.chdir(given)
with socket.socket(socket.AF_UNIX) as own:
    own.bind("own")
    own.listen()
    connect("own")
    connect(given + "/own")
with socket.socket() as tcp:
    tcp.settimeout(None)
    tcp.connect(("127.0.0.1", int(sys.argv[4])))
"""


@pytest.mark.parametrize("scopes", [True, False], ids=["scoped", "judged"])
async def test_an_open_network_does_not_open_sockets_beside_it(
    launcher: ProcessLauncher,
    mechanism: Mechanism,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    scopes: bool,
) -> None:
    if not scopes:
        if mechanism.name != BUBBLEWRAP:
            pytest.skip("rests on scopes")
        # As on a kernel that has none, which this one need not be.
        monkeypatch.setattr(landlock, "has_scopes", lambda: False)
    abstract = f"podium-open-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as by_name, socket.socket(socket.AF_UNIX) as by_file:
        by_name.bind("\0" + abstract)
        by_name.listen()
        by_file.bind(str(place.outside / "socket"))
        by_file.listen()
        async with server() as port:
            confinement = place.confinement(network="open")
            spawn = place.attempts(ABSTRACT, abstract, str(port), confinement=confinement)
            assert achieved(await launcher.run(spawn)) == []


async def test_a_launcher_that_serves_nobody_says_so(
    launcher: ProcessLauncher, place: Place
) -> None:
    confinement = place.confinement(network="model-only")
    with pytest.raises(NotPossibleNow, match="needs a proxy"):
        await launcher.run(place.sh("true", confinement=confinement))


def test_the_proxy_keeps_out_of_the_way_of_forwarded_ports() -> None:
    confinement = Confinement(kind="kernel", network="listed", forwarded_ports=(3128, 80))
    assert proxy_port(confinement) == 3129
    assert ports_inside(confinement) == [3129, 3128, 80]
    assert proxy_env(3129)["https_proxy"] == "http://127.0.0.1:3129"


def test_an_open_network_needs_no_listeners() -> None:
    assert ports_inside(Confinement(kind="kernel", network="open", forwarded_ports=(80,))) == []


def test_datagrams_are_never_left_to_a_judgement_of_connects() -> None:
    judged = [rule.call for rule in seccomp.mounted(judged_sockets=True)]
    assert {"socketpair", "sendto", "sendmsg", "sendmmsg", "connect"} <= set(judged)
