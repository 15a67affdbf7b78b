"""Preparation of a confined start: the guard's order, and the listeners that Podium serves meanwhile.

A tree under `none`, `model-only` or `listed` has a loopback of its own and nothing else. On it Podium
listens, for the tree, at the port of the proxy and at each forwarded port; the sockets are handed to
Podium's loop, which accepts on them. No program of ours runs inside, and no socket file leads out.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Protocol

from podium.core.errors import BadInput, NotPossibleNow, ToolMissing
from podium.core.processes import Confinement, ProcessSpec
from podium.sandbox.confining import bubblewrap, landlock
from podium.sandbox.confining.canary import BUBBLEWRAP, Mechanism
from podium.sandbox.confining.exec_rules import as_data
from podium.sandbox.confining.plan import ConfinementPlan
from podium.sandbox.confining.upstream import proxy_env
from podium.sandbox.confining.view import (
    ConfinedView,
    reach,
    refuse_what_was_tampered_with,
    visible_folders,
)
from podium.sandbox.environment import find_program
from podium.sandbox.orphans import TAG_VARIABLE

PROXY_PORTS = (3128, 3129, 8118, 8888)
"""Ports of the proxy inside: the first that is not forwarded, else any other."""

MAX_PORTS = 200
"""More descriptors do not go over a socket at once."""


class TreeServices(Protocol):
    """Connections of one tree while they are served."""

    @property
    def refused_hosts(self) -> tuple[str, ...]:
        """Hosts the tree wanted and may not reach; the first few."""

    def close(self) -> None:
        """Stop listening and drop every connection. May be called more than once."""


Serve = Callable[[Confinement, socket.socket | None, dict[int, socket.socket]], TreeServices]
"""Serves one tree, from its confinement, the proxy's listener and those of forwarded ports.

The proxy speaks plain HTTP and CONNECT and lets through to `confinement.hosts` alone; each forwarded
port leads to the same port of 127.0.0.1 outside. Called in the event loop's thread; takes over the
sockets, which do not block, and must not raise. Where a tree has no network of its own, its
forwarded ports are there already and none are handed over."""


def has_proxy(confinement: Confinement) -> bool:
    return confinement.network in ("model-only", "listed")


def proxy_port(confinement: Confinement) -> int:
    """The port inside at which the proxy of this tree answers."""
    candidates = chain(PROXY_PORTS, range(1_024, 65_536))
    return next(port for port in candidates if port not in confinement.forwarded_ports)


def ports_inside(confinement: Confinement) -> list[int]:
    """Ports to listen on for a tree with a network of its own."""
    if confinement.network == "open":
        return []
    proxy = [proxy_port(confinement)] if has_proxy(confinement) else []
    return [*proxy, *dict.fromkeys(confinement.forwarded_ports)]


class PreparedStart:
    """A confined start: program, folder and variables as they are inside, and the plan for the guard."""

    def __init__(self, spawn: ProcessSpec, serve: Serve | None) -> None:
        self.program = ""
        self.cwd = spawn.cwd
        self.env: dict[str, str] = {}
        self.plan = ConfinementPlan(mechanism="")
        self._confinement = spawn.confinement
        self._serve = serve
        self._serving: TreeServices | None = None
        self._temporary = ""
        self._proxy: socket.socket | None = None

    def outer_env(self, tag: str) -> dict[str, str]:
        """The variables of what the guard executes. Bubblewrap gets none of the program's."""
        return {TAG_VARIABLE: tag} if self.plan.mechanism == BUBBLEWRAP else self.env

    @property
    def refused_hosts(self) -> tuple[str, ...]:
        return self._serving.refused_hosts if self._serving else ()

    def listening(self, ports: list[int], sockets: list[socket.socket]) -> None:
        """The tree's own loopback stands; from here on its connections are served."""
        by_port = dict(zip(ports, sockets, strict=False))
        proxy = None
        if has_proxy(self._confinement):
            proxy = by_port.pop(proxy_port(self._confinement), None)
        self._begin_serving(proxy, by_port)

    def close(self) -> None:
        """The tree is gone: let go of all that was there for it."""
        if self._serving is not None:
            self._serving.close()
        if self._proxy is not None:
            self._proxy.close()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _begin_serving(
        self, proxy: socket.socket | None, by_port: dict[int, socket.socket]
    ) -> None:
        listeners = [*by_port.values(), *([proxy] if proxy else [])]
        for one in listeners:
            one.setblocking(False)
        if self._serve is None:
            for one in listeners:
                one.close()
        else:
            self._serving = self._serve(self._confinement, proxy, by_port)

    # Where everything is mounted.

    def mount(self, spawn: ProcessSpec, env: Mapping[str, str], mechanism: Mechanism) -> None:
        """Plan it for bubblewrap."""
        confinement = self._confinement
        self.env = {**env, **self._proxy_env()}
        if "TMPDIR" not in spawn.env:
            self.env.pop("TMPDIR", None)
        if confinement.home and "HOME" not in spawn.env:
            self.env["HOME"] = confinement.home
        inside = ConfinedView(confinement.mounts, self.env.get("HOME", ""))
        _refuse_missing_folder(spawn, inside.has_folder(spawn.cwd))
        self.program = _program_inside(spawn, inside, self.env.get("PATH", os.defpath))
        as_root = os.geteuid() == 0
        shares_network = confinement.network == "open"
        temporary_bytes = spawn.limits.temporary_bytes if mechanism.limits_temporary else None
        self.plan = ConfinementPlan(
            mechanism=BUBBLEWRAP,
            bubblewrap=mechanism.bubblewrap,
            options=bubblewrap.options(
                confinement,
                spawn.cwd,
                self.env,
                disable_userns=mechanism.disable_userns,
                as_root=as_root,
                temporary_bytes=temporary_bytes,
            ),
            network_open=shares_network,
            scoped=shares_network and landlock.has_scopes(),
            judged_sockets=shares_network and not landlock.has_scopes(),
            ports=ports_inside(confinement),
            rules=as_data(confinement.execs) if confinement.execs else None,
            temporary=list(inside.temporary) if temporary_bytes else None,
        )

    def _proxy_env(self) -> dict[str, str]:
        confinement = self._confinement
        return proxy_env(proxy_port(confinement)) if has_proxy(confinement) else {}

    # Where nothing can be.

    def open_trees(self, spawn: ProcessSpec, env: Mapping[str, str], mechanism: Mechanism) -> None:
        """Plan it for Landlock: the tree stays where it is, and few doors are open."""
        confinement = self._confinement
        inside = ConfinedView(confinement.mounts)
        self._temporary = self.make_temporary()
        self.env = {**env, "TMPDIR": self._temporary, **confinement.unmounted_env}
        if "HOME" not in {**spawn.env, **confinement.unmounted_env}:
            self.env["HOME"] = inside.outside(confinement.home) or self._temporary
        ports = list(confinement.forwarded_ports)
        proxy = self.open_proxy() if has_proxy(confinement) else 0
        if proxy:
            ports.append(proxy)
            self.env |= proxy_env(proxy)
        self.cwd = inside.outside(spawn.cwd) or spawn.cwd
        _refuse_missing_folder(spawn, os.path.isdir(self.cwd))  # noqa: PTH112 — `Path.is_dir` raises
        readable, writable = reach(confinement, self._temporary, as_root=os.geteuid() == 0)
        search_path = self.env.get("PATH", os.defpath)
        self.env["PATH"] = visible_folders(search_path, (*readable, *writable))
        self.program = _visible_program(spawn, self.cwd, self.env["PATH"], search_path)
        self.plan = ConfinementPlan(
            mechanism=mechanism.name,
            readable=readable,
            writable=writable,
            network_open=confinement.network == "open",
            ports=ports,
            sockets=[os.path.realpath(mount.source) for mount in confinement.mounts],
            rules=as_data(confinement.execs) if confinement.execs else None,
        )
        if self._proxy is not None:
            listener, self._proxy = self._proxy, None
            self._begin_serving(listener, {})

    def make_temporary(self) -> str:
        """A new folder for `TMPDIR`, by its real path."""
        return os.path.realpath(tempfile.mkdtemp(prefix="podium-"))

    def open_proxy(self) -> int:
        """Open a port for the proxy, and give its number; 0 when somebody else will open one."""
        self._proxy = socket.create_server(("127.0.0.1", 0))
        return int(self._proxy.getsockname()[1])


