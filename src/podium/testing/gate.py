"""A gate whose decisions are written down beforehand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from podium.domain.gating import Budget, Call, Decision, Effect, GateContext, Quota, Tier

Judge = Callable[[Call, GateContext], Decision]


def decision(effect: Effect, reason: str = "as the test says", tier: Tier = Tier.T1) -> Decision:
    """A decision of the rule `scripted`."""
    return Decision(effect=effect, rule="scripted", reason=reason, tier=tier)


class ScriptedGate:
    """Decides by a list, one after the other, or by a function. Fails closed like the real one."""

    def __init__(
        self,
        decisions: Iterable[Decision | Effect] | Judge = (),
        *,
        quotas: tuple[Quota, ...] = (),
        budgets: tuple[Budget, ...] = (),
        approval_seconds: float = 3600.0,
    ) -> None:
        self._judge = decisions if callable(decisions) else _one_by_one(decisions)
        self._quotas = quotas
        self._budgets = budgets
        self._approval_seconds = approval_seconds
        self.judged: list[Call] = []

    def decide(self, call: Call, context: GateContext) -> Decision:
        self.judged.append(call)
        try:
            return self._judge(call, context)
        except Exception as fault:  # a crashed check means deny, whatever crashed
            return decision(Effect.DENY, f"the check crashed: {fault!r}")

    def passed_over(self, real_path: str, root: str) -> bool:
        return False

    def quotas_for(self, call: Call, context: GateContext) -> tuple[Quota, ...]:
        return self._quotas

    @property
    def budgets(self) -> tuple[Budget, ...]:
        return self._budgets

    @property
    def approval_seconds(self) -> float:
        return self._approval_seconds


def _one_by_one(decisions: Iterable[Decision | Effect]) -> Judge:
    left = deque(decisions)

    def judge(call: Call, context: GateContext) -> Decision:
        if not left:
            return decision(Effect.DENY, f"no decision is left for {call.tool!r}")
        given = left.popleft()
        return given if isinstance(given, Decision) else decision(given)

    return judge
