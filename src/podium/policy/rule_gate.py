"""The gate itself: one pure decision for each call, its risk tier, and limits by mode, budgets, quotas and approvals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.core.decisions import (
    Access,
    ApprovalStatus,
    Budget,
    BudgetState,
    BuiltInRule,
    Call,
    Decision,
    Effect,
    GateContext,
    Quota,
    Tier,
    TierTerm,
)
from podium.core.model import Json
from podium.policy.facts import CallFacts, gather, refuse_paths
from podium.policy.policy import Undecidable
from podium.policy.refusal import CallDenied
from podium.policy.rules import CompiledMatcher, PolicyRules, RuleVerdict
from podium.policy.shell import printable
from podium.policy.zones import (
    HARMLESS_PATHS,
    CompiledZone,
    TouchedPath,
    WritablePaths,
    ZoneSet,
    plain_path,
    relative_to,
)

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
        return CallDenied("mode:sensing", "sensing only reads; calls above T0 are denied")
    if _for_review(facts, wished):
        return None
    would = f"{wished.effect} by rule {wished.rule!r}"
    return CallDenied("mode:dry-run", f"a dry run changes nothing; the decision would be {would}")


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
            return CallDenied(f"budget:{scope}", f"the budget of this {scope} is spent: {what}")
    for used in context.quotas:
        quota = used.quota
        if used.used >= quota.limit:
            return CallDenied(
                f"quota:{quota.name}",
                f"quota {quota.name!r} is exhausted: {used.used} of {quota.limit} within {quota.seconds:g} "
                "seconds; try again later",
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


_SECRET = re.compile(r"secret://(\w*)")


class TierComputation:
    """The risk of a call, and the reasons."""

    def __init__(self, factors: tuple[TierTerm, ...], provenance: tuple[str, ...] = ()) -> None:
        self.factors = factors
        self.provenance = provenance
        self.inherent = max((term.tier for term in factors), default=Tier.T4)
        """The tier by what the call does, whoever led to it. Nothing known is the worst."""
        self.tier = Tier(min(self.inherent + 1, Tier.T4)) if provenance else self.inherent
        """Untrusted sources make a call one tier riskier, up to the highest."""

    @property
    def for_record(self) -> tuple[TierTerm, ...]:
        if not self.provenance:
            return self.factors
        because = (
            f"{self.inherent} raised by one because of its provenance: {', '.join(self.provenance)}"
        )
        return (*self.factors, TierTerm(tier=self.tier, because=because))

    @property
    def main_reason(self) -> str:
        return next((term.because for term in self.for_record if term.tier == self.tier), "unknown")

    def plus(self, factors: Sequence[TierTerm]) -> TierComputation:
        return TierComputation((*self.factors, *factors), self.provenance) if factors else self


def add_up(facts: CallFacts, zones: ZoneSet) -> TierComputation:
    """The terms that a call's tool, paths and commands give."""
    return TierComputation(tuple(_factors(facts, zones)), facts.call.provenance)


def _factors(facts: CallFacts, zones: ZoneSet) -> Iterator[TierTerm]:
    tool = facts.context.tool
    if tool is not None:
        yield TierTerm(tier=tool.tier, because=f"{tool.name} is registered as {tool.tier}")
        if tool.tier_argument is not None:
            yield _handed_on(facts.call.arguments.get(tool.tier_argument))
    if facts.refusal is not None:
        yield TierTerm(tier=facts.refusal.tier, because=facts.refusal.reason)
    for touch in facts.path_touches:
        if touch.access is Access.DELETE:
            yield TierTerm(tier=Tier.T2, because=f"removes {touch.text!r}")
    confined = facts.context.confined and facts.starts_commands
    for touch in facts.touches():
        yield from _path_factors(touch, zones, facts.context.root, confined=confined)
    for use in facts.uses:
        yield from use.factors
    for name in dict.fromkeys(_secrets(facts.call.arguments)):
        yield TierTerm(tier=Tier.T2, because=f"receives the secret {name!r}")


def _handed_on(tier: Json) -> TierTerm:
    """The factor of what is handed on: as risky as it was found to be; what was not found out is the worst."""
    if isinstance(tier, str) and tier in Tier.__members__:
        return TierTerm(tier=Tier[tier], because=f"what it passes on has the tier {tier}")
    return TierTerm(tier=Tier.T4, because="the tier of what it passes on is unknown")


def _path_factors(
    touch: TouchedPath, zones: ZoneSet, root: str, *, confined: bool
) -> Iterator[TierTerm]:
    """A confined command finds nothing outside but what is there for everybody."""
    if not confined and any(
        relative_to(path, root) is None and path not in HARMLESS_PATHS for path in touch.paths
    ):
        yield TierTerm(tier=Tier.T2, because=f"{touch.text!r} is outside the workspace")
    for zone in zones.near(touch, root):
        tier = zone.write_tier if touch.may_write else zone.read_tier
        if tier is not None and zone.holds(touch, root):
            yield TierTerm(tier=tier, because=f"{touch.text!r} is in zone {zone.name!r}")
        elif not confined and zone.lies_below(touch, root):
            because = f"{touch.text!r} may contain files of zone {zone.name!r}"
            yield TierTerm(tier=max(Tier.T2, tier or Tier.T2), because=because)


