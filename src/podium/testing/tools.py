"""Fakes of the gate, the tool door and the toolbox."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from jsonschema import Draft202012Validator

from podium.core.decisions import (
    Approval,
    Budget,
    Call,
    CallOutcome,
    CallRecord,
    CallStatus,
    Decision,
    Effect,
    GateContext,
    Permit,
    Quota,
    Receipt,
    Refusal,
    Tier,
    ToolSpec,
)
from podium.core.errors import BadArguments, CallInDoubt, NotPossibleNow, UnknownTool
from podium.core.events import (
    ApprovalRequested,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolRefused,
    ToolRequested,
)
from podium.core.model import Json
from podium.core.settlement import ReceiptStatus, draft_receipt
from podium.ports import Checkpoint, Clock, Gate, Ids, Store, ToolDoor, Transaction
from podium.testing.clock import FixedClock, SteadyIds

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
        except Exception as error:  # a crashed check means deny, whatever crashed
            return decision(Effect.DENY, f"the check crashed: {error!r}")

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
        effect = left.popleft()
        return effect if isinstance(effect, Decision) else decision(effect)

    return judge


class ScriptedToolDoor:
    """Both halves of a call, recorded in the store, judged by the gate without any context.

    Budgets, quotas and granted approvals are for the real door; a call of Podium's own that was
    requested and never settled is in doubt here whatever its tool declares.
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
        await self._store.write(lambda tx: self._look_back(tx, run_id, step_key))

    async def settle(
        self, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        def work(tx: Transaction) -> Receipt:
            receipt = self._record_end(tx, permit, outcome)
            if checkpoint is not None:
                checkpoint(tx, outcome)
            return receipt

        return await self._store.write(work)

    async def abandon(self, permit: Permit) -> Receipt:
        return await self._store.write(lambda tx: self._abandon(tx, permit))

    def _look_back(self, tx: Transaction, run_id: str, step_key: str) -> None:
        for record in tx.calls(run_id, CallStatus.REQUESTED):
            if record.step_key == step_key and record.observed:
                self._close_abandoned(tx, record)
            elif record.step_key == step_key:
                raise CallInDoubt(record.key, record.tool)

    def _judge(self, tx: Transaction, call: Call) -> Permit | Refusal:
        earlier = tx.call(call.key)
        if earlier is not None and earlier.observed:
            # What a CLI did went with its turn: it is judged on its own each time.
            if earlier.status is CallStatus.REQUESTED:
                self._close_abandoned(tx, earlier)
        elif earlier is not None and earlier.status is CallStatus.REQUESTED:
            raise CallInDoubt(call.key, call.tool)
        elif earlier is not None and earlier.outcome is not None:
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

    def _permit(self, tx: Transaction, call: Call, decision: Decision) -> Permit:
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
                observed=call.observed,
                agent=call.agent,
                role=call.role,
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
                files=call.files,
            ),
        )
        return Permit(call=call, digest=digest, decision=decision)

    def _refuse(self, tx: Transaction, call: Call, decision: Decision) -> Refusal:
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

    def _ask(self, tx: Transaction, call: Call, decision: Decision) -> Approval:
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
                files=call.files,
            ),
        )
        return approval

    def _record_end(self, tx: Transaction, permit: Permit, outcome: CallOutcome) -> Receipt:
        record = _requested(tx, permit)
        if outcome.ok:
            update = {"status": CallStatus.COMPLETED, "outcome": outcome}
            receipt = self._close(tx, record, "completed", update, outcome)
            end: ToolCompleted | ToolFailed = ToolCompleted(
                call=record.key, tool=record.tool, result=outcome.result, receipt=receipt.number
            )
        else:
            update = {"status": CallStatus.FAILED, "outcome": outcome}
            receipt = self._close(tx, record, "failed", update, outcome)
            end = ToolFailed(
                call=record.key,
                tool=record.tool,
                error=outcome.error,
                result=outcome.result,
                receipt=receipt.number,
            )
        tx.append(record.run_id, end)
        return receipt

    def _abandon(self, tx: Transaction, permit: Permit) -> Receipt:
        record = _requested(tx, permit)
        if record.receipt_number is not None:
            return tx.receipts(record.run_id)[record.receipt_number - 1]
        if not record.observed:
            raise NotPossibleNow(f"call {record.key!r} is performed here; settle it")
        return self._close_abandoned(tx, record)

    def _close_abandoned(self, tx: Transaction, record: CallRecord) -> Receipt:
        receipt = self._close(tx, record, "abandoned", {"status": CallStatus.ABANDONED})
        tx.append(
            record.run_id, ToolAbandoned(call=record.key, tool=record.tool, receipt=receipt.number)
        )
        return receipt

    def _close(
        self,
        tx: Transaction,
        record: CallRecord,
        status: ReceiptStatus,
        update: dict[str, object],
        outcome: CallOutcome | None = None,
    ) -> Receipt:
        now = self._clock.now()
        receipt = tx.add_receipt(draft_receipt(record, status, now, outcome=outcome))
        closed = {**update, "receipt_number": receipt.number, "settled_at": now}
        tx.save_call(record.model_copy(update=closed))
        return receipt


def _requested(tx: Transaction, permit: Permit) -> CallRecord:
    record = tx.call(permit.call.key)
    if record is None:
        raise NotPossibleNow(f"call {permit.call.key!r} was never requested; request it first")
    return record


FakeHandler = Callable[[dict[str, Json]], Awaitable[Json]]
"""Handler of a fake tool. An exception becomes a failed outcome."""


class FakeTool(NamedTuple):
    """A tool and what it does."""

    spec: ToolSpec
    handler: FakeHandler


class FakeToolbox:
    """Performs functions as tools, each call through the door it was given."""

    def __init__(self, door: ToolDoor, tools: Sequence[FakeTool] = ()) -> None:
        self._door = door
        self._tools = {tool.spec.name: tool for tool in tools}

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    def normalise(
        self,
        tool: str,
        arguments: dict[str, Json],
        *,
        run_id: str,
        step_key: str,
        index: int,
        role: str = "",
        agent: str = "",
        provenance: tuple[str, ...] = (),
        observed: bool = False,
        root: str | None = None,
    ) -> Call:
        if tool not in self._tools:
            raise UnknownTool(tool, list(self._tools))
        schema = self._tools[tool].spec.input_schema
        problems = [error.message for error in Draft202012Validator(schema).iter_errors(arguments)]
        if problems:
            raise BadArguments(tool, problems)
        return Call(
            run_id=run_id,
            step_key=step_key,
            index=index,
            tool=tool,
            arguments=arguments,
            role=role,
            agent=agent,
            provenance=provenance,
            observed=observed,
            root=root or "",
        )

    async def perform(
        self, call: Call, checkpoint: Checkpoint | None = None
    ) -> CallOutcome | Refusal:
        answer = await self._door.request(call)
        if isinstance(answer, Refusal):
            return answer
        if answer.settled is not None:
            return answer.settled
        try:
            outcome = await self._act(call)
        except asyncio.CancelledError:
            await self._door.settle(answer, CallOutcome(ok=False, error="cancelled"))
            raise
        await self._door.settle(answer, outcome, checkpoint)
        return outcome

    async def _act(self, call: Call) -> CallOutcome:
        try:
            return CallOutcome(ok=True, result=await self._tools[call.tool].handler(call.arguments))
        except Exception as error:  # whatever the tool raises is its outcome
            return CallOutcome(ok=False, error=str(error) or type(error).__name__)
