"""Flow body from an ordered plan on: people release it, the gate lets it pass, each call is performed with a receipt."""

from __future__ import annotations

from functools import partial
from itertools import count

from podium.app.kernel_flows import times_not_happened
from podium.core.decisions import CallOutcome, PlanPosition, Refusal
from podium.core.errors import BadArguments, PlanFailed, PlanNotGated
from podium.core.model import Json
from podium.core.plan_approval import filled_in
from podium.jobs.operator.deps import OPERATOR, Bench, OperatorFlowDeps
from podium.jobs.operator.models import GatedPlan, OperatorJob, PlanStep
from podium.jobs.operator.plan_approval import released
from podium.jobs.operator.quality_gate import let_pass, must_have_passed
from podium.ports import FlowBody, FlowContext, StepContext

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
    position = PlanPosition(
        step=step.number,
        approval_id=gated.approval_id,
        undoes=gated.plan.undoes,
        planned_at=ctx.run.created_at,
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
                return CallOutcome(ok=False, error=f"an earlier call gave no {error}")
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
    rest = f"; {left} more not begun" if left else ""
    return f"call {step.number} ({step.tool}) failed: {error}{rest}"


def operator(deps: OperatorFlowDeps) -> FlowBody:
    """The flow, with its kit in hand."""

    async def operate(ctx: FlowContext, job: OperatorJob) -> Json:
        bench = await deps.bench_for(job.pack_folder or job.plan.pack)
        approval = await released(ctx, deps, job)
        gated = let_pass(job.plan, bench.pack, max_tool_calls=job.max_tool_calls, approval=approval)
        return await perform(ctx, bench, gated, job)

    return operate