def prepare(
    spawn: ProcessSpec, env: Mapping[str, str], mechanism: Mechanism, serve: Serve | None
) -> PreparedStart:
    """Plan a confined start. Raises when it cannot be; then nothing is left behind.

    The caller closes what it gets when the tree is gone.
    """
    if serve is None and ports_inside(spawn.confinement):
        raise NotPossibleNow(
            f"the network policy {spawn.confinement.network!r} needs a proxy, and this launcher has none; use "
            "`none` or `open`"
        )
    prepared = PreparedStart(spawn, serve)
    plan_for(prepared, spawn, env, mechanism)
    return prepared


def plan_for(
    prepared: PreparedStart, spawn: ProcessSpec, env: Mapping[str, str], mechanism: Mechanism
) -> None:
    """Complete it by this way of confining. Raises when that cannot be; then it is closed."""
    _refuse_contradictions(spawn.confinement)
    refuse_what_was_tampered_with(spawn.confinement)
    try:
        if mechanism.name == BUBBLEWRAP:
            prepared.mount(spawn, env, mechanism)
        else:
            prepared.open_trees(spawn, env, mechanism)
    except BaseException:
        prepared.close()
        raise


def _refuse_contradictions(confinement: Confinement) -> None:
    if len(confinement.forwarded_ports) > MAX_PORTS - 1:
        raise BadInput(f"at most {MAX_PORTS - 1} ports can be forwarded; name fewer")
    for path in (*confinement.pinned, *(mount.target for mount in confinement.mounts)):
        if not path.startswith("/") or "\0" in path:
            raise BadInput(f"{path!r} is not an absolute path; use absolute paths")


def _refuse_missing_folder(spawn: ProcessSpec, is_there: bool) -> None:
    if not is_there:
        raise NotPossibleNow(
            f"{spawn.argv[0]!r} cannot start in {spawn.cwd!r}: the folder does not exist inside the "
            "sandbox; mount it, or create it first"
        )


def _visible_program(spawn: ProcessSpec, cwd: str, guarded_path: str, search_path: str) -> str:
    try:
        return find_program(spawn.argv[0], cwd, guarded_path)
    except ToolMissing:
        raise _not_visible(find_program(spawn.argv[0], cwd, search_path), spawn) from None


def _program_inside(spawn: ProcessSpec, inside: ConfinedView, search_path: str) -> str:
    program = inside.program(spawn.argv[0], spawn.cwd, search_path)
    if program:
        return program
    # Says what it says outside too when it is not there at all.
    raise _not_visible(find_program(spawn.argv[0], spawn.cwd, search_path), spawn)


def _not_visible(outside: str, spawn: ProcessSpec) -> ToolMissing:
    return ToolMissing(
        f"program {spawn.argv[0]!r} is at {outside!r}, which is not visible inside the sandbox; add "
        "the folder it is installed in to `sandbox.read` in your own settings"
    )
