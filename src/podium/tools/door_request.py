"""First transaction of the tool door: reads, judges and records a requested call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from podium.core.approval_steps import hold_plan, reserve, store_expired
from podium.core.decisions import (
    Approval,
    ApprovalStatus,
    Budget,
    BudgetState,
    BuiltInRule,
    Call,
    CallRecord,
    CallStatus,
    Decision,
    Effect,
    GateContext,
    Permit,
    Quota,
    QuotaState,
    Refusal,
    Tier,
    ToolSpec,
    usage_counted,
)
from podium.core.errors import CallInDoubt, LeaseLost
from podium.core.events import ToolRefused, ToolRequested
from podium.core.processes import FolderConfinement
from podium.core.work import Run, run_settings_of
from podium.ports import Clock, Gate, Ids, Transaction
from podium.tools import output_text
from podium.tools.call_replay import answer_from_record, look_back
from podium.tools.door_call import (
    CallRequest,
    DoorSettings,
    as_for_this_call,
    ask_person,
    claim_reversal,
    newest_approval,
    plan_approval,
    reversal_claimed,
)
from podium.tools.output_text import bound

SpecLookup = Callable[[str], ToolSpec | None]

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class DiffMissing(Exception):
    """A person is to be asked about overwriting a file: read it outside of the transaction, then answer again."""


class SpecDigests:
    """Digests of specs, each made once. A registry gives the very same spec for a name every time."""

    def __init__(self) -> None:
        self._digests: dict[str, tuple[ToolSpec, str]] = {}

    def of(self, spec: ToolSpec | None) -> str:
        """Empty for None. Known by the object itself, for a copy of a spec may say something else."""
        if spec is None:
            return ""
        cached, digest = self._digests.get(spec.name, (None, ""))
        if cached is not spec:
            digest = spec.digest()
            self._digests[spec.name] = (spec, digest)
        return digest


@dataclass(frozen=True)
class RequestJudge:
    """Answers requests inside a transaction. Writes whatever the answer rests on."""

    gate: Gate
    specs: SpecLookup
    clock: Clock
    ids: Ids
    settings: DoorSettings
    held: Callable[[str], FolderConfinement | None]
    digests: SpecDigests = field(default_factory=SpecDigests)

    def answer(
        self, tx: Transaction, call: Call, diff: str | None = None
    ) -> Permit | Refusal | CallInDoubt:
        """`CallInDoubt` is given back, not raised, so that the transaction commits.

        Raises `DiffMissing` when a person is to be asked about overwriting a file and `diff` is None.
        """
        run = self._refuse_strangers(tx, call.run_id)
        spec = self.specs(call.tool)
        digest = call.digest(spec, self.digests.of(spec))
        request = CallRequest(
            call=call, spec=spec, digest=digest, now=self.clock.now(), run=run, diff=diff
        )
        record = tx.call(call.key)
        replayed = answer_from_record(tx, request, record) if record else None
        return replayed or self._judge(tx, request)

    def look_back(self, tx: Transaction, run_id: str, step_key: str) -> CallInDoubt | None:
        self._refuse_strangers(tx, run_id)
        return look_back(tx, run_id, step_key, self._is_idempotent, self.clock.now())

    def _is_idempotent(self, tool: str) -> bool:
        spec = self.specs(tool)
        return spec is not None and spec.idempotent

    def _refuse_strangers(self, tx: Transaction, run_id: str) -> Run | None:
        """A process that lost the run while it was stopped may not act for it any more.

        Gives the run, if it had to be looked up.
        """
        run = tx.run(run_id) if self.settings.owner else None
        if run is not None and run.owner != self.settings.owner:
            raise LeaseLost(run_id)
        return run

    def _judge(self, tx: Transaction, request: CallRequest) -> Permit | Refusal:
        approval = self._granted(tx, request)
        decision, quotas = self._decide(tx, request, approval)
        if decision.effect is Effect.ALLOW:
            if (claimed := reversal_claimed(tx, request)) is not None:
                return self._deny(tx, request, claimed)
            return self._allow(tx, request, decision, quotas, approval)
        if decision.effect is Effect.ASK:
            return self._ask(tx, request, decision)
        return self._deny(tx, request, decision)

    def _granted(self, tx: Transaction, request: CallRequest) -> Approval | None:
        """A yes for exactly this call that is still good."""
        approval = tx.approval_for(request.digest, (ApprovalStatus.GRANTED,))
        if approval and not expired(tx, approval, request.now):
            return approval
        return plan_approval(tx, request)

    def _decide(
        self, tx: Transaction, request: CallRequest, approval: Approval | None
    ) -> tuple[Decision, tuple[Quota, ...]]:
        """The gate's word. Whatever it raises is a no."""
        try:
            run_settings = run_settings_of(request.run or tx.run(request.call.run_id))
            root = request.call.root or self.settings.root
            held = self.held(root)
            context = GateContext(
                tool=request.spec,
                mode=run_settings.mode_with(self.settings.mode),
                attended=self.settings.attended,
                root=root,
                confined=held is not None,
                holds_zones=held is not None and held.holds_zones,
                undoable=held is None or held.undoable,
                network=held.network if held else "open",
                hosts=held.hosts if held else (),
                approval=_approval_for_gate(approval, request),
                now=request.now,
            )
            quotas = self.gate.quotas_for(request.call, context)
            budgets = (*self.gate.budgets, *self.settings.budgets, *run_settings.budgets)
        except Exception as error:
            return _crashed(request, error), ()
        update = {
            "quotas": tuple(_quota_state(tx, quota, request) for quota in quotas),
            "budgets": tuple(_budget_state(tx, budget, request) for budget in budgets),
        }
        try:
            return self.gate.decide(request.call, context.model_copy(update=update)), quotas
        except Exception as error:
            return _crashed(request, error), ()

    def _allow(
        self,
        tx: Transaction,
        request: CallRequest,
        decision: Decision,
        quotas: tuple[Quota, ...],
        approval: Approval | None,
    ) -> Permit:
        """A yes that stands for this call is used by it, even where today's policy needs none."""
        tx.must_be_able_to_seal()
        for quota in quotas:
            tx.count(_counter(quota), request.now)
        if approval is not None:
            tx.save_approval(_held(approval, request))
        approval_id = approval.id if approval else None
        claim_reversal(tx, request)
        disposable = self._is_disposable(request)
        tx.save_call(
            request.record(CallStatus.REQUESTED, decision, approval_id, disposable=disposable)
        )
        tx.append(request.call.run_id, self._requested(request, decision, approval_id))
        return Permit(
            call=request.call,
            digest=request.digest,
            decision=decision,
            approval_id=approval_id,
            said=approval.said if approval else "",
        )

    def _is_disposable(self, request: CallRequest) -> bool:
        """Check that a rollback of the workspace would undo the call, whatever it does."""
        within = request.spec.within_workspace if request.spec else "no"
        root = request.call.root or self.settings.root
        held = self.held(root)
        if held is None or not held.disposable or within == "no":
            return False
        if within == "commands" and not held.is_offline:
            return False
        return all(Path(use.real).is_relative_to(root) for use in request.call.paths)

    def _deny(self, tx: Transaction, request: CallRequest, decision: Decision) -> Refusal:
        self._record_refusal(tx, request, decision)
        return Refusal(call=request.call, decision=decision, say=output_text.denied(decision))

    def _ask(self, tx: Transaction, request: CallRequest, decision: Decision) -> Refusal:
        if problem := output_text.unreadable(request.call, request.spec):
            no = {"effect": Effect.DENY, "reason": f"{decision.reason}; {problem}"}
            return self._deny(tx, request, decision.model_copy(update=no))
        newest = newest_approval(tx, request.digest)
        if newest is not None and newest.status is ApprovalStatus.REJECTED:
            no = {
                "effect": Effect.DENY,
                "rule": f"approval:{newest.id}",
                "reason": output_text.rejected(newest),
            }
            return self._deny(tx, request, decision.model_copy(update=no))
        pending = newest if newest and newest.status is ApprovalStatus.PENDING else None
        if pending is None or expired(tx, pending, request.now):
            try:
                deadline = request.now + timedelta(seconds=self.gate.approval_seconds)
            except Exception as error:
                return self._deny(tx, request, _crashed(request, error))
            if request.lacks_diff:
                raise DiffMissing
            pending = ask_person(tx, request, decision, self.ids.new("apr"), deadline)
        self._record_refusal(tx, request, decision, pending.id)
        return Refusal(
            call=request.call,
            decision=decision,
            say=output_text.waiting(pending.id, pending.deadline),
            approval_id=pending.id,
            deadline=pending.deadline,
        )

    def _record_refusal(
        self,
        tx: Transaction,
        request: CallRequest,
        decision: Decision,
        approval_id: str | None = None,
    ) -> None:
        refused = request.record(CallStatus.REFUSED, decision, approval_id)
        if _was_refused_before(tx.call(request.call.key), refused):
            return
        tx.save_call(refused)
        tx.append(
            request.call.run_id,
            ToolRefused(
                call=request.call.key,
                tool=request.call.tool,
                arguments=bound(request.call.arguments, self.settings.result_bytes),
                effect="ask" if decision.effect is Effect.ASK else "deny",
                tier=str(decision.tier),
                rule=decision.rule,
                reason=decision.reason,
                approval_id=approval_id,
            ),
        )

    def _requested(
        self, request: CallRequest, decision: Decision, approval_id: str | None
    ) -> ToolRequested:
        return ToolRequested(
            call=request.call.key,
            tool=request.call.tool,
            arguments=bound(request.call.arguments, self.settings.result_bytes),
            digest=request.digest,
            tier=str(decision.tier),
            rule=decision.rule,
            reason=decision.reason,
            approval_id=approval_id,
            observed=request.call.observed,
            files=request.call.files,
        )


