"""The story of a tick that plans: plan, parse, and let a run of its own see each candidate through."""

from __future__ import annotations

from podium.domain.model import Json
from podium.domain.orders import WorkOrder
from podium.domain.sensing import Candidate, Planned
from podium.flows.sense.kit import CANDIDATE, SENSE, CandidateJob, SenseJob, SenseKit
from podium.flows.sense.planning import planned
from podium.flows.sense.subjects import held_back
from podium.ports import FlowBody, FlowContext


def sense(kit: SenseKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def make_plan(ctx: FlowContext, job: SenseJob) -> Json:
        result = await planned(ctx, kit, job)
        made = await ctx.now("orders")
        runs: dict[str, str] = {}
        kept_back = await held_back(ctx, kit, result.plan.candidates)
        for number, candidate in enumerate(result.plan.candidates):
            if candidate.wo_id in kept_back:
                continue
            order = order_of(candidate, result, job).model_copy(update={"created_at": made})
            runs[candidate.wo_id] = await ctx.start_child(
                "candidate",
                CANDIDATE,
                CandidateJob(
                    wo_id=candidate.wo_id, order=order, subject=candidate.subject
                ).model_dump(mode="json"),
                queue=SENSE,
                index=number,
                dedup_key=f"candidate:{candidate.subject}",
                task=f"{candidate.wo_id}: {order.title}",
            )
        return {
            "planned": result.model_dump(mode="json"),
            "runs": runs,
            "held_back": kept_back,
        }

    return make_plan


def order_of(candidate: Candidate, result: Planned, job: SenseJob) -> WorkOrder:
    """The work order a candidate stands for."""
    item, said = candidate.item, candidate.suggestion
    return WorkOrder(
        id=candidate.wo_id,
        title=said.title,
        summary=said.summary,
        type=item.type,
        target=item.target,
        priority=item.priority,
        provenance=(f"planner:{result.planner}", *job.bundle.provenance),
        tasks=said.tasks,
        ops=said.ops,
    )
