"""Reach of a confined program on a terminal, with the Podium that asked for it gone or still running."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import podium
from podium.core.decisions import Effect
from podium.core.processes import Mount, ProcessSpec
from podium.ports import ANY_USE
from podium.sandbox import HookServerSettings, ProcessLauncher, hook_command
from podium.sandbox.confining.canary import BUBBLEWRAP, LANDLOCK, Mechanism
from tests.integration.sandbox.confined import Place, launcher_by, mechanism_here, picture
from tests.integration.sandbox.door_harness import TURN, DoorHarness
from tests.integration.sandbox.terminals import command_of_a_dead_podium, on_terminal
from tests.integration.sandbox.test_hook_client import EVENT
from tests.soaking import in_soak


@pytest.fixture(params=[BUBBLEWRAP, in_soak(LANDLOCK)])
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    """Both are tried in test_on_terminal.py, and attacked on a terminal in tests/attacks."""
    return mechanism_here(request.param)


ASK = """
def ask(port, request):
    with socket.create_connection(("127.0.0.1", port), 60) as line:
        line.sendall(request.encode() + b"\\r\\n\\r\\n")
        return line.makefile("rb").read().decode()
proxy = int(os.environ["HTTP_PROXY"].rpartition(":")[2])
def get(port):
    place = f"127.0.0.1:{port}"
    return ask(proxy, f"GET http://{place}/ HTTP/1.1\\r\\nHost: {place}\\r\\nConnection: close")
"""


@asynccontextmanager
async def host(says: bytes) -> AsyncIterator[int]:
    """A server outside that answers everything so."""

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(says), says))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(met, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def shown(command: tuple[str, ...], code: int = 0) -> str:
    with on_terminal(command) as terminal:
        assert await terminal.exit_code() == code, terminal.text
        return terminal.text


async def test_it_changes_what_it_was_given_and_nothing_else(
    launcher: ProcessLauncher, place: Place
) -> None:
    before = picture(place.outside), picture(place.seen)
    code = """
import fcntl
attempt("make a file outside", lambda: write(outside + "/new"))
attempt("change one", lambda: write(outside + "/file"))
attempt("change what it sees", lambda: write(given + "/../seen/file"))
attempt("change its mode", lambda: os.chmod(given + "/../seen/file", 0o777))
attempt("type into the terminal", lambda: fcntl.ioctl(0, 0x5412, b"x"))
attempt("type into it by its name", lambda: fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x"))
attempt("have a capability", lambda: any(
    int(line.split()[1], 16) for line in open("/proc/self/status") if line.startswith("Cap")))
attempt("end another process", lambda: os.kill(int(sys.argv[3]), 0))
attempt("reach the machine", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[4])), 5))
write(given + "/file")
"""
    async with host(b"hello") as port:
        spawn = place.attempts(code, str(os.getpid()), str(port))
        assert (await shown(await launcher.on_terminal(spawn))).strip() == "[]"
    assert (picture(place.outside), picture(place.seen)) == before
    assert (place.given / "file").read_text() == "as it waschanged"


async def test_its_variables_are_named_ones_and_no_secret_is_on_a_command_line(
    mechanism: Mechanism, place: Place
) -> None:
    launcher = launcher_by(
        mechanism,
        parent_env={"PATH": os.environ["PATH"], "TERM": "of-podium", "OTHER": "of Podium"},
        resolve_secret={"API_KEY": "s3cr3t"}.__getitem__,
    )
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    env = {"KEY": "secret://API_KEY", "COLORTERM": "of-the-spawn"}
    command = await launcher.on_terminal(place.python(code, env=env))
    assert "s3cr3t" not in " ".join(command)
    with on_terminal(command) as terminal:
        assert await terminal.exit_code() == 0, terminal.text
        found = json.loads(terminal.text)
    assert found["KEY"] == "s3cr3t"
    assert (found["TERM"], found["COLORTERM"]) == ("dumb", "of-the-spawn")
    assert not {"OTHER", "PODIUM_TESTS_SECRET", "TMUX"} & set(found)


async def test_listed_hosts_are_reached_without_any_podium_and_others_are_not(
    mechanism: Mechanism, place: Place
) -> None:
    async with host(b"from the listed") as listed, host(b"from the other") as other:
        confinement = place.confinement(network="listed", hosts=(f"127.0.0.1:{listed}",))
        code = ASK + "\nfor port in map(int, sys.argv[3:]): print(get(port))\n"
        code += "attempt('go there without the proxy', lambda: ask(int(sys.argv[4]), 'GET /'))"
        spawn = place.attempts(code, str(listed), str(other), confinement=confinement)
        output = await shown(await _asked(mechanism, spawn))
    assert "from the listed" in output
    assert "403 Forbidden" in output
    assert "from the other" not in output
    assert output.strip().endswith("[]")


@pytest.mark.soak
async def test_a_forwarded_port_leads_out_without_any_podium(
    mechanism: Mechanism, place: Place
) -> None:
    async with host(b"from the model") as port:
        confinement = place.confinement(network="model-only", forwarded_ports=(port,))
        code = ASK + "\nprint(ask(int(sys.argv[3]), 'GET / HTTP/1.1'))"
        spawn = place.attempts(code, str(port), confinement=confinement)
        assert "from the model" in await shown(await _asked(mechanism, spawn))


async def _asked(mechanism: Mechanism, spawn: ProcessSpec) -> tuple[str, ...]:
    return await asyncio.to_thread(command_of_a_dead_podium, mechanism.name, spawn)


HOOK = """
import subprocess
def hook():
    event = sys.argv[3]
    ended = subprocess.run(sys.argv[4:], input=event.encode(), capture_output=True)
    print(ended.returncode, (ended.stdout + ended.stderr).decode().strip(), flush=True)