def _secrets(value: Json) -> Iterator[str]:
    """Names of the secrets that texts in a value stand for."""
    if isinstance(value, str):
        if "secret://" in value:
            yield from _SECRET.findall(value)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secrets(name)
            yield from _secrets(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _secrets(inner)


class RuleGate:
    """Judges calls by compiled rules. Made by `compile_policy`."""

    def __init__(
        self,
        rules: PolicyRules,
        zones: Sequence[CompiledZone],
        writable: WritablePaths,
        quotas: Sequence[tuple[CompiledMatcher, Quota]],
        limits: PolicyLimits,
    ) -> None:
        self._rules = rules
        self._zones = tuple(zones)
        self._guarded = ZoneSet(zone for zone in zones if zone.kind in ("forbidden", "read-only"))
        self._weighed = ZoneSet(
            zone
            for zone in zones
            if zone.read_tier or zone.write_tier or zone.kind in ("forbidden", "read-only")
        )
        self._writable = writable
        self._quotas = tuple(quotas)
        self._limits = limits

    @property
    def budgets(self) -> tuple[Budget, ...]:
        return self._limits.budgets

    @property
    def approval_seconds(self) -> float:
        return self._limits.approval_seconds

    def decide(self, call: Call, context: GateContext) -> Decision:
        """Allow, deny or ask. Whatever goes wrong in here is a denial by rule `gate-error`."""
        try:
            return self._decided(call, context)
        except Exception as error:
            return Decision(
                effect=Effect.DENY,
                rule=BuiltInRule.GATE_ERROR,
                reason=f"a check of {call.tool!r} failed ({type(error).__name__}: {error}), so the call is denied",
                tier=Tier.T4,
            )

    def quotas_for(self, call: Call, context: GateContext) -> tuple[Quota, ...]:
        """The quotas this call counts against; all of them when that cannot be told."""
        try:
            quotas = [quota for quota in self._quotas if quota[0].means_tool(call.tool)]
            if not quotas:
                return ()
            facts = gather(call, context)
            uses = facts.uses or (None,)
            return tuple(
                quota for matcher, quota in quotas if any(matcher.fits(facts, use) for use in uses)
            )
        except Exception:
            return tuple(quota for _, quota in self._quotas)

    def passed_over(self, real_path: str, root: str) -> bool:
        """Tell whether a tool that walks through folders must leave this file out.

        A walk is judged by the folder it starts in; what lies in a zone that is forbidden, or that
        has a tier of its own for reading, has to be asked for by name.
        """
        return any(
            (zone.kind == "forbidden" or zone.read_tier is not None)
            and zone.path_globs.covers(real_path, root)
            for zone in self._zones
        )

    def change_risk(self, path: str, root: str) -> tuple[Tier, tuple[str, ...]]:
        """Tier of a change to a file of a workspace, and the zones with a rule of their own that it lies in."""
        real_path = f"{root}/{path}"
        zones = [
            zone
            for zone in self._zones
            if (zone.write_tier is not None or zone.kind in ("forbidden", "read-only"))
            and zone.path_globs.covers(real_path, root)
        ]
        # A zone that nobody may write in gives no tier: a change that is there all the same is as risky as any of shared state.
        tiers = [Tier.T2 if zone.write_tier is None else zone.write_tier for zone in zones]
        return max([Tier.T1, *tiers]), tuple(dict.fromkeys(zone.name for zone in zones))

    @property
    def closed_paths(self) -> tuple[str, ...]:
        """The files that zones keep from being changed, as far as they have plain names: the kernel can hold those.

        From the workspace on; each covers all beneath it.
        """
        paths = {
            path: None
            for zone in self._zones
            if zone.kind in ("forbidden", "read-only")
            for glob in zone.globs
            if (path := plain_path(glob))
        }
        return tuple(paths)

    def _decided(self, call: Call, context: GateContext) -> Decision:
        facts = gather(call, context)
        risk = add_up(facts, self._weighed)
        refusal = self._refusal(facts)
        if refusal is not None:
            return _answer(Effect.DENY, refusal.rule, refusal.reason, risk)
        verdicts = self._rules.judge(facts)
        spoken = [verdict for verdict in verdicts if verdict is not None]
        risk = risk.plus(_rule_factors(spoken))
        for verdict in spoken:
            if verdict.effect is Effect.DENY:
                return _answer(Effect.DENY, verdict.rule.name, verdict.rule.reason, risk)
        if len(spoken) < len(verdicts):
            return _answer(Effect.DENY, BuiltInRule.NO_RULE, _no_rule_reason(facts, verdicts), risk)
        return self._within_limits(facts, spoken, risk)

    def _refusal(self, facts: CallFacts) -> CallDenied | None:
        """The first built-in check that says no."""
        context = facts.context
        if context.tool is None:
            return CallDenied(BuiltInRule.UNKNOWN_TOOL, f"unknown tool {facts.call.tool!r}")
        if context.tool.name != facts.call.tool:
            return CallDenied(
                BuiltInRule.UNKNOWN_TOOL, f"{facts.call.tool!r} does not match the registered tool"
            )
        if context.mode not in ACTING_MODES | LOOKING_MODES:
            return CallDenied(BuiltInRule.UNKNOWN_MODE, f"unknown mode {context.mode!r}")
        if facts.refusal is not None:
            return facts.refusal
        if self._limits.undecidable == "deny" and (unknown := _run_time_reason(facts)):
            return CallDenied(BuiltInRule.UNDECIDABLE_COMMAND, f"{unknown}; write it out")
        return refuse_paths(facts, self._guarded, self._writable)

    def _within_limits(
        self, facts: CallFacts, verdicts: Sequence[RuleVerdict], risk: TierComputation
    ) -> Decision:
        """Decide a call that the rules let through or ask about, by mode, budgets, quotas and tier."""
        wished = self._wished(facts, verdicts, risk)
        refusal = refuse_by_mode(facts, wished, risk.inherent)
        refusal = refusal or refuse_by_spending(facts.context)
        if refusal is not None:
            return _answer(Effect.DENY, refusal.rule, refusal.reason, risk)
        if wished.effect is Effect.ASK:
            return granted(facts, wished) or wished
        return wished

    def _wished(
        self, facts: CallFacts, verdicts: Sequence[RuleVerdict], risk: TierComputation
    ) -> Decision:
        mode = facts.context.mode
        asking = [verdict for verdict in verdicts if verdict.effect is Effect.ASK]
        if asking:
            approvers = _approvers(asking, facts.context)
            return _answer(Effect.ASK, _named(asking), _reasons(asking), risk, approvers)
        if self._limits.undecidable == "ask" and (unknown := _run_time_reason(facts)):
            approvers = _approvers(asking, facts.context)
            return _answer(Effect.ASK, BuiltInRule.UNDECIDABLE_COMMAND, unknown, risk, approvers)
        limit = min(
            self._limits.tier_without_asking(mode, verdict.rule.up_to_tier) for verdict in verdicts
        )
        if risk.tier > limit:
            reason = f"{risk.tier} needs a person in {mode} mode: {risk.main_reason}"
            approvers = _approvers(asking, facts.context)
            return _answer(Effect.ASK, f"tier:{risk.tier}", reason, risk, approvers)
        return _answer(Effect.ALLOW, _named(verdicts), _reasons(verdicts), risk)


def _run_time_reason(facts: CallFacts) -> str:
    """Name a command with words that are only known when it runs; empty when none has."""
    for use in facts.uses:
        if use.computed:
            command_line = " ".join(map(printable, use.command.argv))[:200]
            return f"what {command_line!r} does is only known when it runs"
    return ""


def _answer(
    effect: Effect, rule: str, reason: str, risk: TierComputation, approvers: tuple[str, ...] = ()
) -> Decision:
    return Decision(
        effect=effect,
        rule=rule,
        reason=reason,
        tier=risk.tier,
        arithmetic=risk.for_record,
        approvers=approvers,
    )


def _rule_factors(verdicts: Sequence[RuleVerdict]) -> list[TierTerm]:
    return [
        TierTerm(
            tier=verdict.rule.tier, because=f"rule {verdict.rule.name!r} sets at least this tier"
        )
        for verdict in verdicts
        if verdict.rule.tier is not None
    ]


def _approvers(asking: Sequence[RuleVerdict], context: GateContext) -> tuple[str, ...]:
    """The groups that rules ask for, in order; else those of the tool."""
    named = tuple(dict.fromkeys(name for verdict in asking for name in verdict.approvers))
    return named or (context.tool.approvals if context.tool is not None else ())


def _named(verdicts: Sequence[RuleVerdict]) -> str:
    return "+".join(dict.fromkeys(verdict.rule.name for verdict in verdicts))


def _reasons(verdicts: Sequence[RuleVerdict]) -> str:
    return "; ".join(dict.fromkeys(verdict.rule.reason for verdict in verdicts))


def _no_rule_reason(facts: CallFacts, verdicts: Sequence[RuleVerdict | None]) -> str:
    if not facts.uses:
        return f"no rule covers {facts.call.tool!r}, and calls without a rule are denied"
    unspoken = facts.uses[list(verdicts).index(None)]
    command_line = " ".join(map(printable, unspoken.argv))[:200]
    return f"no rule covers the command {command_line!r}, and commands without a rule are denied"
