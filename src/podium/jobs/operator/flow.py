"""Flow of the operator: a plan that may run is handed to the durable engine, which performs its calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Literal

from podium.core.decisions import (
    Approval,
    CallOutcome,
    CallRecord,
    CallStatus,
    PlanPosition,
    Receipt,
    Refusal,
)
from podium.core.errors import BadArguments, PlanFailed, PlanNotGated
from podium.core.model import Json
from podium.core.packs import Pack
from podium.core.plan_approval import filled_in
from podium.core.work import Run
from podium.jobs.operator.models import CallResult, GatedPlan, OperatorJob, PlanStep, RunPlan
from podium.jobs.operator.plan_gate import (
    let_pass,
    must_be_sound,
    must_have_passed,
    put_to_people,
    released,
)
from podium.jobs.operator.ports import OPERATOR, Bench, OperatorFlowDeps
from podium.ports import (
    Clock,
    Engine,
    FlowBody,
    FlowContext,
    Ids,
    StepContext,
    Store,
    StoreView,
    Transaction,
)


@dataclass(frozen=True)
class Brain:
    """Starts runs of the operator. It performs nothing itself."""

    engine: Engine
    store: Store
    clock: Clock
    ids: Ids
    approval_seconds: float
    settings: dict[str, Json]
    """Settings that the runs record."""
    queue: str
    """Queue of the runs that workers perform."""

    async def begin(
        self,
        job: OperatorJob,
        pack: Pack,
        *,
        queued: bool,
        run_id: str | None = None,
        along: Callable[[Transaction], None] | None = None,
    ) -> tuple[Run, Approval | None]:
        """Store the run, and the question to people where the plan needs one. Both are durable on return.

        The run asks by itself too, whoever hosts it; the question is the same one. Raises
        `PlanNotGated` for a plan that no approval could release.
        """
        must_be_sound(job.plan, pack, max_tool_calls=job.max_tool_calls)
        run = await self.engine.start(
            OPERATOR,
            job.model_dump(mode="json"),
            task=job.plan.message[:500],
            queue=self.queue if queued else None,
            settings=self.settings,
            run_id=run_id,
            along=along,
        )
        approval = await put_to_people(self, job, run.id) if job.plan.requires_approval else None
        return run, approval

    async def look(self, run_id: str, plan: RunPlan) -> tuple[CallResult, ...]:
        """Read the progress of a plan from its receipts."""
        return await self.store.read(lambda view: results_of(view, run_id, plan))


def results_of(view: StoreView, run_id: str, plan: RunPlan) -> tuple[CallResult, ...]:
    """Build one result for each call of the plan. Without a receipt none is completed."""
    receipts = {receipt.number: receipt for receipt in view.receipts(run_id)}
    records: dict[int, CallRecord] = {}
    for record in view.calls(run_id):
        number = record.step_key.rpartition("#")[2]
        if record.status is not CallStatus.REFUSED and number.isdecimal():
            records[int(number)] = record
    return tuple(
        _result(step.number, step.tool, records.get(step.number), receipts) for step in plan.steps
    )


def _ended_as(receipt: Receipt) -> Literal["completed", "failed", "in_doubt"]:
    if receipt.status == "abandoned" or receipt.status == "rolled_back":
        return "failed"
    return receipt.status


def _result(
    number: int, tool: str, record: CallRecord | None, receipts: dict[int, Receipt]
) -> CallResult:
    receipt = receipts.get(record.receipt_number or 0) if record else None
    if record is None or receipt is None:
        return CallResult(number=number, tool=tool, status="skipped")
    seconds = record.outcome.duration_seconds if record.outcome else 0.0
    return CallResult(
        number=number,
        tool=tool,
        status=_ended_as(receipt),
        receipt=receipt.number,
        fields=receipt.fields,
        error=receipt.error,
        usd=receipt.usage.usd,
        seconds=round(seconds, 3),
        approved_by=receipt.approved_by,
    )


MAX_ATTEMPTS = 5
"""Times that a call is requested again after a person was asked about it alone."""


async def perform(ctx: FlowContext, bench: Bench, gated: GatedPlan, job: OperatorJob) -> Json:
    """Perform the plan, call by call. Raises `PlanNotGated`, or `PlanFailed` at the first that fails."""
    must_have_passed(gated, bench.pack)
    results: dict[int, Json] = {}
    for step in gated.plan.steps:
        outcome = await _performed(ctx, bench, gated, step, results, job)
        if not outcome.ok:
            raise PlanFailed(_failed(gated, step, outcome.error))
        results[step.number] = outcome.result
    return {
        "plan": gated.plan_hash,
        "results": {str(key): result for key, result in results.items()},
    }


async def _performed(
    ctx: FlowContext,
    bench: Bench,
    gated: GatedPlan,
    step: PlanStep,
    results: dict[int, Json],
    job: OperatorJob,
) -> CallOutcome:
    """Perform the call. A policy may ask about it alone, beside the plan; that is waited for."""
    # Late: a message that is only read performs no call, and this loads the classes of all events.
    from podium.app.kernel_flows import times_not_happened

    position = PlanPosition(
        step=step.number,
        approval_id=gated.approval_id,
        undoes=gated.plan.undoes,
        planned_at=gated.plan.previewed_at or ctx.run.created_at,
    )
    for attempt in count():

        async def act(here: StepContext) -> CallOutcome | Refusal:
            again = await bench.store.read(partial(times_not_happened, here))
            try:
                arguments = filled_in(step.arguments, results)
                call = bench.toolbox.normalise(
                    step.tool, arguments,
                    run_id=here.run_id, step_key=here.key, index=again,
                    role=OPERATOR, provenance=job.provenance,
                )  # fmt: skip
            except KeyError as error:
                return CallOutcome(ok=False, error=f"an earlier call did not return {error}")
            except BadArguments as error:
                return CallOutcome(ok=False, error=str(error))
            placed = call.model_copy(update={"plan": position})
            return await bench.toolbox.perform(placed, here.checkpoint)

        name = f"call.again-{attempt}" if attempt else "call"
        outcome = await ctx.step(name, act, index=step.number, returns=CallOutcome | Refusal)
        if isinstance(outcome, CallOutcome):
            return outcome
        if outcome.approval_id is None or attempt >= MAX_ATTEMPTS:
            raise PlanNotGated(f"call {step.number} ({step.tool}): {outcome.decision.reason}")
        await ctx.wait(
            f"approval:{outcome.approval_id}",
            index=step.number * (MAX_ATTEMPTS + 1) + attempt,
            until=outcome.deadline,
        )
    raise AssertionError("attempts are counted without end")


def _failed(gated: GatedPlan, step: PlanStep, error: str) -> str:
    left = len(gated.plan.steps) - step.number
    rest = f"; {left} more not started" if left else ""
    return f"call {step.number} ({step.tool}) failed: {error}{rest}"


def operator(deps: OperatorFlowDeps) -> FlowBody:
    """Build the flow with its dependencies."""

    async def operate(ctx: FlowContext, job: OperatorJob) -> Json:
        bench = await deps.bench_for(job.pack_folder or job.plan.pack)
        approval = await released(ctx, deps, job)
        gated = let_pass(job.plan, bench.pack, max_tool_calls=job.max_tool_calls, approval=approval)
        return await perform(ctx, bench, gated, job)

    return operate