def _was_refused_before(earlier: CallRecord | None, refused: CallRecord) -> bool:
    """Check that the same call was refused before in the same way, by a turn that is repeated after a crash."""
    if earlier is None or earlier.status is not CallStatus.REFUSED:
        return False
    same = (earlier.digest, earlier.approval_id, earlier.decision.effect, earlier.decision.reason)
    return same == (
        refused.digest,
        refused.approval_id,
        refused.decision.effect,
        refused.decision.reason,
    )


def expired(tx: Transaction, approval: Approval, now: datetime) -> bool:
    """Check whether the deadline passed. If so, record that."""
    return store_expired(tx, approval, now) is not approval


def _approval_for_gate(approval: Approval | None, request: CallRequest) -> Approval | None:
    return as_for_this_call(approval, request) if approval and approval.plan_hash else approval


def _held(approval: Approval, request: CallRequest) -> Approval:
    if approval.plan_hash:
        return hold_plan(approval, request.now)
    return reserve(approval, request.call.key, request.digest, request.now)


def _crashed(request: CallRequest, error: Exception) -> Decision:
    return Decision(
        effect=Effect.DENY,
        rule=BuiltInRule.GATE_ERROR,
        reason=f"the policy could not judge this call ({type(error).__name__}: {error})",
        tier=request.spec.tier if request.spec else Tier.T4,
    )


def _counter(quota: Quota) -> str:
    return f"quota:{quota.name}"


def _quota_state(tx: Transaction, quota: Quota, request: CallRequest) -> QuotaState:
    since = request.now - timedelta(seconds=quota.seconds)
    return QuotaState(quota=quota, used=int(tx.counted(_counter(quota), since)))


def _budget_state(tx: Transaction, budget: Budget, request: CallRequest) -> BudgetState:
    """A budget of a single call is untouched before the call."""
    if budget.scope == "call":
        return BudgetState(budget=budget)
    used = usage_counted(
        lambda counter: tx.counted(counter, _BEGINNING),
        budget.scope,
        request.call.run_id,
        request.call.step_key,
        request.now,
    )
    return BudgetState(budget=budget, used=used)
