"""What concerns people: plans to look at, what waits for their word, and the proof of what was done."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from podium.domain.errors import UnknownId
from podium.domain.gating import ApprovalStatus, Receipt
from podium.domain.model import Json, Moment, NonEmpty, Noun
from podium.domain.operating import OperatorMode, RunPlan
from podium.flows.operator.blocks import blocks
from podium.mcp.desk import PROVENANCE, ApprovalLine, Desk, approval_line
from podium.mcp.offered import DoorTool
from podium.mcp.work import found
from podium.usecases import (
    Verdict,
    how_it_continues,
    list_receipts,
    newest_approvals,
    show_approval,
)
from podium.wiring.proving import proven
from podium.wiring.submitting import ask
from podium.wiring.wishes import Told

MOST_RECEIPTS = 500


class PlanWish(Noun):
    text: NonEmpty = Field(description="What is wanted, in plain words.")
    context: Told = Field(default_factory=dict, description="What is known already, by name.")
    pack: str = Field(default="", description="The tools: a pack's name.", max_length=200)


class Plan(Noun):
    """What the operator would do. Nothing was done."""

    status: str
    """planned, clarify, refused, quality_gate_failed or error."""
    words: str
    """Intent, plan, impact, risks and next actions, for people."""
    question: str
    """With `clarify`: what one answer would settle."""
    plan: RunPlan | None
    next_actions: tuple[str, ...]


class ApprovalsWish(Noun):
    approval_id: str = Field(default="", description="One approval; else a list.", max_length=100)
    run_id: str = Field(default="", description="Only those of this run.", max_length=100)
    everything: bool = Field(default=False, description="Answered, used and expired ones too.")


class Approvals(Noun):
    approvals: tuple[ApprovalLine, ...]
    """Newest first."""
    more: int = 0
    """Older ones that are left out."""


class ReceiptsWish(Noun):
    run_id: str = Field(default="", description="Only those of this run.", max_length=100)
    limit: Annotated[int, Field(ge=1, le=MOST_RECEIPTS)] = 100


class ReceiptLine(Noun):
    """Proof of one call that was performed."""

    run_id: str
    number: int
    tool: str
    status: str
    tier: str
    approved_by: tuple[str, ...]
    fields: dict[str, Json]
    error: str
    settled_at: Moment


class Proof(Noun):
    """Receipts, the newest first, and whether all chains are whole."""

    receipts: tuple[ReceiptLine, ...]
    total: int
    sound: bool
    """No receipt was edited, removed, reordered or cut off."""
    verdict: Verdict


async def _plan(desk: Desk, wish: PlanWish) -> Plan:
    answer = await ask(
        desk.podium,
        wish.text,
        mode=OperatorMode.PLAN,
        context=wish.context,
        pack=wish.pack,
        by=desk.by,
        provenance=PROVENANCE,
    )
    said = answer.classification
    return Plan(
        status=answer.status,
        words=blocks(answer),
        question=said.question if said else "",
        plan=answer.plan,
        next_actions=answer.next_actions,
    )


async def _approvals(desk: Desk, wish: ApprovalsWish) -> Approvals:
    podium = desk.podium
    if not podium.has_record:
        if wish.approval_id:
            raise UnknownId("approval", wish.approval_id)
        return Approvals(approvals=())
    store = await podium.store()
    if wish.approval_id:
        one = await show_approval(store, podium.clock, wish.approval_id)
        goes_on = await how_it_continues(store, podium.engine, one)
        return Approvals(approvals=(approval_line(one, goes_on.next),))
    run_id = (await found(desk, wish.run_id)).id if wish.run_id else None
    statuses = () if wish.everything else (ApprovalStatus.PENDING,)
    newest = await newest_approvals(store, podium.clock, statuses=statuses, run_id=run_id)
    return Approvals(approvals=tuple(map(approval_line, newest.shown)), more=newest.more)


async def _receipts(desk: Desk, wish: ReceiptsWish) -> Proof:
    if not desk.podium.has_record and not wish.run_id:
        return Proof(receipts=(), total=0, sound=True, verdict=Verdict(runs=0, receipts=0))
    run_id = (await found(desk, wish.run_id)).id if wish.run_id else None
    verdict = await proven(desk.podium, run_id)
    receipts = await list_receipts(await desk.podium.store(), run_id)
    newest = sorted(receipts, key=lambda each: each.settled_at, reverse=True)[: wish.limit]
    return Proof(
        receipts=tuple(_receipt(each) for each in newest),
        total=len(receipts),
        sound=verdict.sound,
        verdict=verdict,
    )


def _receipt(receipt: Receipt) -> ReceiptLine:
    return ReceiptLine(
        run_id=receipt.run_id,
        number=receipt.number,
        tool=receipt.tool,
        status=receipt.status,
        tier=str(receipt.tier),
        approved_by=receipt.approved_by,
        fields=receipt.fields,
        error=receipt.error,
        settled_at=receipt.settled_at,
    )


PEOPLE: tuple[DoorTool[PlanWish] | DoorTool[ApprovalsWish] | DoorTool[ReceiptsWish], ...] = (
    DoorTool(
        "plan",
        "What would be done",
        "What the operator would do for plain words: the plan with its tiers, costs, approvals and ways back. Nothing is done. "
        "To have it done, `submit` the same words with flow `operator`.",
        PlanWish,
        Plan,
        _plan,
    ),
    DoorTool(
        "approvals",
        "What waits for people",
        "What people are asked, how each question stands, and how they answer. Approving is theirs alone: no tool of this "
        "door can. `request_approval` asks them something.",
        ApprovalsWish,
        Approvals,
        _approvals,
    ),
    DoorTool(
        "receipts",
        "Proof of what was done",
        "Receipts of performed calls, the newest first, and the proof that none was edited, removed, reordered or cut off.",
        ReceiptsWish,
        Proof,
        _receipts,
    ),
)
