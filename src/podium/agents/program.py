"""An agent's program: its confinement, its version, its output until it is dead, and the lines that its transcript keeps."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from podium.agents.deps import AgentDeps
from podium.core.errors import BadInput
from podium.core.model import Json
from podium.core.processes import Confinement, Mount, ProcessExit, ProcessLimits, ProcessSpec
from podium.core.turns import Turn
from podium.platform.completion import run_to_completion
from podium.ports import HookDoor, Launcher, Process

Hear = Callable[[str], Awaitable[None] | None]
"""Takes a line as it comes; the next one waits for it. What it raises ends the program and is handed on."""


async def hear_out(process: Process, hear: Hear) -> ProcessExit:
    """Hand on every line until the tree is dead. Cancelled, or when `hear` raises, it is ended first.

    Bytes that are no UTF-8 are replaced.
    """
    ending = asyncio.ensure_future(process.wait())
    try:
        async for line in process.lines():
            working = hear(line.decode(errors="replace"))
            if working is not None:
                await working
        return await ending
    except BaseException:
        await _end(process, ending)
        raise


async def _end(process: Process, ending: asyncio.Future[ProcessExit]) -> None:
    """Come back when nothing is left of it, however often one is cancelled meanwhile."""
    # A cancelled wait ends the tree with the launcher's own patience.
    ending.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await run_to_completion(ending)
    await process.end()


def sent_line(line: str) -> str:
    """A line of JSON that was said to the program."""
    return f'{{"sent": {line}}}'


def received_line(line: str) -> str:
    """A line that the program wrote. What is no JSON is kept as the text it is."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return printed_line(line)
    return line


def record_of(line: bytes | str) -> dict[str, Json]:
    """Return the JSON object in a line; empty when it holds none. Programs print other things too."""
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def mapping_of(value: Json) -> Mapping[str, Json]:
    """Return the object; empty for anything else, as no record of a program can be relied on."""
    return value if isinstance(value, dict) else {}


def count_of(value: Json) -> int:
    """Return the number of tokens; 0 for what is none, or no sensible one."""
    usable = isinstance(value, int | float) and 0 <= value < 1e15
    return int(value) if usable else 0


def printed_line(line: str) -> str:
    # Not escaped more than need be: secrets are looked for in what is written.
    return json.dumps({"printed": line}, ensure_ascii=False)


_VERSION = re.compile(r"\b(\d+(?:\.\d+){1,3})\b")
_SECONDS = 30.0
_versions: dict[tuple[str, ...], tuple[float, str]] = {}
"""argv → when its program was last changed, and the version it gave then."""


async def version_of(launcher: Launcher, argv: tuple[str, ...], cwd: str) -> str:
    """Return the version from `argv --version`; empty when it prints none. Raises `ToolMissing`."""
    changed = _changed(argv)
    if argv in _versions and _versions[argv][0] == changed:
        return _versions[argv][1]
    # Some make folders in the home even for this.
    with tempfile.TemporaryDirectory(prefix="podium-version-") as home:
        ended = await launcher.run(
            ProcessSpec(
                argv=(*argv, "--version"),
                cwd=cwd,
                env={"HOME": home},
                limits=ProcessLimits(seconds=_SECONDS, output_bytes=10_000),
            )
        )
    match = _VERSION.search(ended.stdout.decode(errors="replace"))
    version = match[1] if match else ""
    if version:
        _versions[argv] = (changed, version)
    return version


def newer_than(version: str, tried: str) -> bool:
    """Return whether this is a later version than one that was tried."""
    return _numbers(version) > _numbers(tried)


def untried(agent: str, version: str, tried: str) -> tuple[str, ...]:
    """The warning for a version later than the one Podium was tried with."""
    if not version or not newer_than(version, tried):
        return ()
    return (f"agent {agent!r} is version {version}; Podium was tested with {tried}",)


def _changed(argv: tuple[str, ...]) -> float:
    try:
        return max(Path(argument).stat().st_mtime for argument in argv if "/" in argument)
    except (OSError, ValueError):
        return 0.0


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Needs:
    """Files and hosts that an agent's program cannot work without."""

    writable: tuple[Path, ...] = ()
    """Its private home, and whatever else it has to write to."""
    readable: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()
    """Hosts of its provider, used when no address is set."""
    base_url: str = ""
    """Address of its model, in place of the provider's."""
    command: tuple[str, ...] = ()
    """The command that starts it, as a person configured it."""


async def confinement_for(deps: AgentDeps, turn: Turn, door: HookDoor, needs: Needs) -> Confinement:
    """Return the confinement of the agent's program in this turn: its workspace's, its needs, and the door."""
    return with_needs(await deps.confinement_provider.confinement(turn.workspace), needs, door)


def with_needs(confinement: Confinement, needs: Needs, door: HookDoor | None = None) -> Confinement:
    """The fence with these needs let through, and the way to the turn's door. One that confines nothing stays as it is.

    Raises `BadInput` where the network policy leaves no way to the model.
    """
    if confinement.kind == "none":
        return confinement
    if confinement.network == "none" and (needs.hosts or needs.base_url):
        raise BadInput(
            "`sandbox.network: none` cuts an agent off from its model; set it to `model-only`"
        )
    hosts, ports = _model_endpoint(needs)
    readable = (*needs.readable, *([Path(door.env["PODIUM_DOOR"]).parent] if door else []))
    return confinement.model_copy(
        update={
            "mounts": (
                *confinement.mounts,
                *_mounts(readable, False),
                *_mounts(needs.writable, True),
            ),
            "hosts": _joined(confinement.hosts if confinement.network == "listed" else (), hosts),
            # A script that an interpreter is given is a program, too.
            "programs": tuple(
                argument
                for at, argument in enumerate(needs.command)
                if not at or argument.startswith("/")
            ),
            "forwarded_ports": tuple(dict.fromkeys((*confinement.forwarded_ports, *ports))),
        }
    )


def _mounts(paths: Iterable[Path], writable: bool) -> list[Mount]:
    return [Mount(source=str(path), target=str(path), writable=writable) for path in paths]


def _joined(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _model_endpoint(needs: Needs) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Hosts to list and loopback ports to forward, so that the model is reached."""
    if not needs.base_url:
        return needs.hosts, ()
    try:
        parts = urlsplit(needs.base_url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        host, port = "", 0
    if not host or not port:
        raise BadInput(f"base_url {needs.base_url!r} has no host; write it as https://host/path")
    if _is_loopback(host):
        return (), (port,)
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}",), ()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def confinement_warnings(agent: str, ended: ProcessExit) -> tuple[str, ...]:
    """Return warnings about what confinement kept the agent's processes from."""
    warnings = []
    if ended.refused_hosts:
        hosts = ", ".join(ended.refused_hosts)
        warnings.append(f"processes of {agent!r} tried to reach hosts that are not listed: {hosts}")
    if ended.refused_execs:
        programs = "; ".join(ended.refused_execs)
        warnings.append(
            f"processes of {agent!r} tried to start programs that are not allowed: {programs}"
        )
    warnings += [f"processes of {agent!r}: {breach}" for breach in ended.breaches]
    return tuple(warnings)
