"""A tool door that lets nothing through, for looking without acting."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from podium.domain.asking import Turn
from podium.domain.errors import NotPossibleNow
from podium.domain.gating import (
    BuiltInRule,
    Call,
    Decision,
    Effect,
    Outcome,
    Permit,
    Receipt,
    Refusal,
    Tier,
)
from podium.ports import Checkpoint, Translate, TurnDoor


class ClosedDoor:
    """Refuses every call with the same words."""

    def __init__(self, words: str) -> None:
        self._words = words

    async def request(self, call: Call) -> Permit | Refusal:
        decision = Decision(
            effect=Effect.DENY, rule=BuiltInRule.CLOSED_DOOR, reason=self._words, tier=Tier.T0
        )
        return Refusal(call=call, decision=decision, say=self._words)

    async def look_back(self, run_id: str, step_key: str) -> None:
        """Nothing was ever let through here, so nothing was left open."""

    async def settle(
        self, permit: Permit, outcome: Outcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        raise NotPossibleNow(f"call {permit.call.key} was never permitted at this door")

    async def abandon(self, permit: Permit) -> Receipt:
        raise NotPossibleNow(f"call {permit.call.key} was never permitted at this door")


class NoDoors:
    """Opens no door at all, for agents that are only looked at."""

    def open(
        self, turn: Turn, *, agent: str = "", translate: Translate | None = None
    ) -> AbstractAsyncContextManager[TurnDoor]:
        raise NotPossibleNow(f"agent {agent!r} was made to be looked at, not to be asked")
