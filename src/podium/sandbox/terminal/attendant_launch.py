"""Launch of an attendant, on Podium's side: its launch spec and its command line."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from podium.core.processes import ProcessSpec
from podium.sandbox.confining.canary import BUBBLEWRAP, Mechanism
from podium.sandbox.confining.preparation import PreparedStart, has_proxy, plan_for, proxy_port
from podium.sandbox.guard.order import GuardOrder
from podium.sandbox.terminal.launch_spec import LaunchFolder, LaunchSpec

_PROXY_NAMES = ("https_proxy", "http_proxy", "all_proxy", "no_proxy")


class PreparedTerminalStart(PreparedStart):
    """A confined start that somebody else makes: all that serves it is opened then and there."""

    def __init__(self, spawn: ProcessSpec, folder: LaunchFolder) -> None:
        super().__init__(spawn, None)
        self._folder = folder

    def outer_env(self, tag: str) -> dict[str, str]:
        """The program's own: the guard itself keeps them from a sandbox around it."""
        return self.env

    def make_temporary(self) -> str:
        return self._folder.make_temporary()

    def open_proxy(self) -> int:
        return 0


def prepare_for_terminal(
    spawn: ProcessSpec, env: Mapping[str, str], mechanism: Mechanism, folder: LaunchFolder
) -> PreparedTerminalStart:
    """Plan a confined start by an attendant. Raises as `prepare` does."""
    prepared = PreparedTerminalStart(spawn, folder)
    plan_for(prepared, spawn, env, mechanism)
    return prepared


def launch_spec_for(
    spawn: ProcessSpec, order: GuardOrder, mechanism: Mechanism | None, environ: Mapping[str, str]
) -> LaunchSpec:
    """The spec for the attendant. `environ` may name a proxy that the machine itself has to use."""
    confinement = spawn.confinement
    proxied = mechanism is not None and has_proxy(confinement)
    mounted = mechanism is not None and mechanism.name == BUBBLEWRAP
    return LaunchSpec(
        order=order.encode(),
        hosts=confinement.hosts,
        proxy_port=proxy_port(confinement) if proxied and mounted else 0,
        opens_proxy=proxied and not mounted,
        named=tuple(spawn.env),
        upstream=tuple((name, environ[name]) for name in environ if name.lower() in _PROXY_NAMES),
    )


def attendant_command(folder: LaunchFolder) -> tuple[str, ...]:
    """The command to start on the terminal."""
    start = str(Path(__file__).parents[1] / "isolated.py")
    return (sys.executable, "-IS", start, "podium.sandbox.terminal.attendant", str(folder.path))
