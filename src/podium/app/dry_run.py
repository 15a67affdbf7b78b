"""Tool door, launcher, confinement and store for looking without acting: calls are refused, records are temporary."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podium.core.decisions import (
    BuiltInRule,
    Call,
    CallOutcome,
    Decision,
    Effect,
    Permit,
    Receipt,
    Refusal,
    Tier,
)
from podium.core.errors import NotPossibleNow
from podium.core.processes import Confinement, FolderConfinement, ProcessExit, ProcessSpec
from podium.ports import Checkpoint, HookDoor, Process, Translate

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.core.turns import Turn
    from podium.store import SqlStore


class ClosedDoor:
    """Refuses every call with the same words."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def request(self, call: Call) -> Permit | Refusal:
        decision = Decision(
            effect=Effect.DENY, rule=BuiltInRule.CLOSED_DOOR, reason=self._reason, tier=Tier.T0
        )
        return Refusal(call=call, decision=decision, say=self._reason)

    async def look_back(self, run_id: str, step_key: str) -> None:
        """Nothing was ever let through here, so nothing was left open."""

    async def settle(
        self, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        raise NotPossibleNow(f"call {permit.call.key} was not permitted in this dry run")

    async def abandon(self, permit: Permit) -> Receipt:
        raise NotPossibleNow(f"call {permit.call.key} was not permitted in this dry run")


class NoLauncher:
    """Starts nothing, for tools whose every call is refused before."""

    async def start(self, spawn: ProcessSpec) -> Process:
        raise NotPossibleNow(f"{spawn.argv[0]!r} is not started in a dry run")

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        raise NotPossibleNow(f"{spawn.argv[0]!r} is not started in a dry run")

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        raise NotPossibleNow(f"{spawn.argv[0]!r} is not started in a dry run")


class NoConfinement:
    """Confines nothing, since nothing is started."""

    async def confinement(self, root: str) -> Confinement:
        raise NotPossibleNow(f"nothing is started in {root!r} in a dry run")

    def held(self, root: str) -> FolderConfinement | None:
        return None


class NoDoors:
    """Opens no door at all, for agents that are only looked at."""

    def open(
        self, turn: Turn, *, agent: str = "", translate: Translate | None = None
    ) -> AbstractAsyncContextManager[HookDoor]:
        raise NotPossibleNow(f"agent {agent!r} cannot be asked in a dry run")


@asynccontextmanager
async def scratch_store(podium: Podium, key_dir: Path | None = None) -> AsyncIterator[SqlStore]:
    """A store in a folder for temporary files, gone at the end."""
    from podium.store import SqlStore

    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        path = Path(folder)
        store = await SqlStore.open(
            path, clock=podium.clock, ids=podium.ids, key_dir=key_dir or path / "vault"
        )
        try:
            yield store
        finally:
            await store.close()
