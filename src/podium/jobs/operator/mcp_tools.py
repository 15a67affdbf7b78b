"""MCP tools of the operator: the plan for a message, without doing anything."""

from __future__ import annotations

from pydantic import Field

from podium.app.work_request import ShallowJson
from podium.core.model import FrozenModel, NonEmpty
from podium.jobs.operator.answer_blocks import blocks
from podium.jobs.operator.models import OperatorMode, RunPlan
from podium.jobs.operator.submission import ask
from podium.mcp.context import PROVENANCE, McpContext, McpTool


class PlanRequest(FrozenModel):
    text: NonEmpty = Field(description="Request in plain words.")
    context: ShallowJson = Field(default_factory=dict, description="Context values, by name.")
    pack: str = Field(
        default="", description="Name of the pack whose tools are used.", max_length=200
    )


class Plan(FrozenModel):
    """Plan of the operator for a message. Nothing was done."""

    status: str
    """planned, clarify, refused, quality_gate_failed or error."""
    words: str
    """Intent, plan, impact, risks and next actions, for people."""
    question: str
    """With `clarify`: a question that one answer settles."""
    plan: RunPlan | None
    next_actions: tuple[str, ...]


async def _plan(context: McpContext, request: PlanRequest) -> Plan:
    answer = await ask(
        context.podium,
        request.text,
        mode=OperatorMode.PLAN,
        context=request.context,
        pack=request.pack,
        by=context.by,
        provenance=PROVENANCE,
    )
    classification = answer.classification
    return Plan(
        status=answer.status,
        words=blocks(answer),
        question=classification.question if classification else "",
        plan=answer.plan,
        next_actions=answer.next_actions,
    )


TOOLS = (
    McpTool(
        "plan",
        "Plan a request",
        "Plan a request in plain words: its calls with tiers, costs, approvals and how to undo them. Nothing is done. "
        "To have it done, `submit` the same text with flow `operator`.",
        PlanRequest,
        Plan,
        _plan,
    ),
)
