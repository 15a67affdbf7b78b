"""Starting process trees that cannot outlive their turn or Podium itself."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podium.domain.errors import NotPossibleNow
from podium.domain.launching import Ended, Spawn
from podium.sandbox.environment import ResolveSecret, environment_for, no_secrets
from podium.sandbox.guard.order import Order
from podium.sandbox.orphans import MARK_NAME, new_mark
from podium.sandbox.process import GuardedProcess
from podium.sandbox.programs import find_program, refuse_what_cannot_be_enforced
from podium.sandbox.settings import LauncherSettings


class ProcessLauncher:
    """Starts plain processes: environment, output, time and tree are held; reach is not.

    It has no kernel confinement and says so: a spawn that wants any is refused.
    """

    def __init__(
        self,
        settings: LauncherSettings | None = None,
        *,
        resolve_secret: ResolveSecret = no_secrets,
        parent_env: Mapping[str, str] | None = None,
    ) -> None:
        """`parent_env` is what the allow-list picks from; None means this process's own."""
        self._settings = settings or LauncherSettings()
        self._resolve_secret = resolve_secret
        self._parent_env = os.environ if parent_env is None else parent_env

    async def start(self, spawn: Spawn) -> GuardedProcess:
        """Start it. Raises `ToolMissing` when the program is not there or cannot be executed,
        `NotPossibleNow` when its folder or a limit it wants is not to be had."""
        mark = new_mark()
        order = self._order_for(spawn, mark)
        process = GuardedProcess(spawn, order, mark, self._settings.overdue_seconds)
        await process.started()
        return process

    async def run(self, spawn: Spawn) -> Ended:
        """Start, wait, and end the whole tree; also when cancelled."""
        process = await self.start(spawn)
        return await process.wait()

    def _order_for(self, spawn: Spawn, mark: str) -> Order:
        refuse_what_cannot_be_enforced(spawn)
        env = environment_for(spawn, self._settings, self._parent_env, self._resolve_secret)
        if not os.path.isdir(spawn.cwd):  # noqa: PTH112 — `Path.is_dir` raises where one may not look
            raise NotPossibleNow(
                f"{spawn.argv[0]!r} cannot start in {spawn.cwd!r}: there is no such folder; create it first"
            )
        limits = spawn.limits
        return Order(
            program=find_program(spawn.argv[0], spawn.cwd, env.get("PATH", os.defpath)),
            argv=list(spawn.argv),
            cwd=spawn.cwd,
            env={**env, MARK_NAME: mark},
            owner_pid=os.getpid(),
            seconds=limits.seconds,
            grace_seconds=self._settings.grace_seconds,
            linger_seconds=self._settings.linger_seconds,
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            file_bytes=limits.file_bytes,
        )
