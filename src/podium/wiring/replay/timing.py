"""Time, ids and deadlines of a replay: those of the record."""

from __future__ import annotations

from datetime import datetime

from podium.domain.events import ApprovalRequested
from podium.domain.gating import Budget, Call, Decision, GateContext, Quota
from podium.ports import Gate, Ids
from podium.wiring.replay.tape import Tape

CLOSE_SECONDS = 60.0
"""Between the moment that a deadline was reckoned from and the event that tells of it."""


class RecordedClock:
    """Says the time of the event that is to come next. What lasted is told to it before it is asked."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._lasted = 0.0

    def now(self) -> datetime:
        event = self._tape.next or self._tape.events[-1]
        return event.at

    def monotonic(self) -> float:
        lasted, self._lasted = self._lasted, 0.0
        return lasted

    def let_last(self, seconds: float) -> None:
        """What is measured next will have lasted exactly so long: every measuring begins at zero."""
        self._lasted = seconds


class RecordedIds:
    """Gives approvals the ids that they had. Asking again before the event happened gives the same id."""

    def __init__(self, tape: Tape, others: Ids) -> None:
        self._tape = tape
        self._others = others

    def new(self, prefix: str) -> str:
        asked = _next_approval(self._tape) if prefix == "apr" else None
        return asked.approval_id if asked else self._others.new(prefix)


class RecordedDeadlines:
    """The gate of today, whose deadlines fall on the recorded moments as long as they are as long as they were."""

    def __init__(self, gate: Gate, tape: Tape, clock: RecordedClock) -> None:
        self._gate = gate
        self._tape = tape
        self._clock = clock

    def decide(self, call: Call, context: GateContext) -> Decision:
        return self._gate.decide(call, context)

    def quotas_for(self, call: Call, context: GateContext) -> tuple[Quota, ...]:
        return self._gate.quotas_for(call, context)

    def passed_over(self, real_path: str, root: str) -> bool:
        return self._gate.passed_over(real_path, root)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        return self._gate.budgets

    @property
    def approval_seconds(self) -> float:
        today, asked = self._gate.approval_seconds, _next_approval(self._tape)
        if asked is None:
            return today
        recorded = (asked.deadline - self._clock.now()).total_seconds()
        return recorded if abs(recorded - today) < CLOSE_SECONDS else today


def _next_approval(tape: Tape) -> ApprovalRequested | None:
    bodies = (body for _, body in tape.rest())
    return next((body for body in bodies if isinstance(body, ApprovalRequested)), None)
