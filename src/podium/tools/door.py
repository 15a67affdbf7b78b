"""The tool door: requested, judged, performed by whoever asked, receipted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from podium.domain.errors import CallInDoubt
from podium.domain.gating import Call, Outcome, Permit, Receipt, Refusal
from podium.domain.launching import Held
from podium.ports import Checkpoint, Clock, Gate, Ids, Store
from podium.tools.bounding import Cleaner, clean_outcome
from podium.tools.builtin.editing import overwrite_diff
from podium.tools.judging import DiffMissing, Judge, SpecLookup
from podium.tools.scope import in_thread
from podium.tools.settling import Settler
from podium.tools.wish import DoorSettings


class GatedDoor:
    """Every call passes here, whoever performs it. Two transactions: `request` and `settle`."""

    def __init__(
        self,
        store: Store,
        gate: Gate,
        specs: SpecLookup,
        *,
        clock: Clock,
        ids: Ids,
        settings: DoorSettings,
        redact: Callable[[str], str],
        held: Callable[[str], Held | None] = lambda root: None,
    ) -> None:
        """`held` says how the kernel holds commands in a folder. None: only their words are judged."""
        self._store = store
        self._gate = gate
        self._settings = settings
        self._cleaner = Cleaner(redact)
        self._judge = Judge(
            gate=gate, specs=specs, clock=clock, ids=ids, settings=settings, held=held
        )
        self._settler = Settler(specs=specs, clock=clock)

    async def request(self, call: Call) -> Permit | Refusal:
        """Judge the call. On a permit, `tool_requested` is durable and the act may begin.

        Raises `CallInDoubt` when this very call was permitted before, Podium died before its end
        was recorded, and doing it again could do it twice; `StoreFull` when its end could not be recorded.
        """
        self._store.must_have_room()
        try:
            answer = await self._store.write(lambda tx: self._judge.answer(tx, call))
        except DiffMissing:
            root = Path(call.root or self._settings.root)
            is_secret = any(self._gate.passed_over(use.real, str(root)) for use in call.paths)
            diff = await in_thread(
                overwrite_diff, call, root, self._cleaner.text, is_secret=is_secret
            )
            answer = await self._store.write(lambda tx: self._judge.answer(tx, call, diff))
        if isinstance(answer, CallInDoubt):
            raise answer
        return answer

    async def look_back(self, run_id: str, step_key: str) -> None:
        """Deal with calls that a crash left open in a step, before it is done again.

        Raises `CallInDoubt` when one of them may have happened and must not be done twice.
        """
        doubt = await self._store.write(lambda tx: self._judge.look_back(tx, run_id, step_key))
        if doubt is not None:
            raise doubt

    async def settle(
        self, permit: Permit, outcome: Outcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        """Record the end of a permitted call. A second time gives the first receipt again.

        The outcome is kept without escapes and secrets, and cut to a size. Raises
        `NotPossibleNow` when the store knows of no such permit.
        """
        kept = clean_outcome(outcome, self._cleaner, self._settings.result_bytes)
        return await self._store.write(
            lambda tx: self._settler.settle(tx, permit, kept, checkpoint)
        )

    async def abandon(self, permit: Permit) -> Receipt:
        """Close an observed call whose end nobody will learn, and use up its approval.

        A call that was settled or abandoned before keeps its receipt, which is given back. Raises
        `NotPossibleNow` for what Podium performs and when the store knows of no such permit.
        """
        return await self._store.write(lambda tx: self._settler.abandon(tx, permit))