print("up", flush=True)
for line in sys.stdin:
    if line.strip() == "leave":
        break
    hook()
"""


async def test_a_hook_finds_the_door_of_whichever_turn_is_on(
    launcher: ProcessLauncher, place: Place
) -> None:
    doors = place.seen
    file = doors / "door.json"
    code = Path(podium.__file__).parent
    venv = Path(hook_command()[0]).parents[1]
    mounts = tuple(Mount(source=str(path), target=str(path)) for path in (code, venv))
    harness = DoorHarness(Effect.ALLOW, settings=HookServerSettings(folder=str(doors)))
    spawn = place.attempts(
        HOOK, json.dumps(EVENT), *hook_command(),
        env={"PODIUM_DOOR_FILE": str(file), "PODIUM_DOOR_DEADLINE": "100"},
        confinement=place.confinement(mounts=mounts),
    )  # fmt: skip
    with on_terminal(await launcher.on_terminal(spawn)) as terminal:
        await terminal.shows("up")
        terminal.type(b"ask\r")
        await terminal.shows("2 podium: Permission Denied: no turn is running")
        async with harness.hook_door.open(TURN, agent="cli") as door:
            door.expect(ANY_USE)
            file.write_text(json.dumps(door.hook_env))
            terminal.type(b"ask\r")
            await terminal.shows('"permissionDecision": "allow"')
        terminal.type(b"ask\r")
        await terminal.shows("Podium cannot be reached")
        terminal.type(b"leave\r")
        assert await terminal.exit_code() == 0


async def test_only_sockets_that_are_mounted_can_be_connected_to(
    launcher: ProcessLauncher, place: Place
) -> None:
    code = """
def connect(path):
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
attempt("reach the mounted", lambda: connect(given + "/../seen/socket"))
attempt("reach the other", lambda: connect(outside + "/socket"))
"""
    command = await launcher.on_terminal(place.attempts(code))
    with socket.socket(socket.AF_UNIX) as mounted, socket.socket(socket.AF_UNIX) as other:
        for line, folder in ((mounted, place.seen), (other, place.outside)):
            line.bind(str(folder / "socket"))
            line.listen()
        assert (await shown(command)).strip() == '["reach the mounted"]'
