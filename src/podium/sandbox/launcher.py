"""Starting process trees that cannot outlive their turn or Podium itself."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from podium.core.errors import NotPossibleNow
from podium.core.processes import ProcessExit, ProcessSpec
from podium.sandbox.confining.canary import BUBBLEWRAP, Canary, Mechanism, MechanismTrial, survey
from podium.sandbox.confining.preparation import (
    PreparedStart,
    Serve,
    has_proxy,
    plan_for,
    prepare,
    proxy_port,
)
from podium.sandbox.environment import (
    LauncherSettings,
    ResolveSecret,
    environment_for,
    find_program,
    no_secrets,
    refuse_what_cannot_be_enforced,
)
from podium.sandbox.guard.order import GuardOrder
from podium.sandbox.guard.processes import ON_LINUX
from podium.sandbox.orphans import TAG_VARIABLE, new_server_tag, new_tag
from podium.sandbox.process import GuardedProcess
from podium.sandbox.terminal.launch_spec import (
    LaunchFolder,
    LaunchSpec,
    remove_stale_launch_folders,
)

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
    start = str(Path(__file__).with_name("isolated.py"))
    return (sys.executable, "-IS", start, "podium.sandbox.terminal.attendant", str(folder.path))


_VERDICTS: dict[str, Mechanism] = {}
"""Of the canaries of this process. All launchers confine in the same way."""


class ProcessLauncher:
    """Starts processes: environment, output, time and tree are held, and by a confinement what they reach.

    How the kernel confines is found out by a canary at the first start that wants it.
    """

    def __init__(
        self,
        settings: LauncherSettings | None = None,
        *,
        resolve_secret: ResolveSecret = no_secrets,
        parent_env: Mapping[str, str] | None = None,
        serve: Serve | None = None,
        memory: Path | None = None,
        mechanism: Mechanism | None = None,
    ) -> None:
        """`parent_env` is what the allow-list picks from; None means this process's own.

        `serve` serves what confined trees may connect to. `memory` is the file in which the canary's
        verdict is kept. A `mechanism` that is given is used without a canary.
        """
        self._settings = settings or LauncherSettings()
        self._resolve_secret = resolve_secret
        self._parent_env = os.environ if parent_env is None else parent_env
        self._serve = serve
        self._mechanism = mechanism
        self._canary = Canary(self._run_by, memory, _VERDICTS)

    async def start(self, spawn: ProcessSpec) -> GuardedProcess:
        """Start it. Raises `ToolMissing` when the program is not there or cannot be executed,
        `NotPossibleNow` when its folder or a limit it wants is not to be had, and of these
        `NoSandbox` when it is to be confined and nothing here can do that; `CallRefused` when its
        confinement's rules keep it from being started."""
        refuse_what_cannot_be_enforced(spawn)
        if spawn.confinement.kind == "none":
            return await self._start(spawn, None)
        return await self._start(spawn, self._mechanism or await self._canary.mechanism())

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        """Start, wait, and end the whole tree; also when cancelled."""
        process = await self.start(spawn)
        return await process.wait()

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        """The command by which somebody else starts it as the first program of a terminal; see `Launcher`."""
        refuse_what_cannot_be_enforced(spawn)
        mechanism = None
        if spawn.confinement.kind != "none":
            mechanism = self._mechanism or await self._canary.mechanism()
        elif not ON_LINUX:
            return spawn.argv
        env = environment_for(spawn, self._settings, self._parent_env, self._resolve_secret)
        return await asyncio.to_thread(self._handed_over, spawn, env, mechanism)

    def _handed_over(
        self, spawn: ProcessSpec, env: dict[str, str], mechanism: Mechanism | None
    ) -> tuple[str, ...]:
        remove_stale_launch_folders()
        folder = LaunchFolder.make()
        try:
            confined = prepare_for_terminal(spawn, env, mechanism, folder) if mechanism else None
            order = self._order_for(spawn, env, "", confined)
            order.on_terminal = True
            folder.write(launch_spec_for(spawn, order, mechanism, self._parent_env))
        except BaseException:
            folder.remove()
            raise
        return attendant_command(folder)

    async def survey(self) -> tuple[MechanismTrial, ...]:
        """Try every way of confining on this machine, whatever is remembered."""
        return await survey(self._run_by)

    async def _run_by(self, spawn: ProcessSpec, mechanism: Mechanism) -> ProcessExit:
        process = await self._start(spawn, mechanism)
        return await process.wait()

    async def _start(self, spawn: ProcessSpec, mechanism: Mechanism | None) -> GuardedProcess:
        tag = new_server_tag(spawn.leaves_server) if spawn.leaves_server else new_tag()
        env = environment_for(spawn, self._settings, self._parent_env, self._resolve_secret)
        env[TAG_VARIABLE] = tag
        confined = prepare(spawn, env, mechanism, self._serve) if mechanism else None
        try:
            order = self._order_for(spawn, env, tag, confined)
            process = GuardedProcess(spawn, order, tag, self._settings, confined)
        except BaseException:
            if confined is not None:
                confined.close()
            raise
        await process.started()
        return process

    def _order_for(
        self, spawn: ProcessSpec, env: dict[str, str], tag: str, confined: PreparedStart | None
    ) -> GuardOrder:
        limits = spawn.limits
        if confined is None:
            _refuse_missing_folder(spawn)
            program = find_program(spawn.argv[0], spawn.cwd, env.get("PATH", os.defpath))
        else:
            program = confined.program
        return GuardOrder(
            program=program,
            argv=list(spawn.argv),
            cwd=confined.cwd if confined else spawn.cwd,
            env=confined.outer_env(tag) if confined else env,
            owner_pid=os.getpid(),
            seconds=limits.seconds,
            grace_seconds=self._settings.grace_seconds,
            linger_seconds=self._settings.linger_seconds,
            farewell_seconds=spawn.farewell_seconds,
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            file_bytes=limits.file_bytes,
            tree_memory_bytes=limits.tree_memory_bytes,
            temporary_bytes=limits.temporary_bytes,
            plan=confined.plan.encode() if confined else b"",
            leaves_server=bool(spawn.leaves_server),
        )


def _refuse_missing_folder(spawn: ProcessSpec) -> None:
    if not os.path.isdir(spawn.cwd):  # noqa: PTH112 — `Path.is_dir` raises where one may not look
        raise NotPossibleNow(
            f"{spawn.argv[0]!r} cannot start in {spawn.cwd!r}: the folder does not exist; create it first"
        )
