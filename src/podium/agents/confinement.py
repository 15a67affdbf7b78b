"""Confinement of an agent's program: that of its workspace, opened for what the program itself needs."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from podium.agents.deps import AgentDeps
from podium.core.errors import BadInput
from podium.core.processes import Confinement, Mount, ProcessExit
from podium.core.turns import Turn
from podium.ports import HookDoor

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
            "`sandbox.network: none` leaves an agent without its model; set it to `model-only`"
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
        raise BadInput(f"base_url {needs.base_url!r} names no host; write it as https://host/path")
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
        warnings.append(f"processes of {agent!r} wanted to reach {hosts}, which is not listed")
    if ended.refused_execs:
        programs = "; ".join(ended.refused_execs)
        warnings.append(f"processes of {agent!r} wanted to start what may not be: {programs}")
    warnings += [f"processes of {agent!r}: {breach}" for breach in ended.breaches]
    return tuple(warnings)
