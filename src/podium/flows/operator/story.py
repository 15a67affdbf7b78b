"""The operator's story from an ordered plan on: people release it, the gate lets it pass, it is done.

What comes before (judgement, skills) needs no record: it changes nothing and is told at once.
"""

from __future__ import annotations

from podium.domain.model import Json
from podium.domain.operating import OperatorJob
from podium.flows.operator.approving import released
from podium.flows.operator.kit import OperatorKit
from podium.flows.operator.quality_gate import let_pass
from podium.flows.operator.worker import perform
from podium.ports import FlowBody, FlowContext


def operator(kit: OperatorKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def operate(ctx: FlowContext, job: OperatorJob) -> Json:
        bench = await kit.bench_for(job.pack_folder or job.plan.pack)
        approval = await released(ctx, kit, job)
        gated = let_pass(job.plan, bench.pack, max_tool_calls=job.max_tool_calls, approval=approval)
        return await perform(ctx, bench, gated, job)

    return operate
