"""Layer 4, the worker: each call of a gated plan performed through the door, receipt by receipt."""

from __future__ import annotations

from functools import partial
from itertools import count

from podium.domain.errors import BadArguments, PlanFailed, PlanNotGated
from podium.domain.gating import Outcome, PlanPlace, Refusal
from podium.domain.model import Json
from podium.domain.operating import GatedPlan, OperatorJob, PlanStep, filled_in
from podium.flows.operator.kit import OPERATOR, Bench
from podium.flows.operator.quality_gate import must_have_passed
from podium.flows.resolved import said_not_to_have_happened
from podium.ports import FlowContext, Step

MOST_ATTEMPTS = 5
"""How often a call is asked for anew after a person was asked about it alone."""


async def perform(ctx: FlowContext, bench: Bench, gated: GatedPlan, job: OperatorJob) -> Json:
    """Perform the plan, call by call. Raises `PlanNotGated`, or `PlanFailed` at the first that fails."""
    must_have_passed(gated, bench.pack)
    results: dict[int, Json] = {}
    for step in gated.plan.steps:
        outcome = await _performed(ctx, bench, gated, step, results, job)
        if not outcome.ok:
            raise PlanFailed(_failed(gated, step, outcome.error))
        results[step.number] = outcome.result
    return {"plan": gated.plan_hash, "results": {str(key): each for key, each in results.items()}}


async def _performed(
    ctx: FlowContext,
    bench: Bench,
    gated: GatedPlan,
    step: PlanStep,
    results: dict[int, Json],
    job: OperatorJob,
) -> Outcome:
    """How the call ended. A policy may ask about it alone, beside the plan; that is waited for."""
    place = PlanPlace(
        step=step.number,
        approval_id=gated.approval_id,
        undoes=gated.plan.undoes,
        planned_at=ctx.run.created_at,
    )
    for attempt in count():

        async def act(here: Step) -> Outcome | Refusal:
            again = await bench.store.read(partial(said_not_to_have_happened, here))
            try:
                arguments = filled_in(step.arguments, results)
                call = bench.toolbox.normalise(
                    step.tool, arguments,
                    run_id=here.run_id, step_key=here.key, index=again,
                    role=OPERATOR, provenance=job.provenance,
                )  # fmt: skip
            except KeyError as error:
                return Outcome(ok=False, error=f"an earlier call gave no {error}")
            except BadArguments as error:
                return Outcome(ok=False, error=str(error))
            placed = call.model_copy(update={"plan": place})
            return await bench.toolbox.perform(placed, here.checkpoint)

        name = f"call.again-{attempt}" if attempt else "call"
        found = await ctx.step(name, act, index=step.number, returns=Outcome | Refusal)
        if isinstance(found, Outcome):
            return found
        if found.approval_id is None or attempt >= MOST_ATTEMPTS:
            raise PlanNotGated(f"call {step.number} ({step.tool}): {found.decision.reason}")
        await ctx.wait(
            f"approval:{found.approval_id}",
            index=step.number * (MOST_ATTEMPTS + 1) + attempt,
            until=found.deadline,
        )
    raise AssertionError("attempts are counted without end")


def _failed(gated: GatedPlan, step: PlanStep, error: str) -> str:
    left = len(gated.plan.steps) - step.number
    rest = f"; {left} more not begun" if left else ""
    return f"call {step.number} ({step.tool}) failed: {error}{rest}"
