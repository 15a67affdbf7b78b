"""A tool door that is as small as its port allows."""

from __future__ import annotations

from datetime import timedelta

from podium.domain.errors import CallInDoubt, NotPossibleNow
from podium.domain.events import (
    ApprovalRequested,
    ToolCompleted,
    ToolFailed,
    ToolRefused,
    ToolRequested,
)
from podium.domain.gating import (
    Approval,
    Call,
    CallRecord,
    CallStatus,
    Decision,
    Effect,
    GateContext,
    Outcome,
    Permit,
    Receipt,
    Refusal,
)
from podium.ports import Checkpoint, Clock, Gate, Ids, Store, Tx
from podium.testing.clock import FixedClock, SteadyIds


class ScriptedToolDoor:
    """Both halves of a call, recorded in the store, judged by the gate without any context.

    Budgets, quotas and granted approvals are for the real door; a call that was requested and
    never settled is in doubt here whatever its tool declares.
    """

    def __init__(
        self, store: Store, gate: Gate, clock: Clock | None = None, ids: Ids | None = None
    ) -> None:
        self._store = store
        self._gate = gate
        self._clock = clock if clock is not None else FixedClock()
        self._ids = ids if ids is not None else SteadyIds()

    async def request(self, call: Call) -> Permit | Refusal:
        return await self._store.write(lambda tx: self._judge(tx, call))

    async def look_back(self, run_id: str, step_key: str) -> None:
        open_calls = await self._store.read(lambda view: view.calls(run_id, CallStatus.REQUESTED))
        for record in open_calls:
            if record.step_key == step_key:
                raise CallInDoubt(record.key, record.tool)

    async def settle(
        self, permit: Permit, outcome: Outcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        def work(tx: Tx) -> Receipt:
            receipt = self._record_end(tx, permit, outcome)
            if checkpoint is not None:
                checkpoint(tx, outcome)
            return receipt

        return await self._store.write(work)

    def _judge(self, tx: Tx, call: Call) -> Permit | Refusal:
        earlier = tx.call(call.key)
        if earlier is not None and earlier.status is CallStatus.REQUESTED:
            raise CallInDoubt(call.key, call.tool)
        if earlier is not None and earlier.outcome is not None:
            return Permit(
                call=call,
                digest=earlier.digest,
                decision=earlier.decision,
                settled=earlier.outcome,
            )
        decision = self._gate.decide(call, GateContext(tool=None, now=self._clock.now()))
        if decision.effect is Effect.ALLOW:
            return self._permit(tx, call, decision)
        return self._refuse(tx, call, decision)

    def _permit(self, tx: Tx, call: Call, decision: Decision) -> Permit:
        digest = call.digest()
        tx.save_call(
            CallRecord(
                key=call.key,
                run_id=call.run_id,
                step_key=call.step_key,
                tool=call.tool,
                digest=digest,
                status=CallStatus.REQUESTED,
                decision=decision,
                arguments=call.arguments,
                requested_at=self._clock.now(),
            )
        )
        tx.append(
            call.run_id,
            ToolRequested(
                call=call.key,
                tool=call.tool,
                arguments=call.arguments,
                digest=digest,
                tier=str(decision.tier),
                rule=decision.rule,
                reason=decision.reason,
            ),
        )
        return Permit(call=call, digest=digest, decision=decision)

    def _refuse(self, tx: Tx, call: Call, decision: Decision) -> Refusal:
        asked = self._ask(tx, call, decision) if decision.effect is Effect.ASK else None
        tx.append(
            call.run_id,
            ToolRefused(
                call=call.key,
                tool=call.tool,
                arguments=call.arguments,
                effect="deny" if asked is None else "ask",
                tier=str(decision.tier),
                rule=decision.rule,
                reason=decision.reason,
                approval_id=asked.id if asked else None,
            ),
        )
        return Refusal(
            call=call,
            decision=decision,
            say=f"waiting for approval {asked.id}; end your turn" if asked else decision.reason,
            approval_id=asked.id if asked else None,
            deadline=asked.deadline if asked else None,
        )

    def _ask(self, tx: Tx, call: Call, decision: Decision) -> Approval:
        approval = Approval(
            id=self._ids.new("apr"),
            run_id=call.run_id,
            call_key=call.key,
            digest=call.digest(),
            tool=call.tool,
            summary=f"{call.tool} {call.arguments}",
            arguments=call.arguments,
            tier=decision.tier,
            requested_at=self._clock.now(),
            deadline=self._clock.now() + timedelta(seconds=self._gate.approval_seconds),
        )
        tx.save_approval(approval)
        tx.append(
            call.run_id,
            ApprovalRequested(
                approval_id=approval.id,
                call=call.key,
                tool=call.tool,
                summary=approval.summary,
                digest=approval.digest,
                tier=str(approval.tier),
                deadline=approval.deadline,
            ),
        )
        return approval

    def _record_end(self, tx: Tx, permit: Permit, outcome: Outcome) -> Receipt:
        call, now = permit.call, self._clock.now()
        record = tx.call(call.key)
        if record is None:
            raise NotPossibleNow(
                f"call {call.key!r} was never requested; ask the door for leave first"
            )
        status = CallStatus.COMPLETED if outcome.ok else CallStatus.FAILED
        receipt = tx.add_receipt(
            Receipt(
                run_id=call.run_id,
                number=0,
                call_key=call.key,
                tool=call.tool,
                digest=permit.digest,
                status="completed" if outcome.ok else "failed",
                tier=permit.decision.tier,
                rule=permit.decision.rule,
                error=outcome.error,
                requested_at=record.requested_at,
                settled_at=now,
            )
        )
        tx.save_call(
            record.model_copy(
                update={
                    "status": status,
                    "outcome": outcome,
                    "receipt_number": receipt.number,
                    "settled_at": now,
                }
            )
        )
        end: ToolCompleted | ToolFailed
        if outcome.ok:
            end = ToolCompleted(
                call=call.key, tool=call.tool, result=outcome.result, receipt=receipt.number
            )
        else:
            end = ToolFailed(
                call=call.key, tool=call.tool, error=outcome.error, receipt=receipt.number
            )
        tx.append(call.run_id, end)
        return receipt
