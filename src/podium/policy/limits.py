"""Limits of a call that the rules would let through: mode, budgets, quotas, a person's approval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.core.decisions import (
    Access,
    ApprovalStatus,
    Budget,
    BudgetState,
    Decision,
    Effect,
    GateContext,
    Tier,
)
from podium.policy.facts import CallFacts
from podium.policy.policy import Undecidable
from podium.policy.refusal import CallDenied

ACTING_MODES = frozenset({"supervised", "autonomous"})
LOOKING_MODES = frozenset({"sensing", "dry-run"})
DEFAULT_TIER = Tier.T1
DEFAULT_APPROVAL_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class PolicyLimits:
    """Limits to calls without a person."""

    tiers: Mapping[str, Tier]
    """The highest tier without asking, by mode."""
    caps: Mapping[str, Tier]
    """Tiers to which a project tightened that; a rule's `up_to_tier` does not reach beyond."""
    budgets: tuple[Budget, ...]
    approval_seconds: float
    undecidable: Undecidable = "sandbox"
    """Treatment of confined commands with words that are only known when they run."""

    def tier_without_asking(self, mode: str, up_to_tier: Tier | None) -> Tier:
        limit = self.tiers.get(mode, DEFAULT_TIER)
        if up_to_tier is not None:
            limit = max(limit, up_to_tier)
        return min(limit, self.caps.get(mode, Tier.T4))


def refuse_by_mode(facts: CallFacts, wished: Decision, inherent: Tier) -> CallDenied | None:
    """In modes that only look, nothing passes but reads that nobody need be asked about."""
    mode = facts.context.mode
    if mode not in LOOKING_MODES:
        return None
    writes = any(touch.access is not Access.READ for touch in facts.touches())
    # What led to a read makes it no less a read: provenance does not count here.
    if inherent is Tier.T0 and not writes and wished.effect is Effect.ALLOW:
        return None
    if mode == "sensing":
        return CallDenied("mode:sensing", "sensing only reads: nothing above T0 is done")
    if _for_review(facts, wished):
        return None
    would = f"{wished.effect} by rule {wished.rule!r}"
    return CallDenied("mode:dry-run", f"a dry run changes nothing; this would be {would}")


def _for_review(facts: CallFacts, wished: Decision) -> bool:
    """Tell whether a dry run goes so far: a file for people to review, or a question whose yes is only recorded."""
    tool = facts.context.tool
    if tool is None or tool.in_dry_run == "nothing":
        return False
    if tool.in_dry_run == "act":
        return wished.effect is Effect.ALLOW
    return wished.effect is Effect.ASK and granted(facts, wished) is None


def refuse_by_spending(context: GateContext) -> CallDenied | None:
    """The first budget or quota that has nothing left."""
    for state in context.budgets:
        if (what := _exhausted(state)) is not None:
            scope = state.budget.scope
            return CallDenied(f"budget:{scope}", f"the budget of this {scope}, {what}, is spent")
    for used in context.quotas:
        quota = used.quota
        if used.used >= quota.limit:
            return CallDenied(
                f"quota:{quota.name}",
                f"{quota.name!r} happened {used.used} times within {quota.seconds:g} seconds and "
                f"{quota.limit} are allowed; try again later",
            )
    return None


def _exhausted(state: BudgetState) -> str | None:
    budget, used = state.budget, state.used
    if budget.usd is not None and used.usd >= budget.usd:
        return f"{budget.usd:g} USD"
    if budget.tokens is not None and used.input_tokens + used.output_tokens >= budget.tokens:
        return f"{budget.tokens} tokens"
    if budget.turns is not None and used.turns >= budget.turns:
        return f"{budget.turns} turns"
    if budget.seconds is not None and used.seconds >= budget.seconds:
        return f"{budget.seconds:g} seconds"
    return None


def granted(facts: CallFacts, asked: Decision) -> Decision | None:
    """The question answered with yes, when people approved exactly this call and in time."""
    approval, context = facts.context.approval, facts.context
    if approval is None or approval.status is not ApprovalStatus.GRANTED:
        return None
    if approval.deadline <= context.now or approval.digest != facts.call.digest(context.tool):
        return None
    if asked.approvers and tuple(grant.group for grant in approval.grants) != asked.approvers:
        return None  # Today's policy wants other people than those who said yes.
    people = ", ".join(grant.by for grant in approval.grants) or "a person"
    return asked.model_copy(
        update={
            "effect": Effect.ALLOW,
            "rule": f"approval:{approval.id}",
            "reason": f"approved by {people}",
        }
    )
