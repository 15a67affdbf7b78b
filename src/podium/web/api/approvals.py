"""`/api/v1/approvals`: what people are asked, and their answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from podium.app.approvals import approve, list_approvals, reject
from podium.app.id_lookup import find_id
from podium.app.inbox import Card, EditField, Resubmitted, see_card
from podium.app.resubmission import MAX_CHARACTERS, cannot_be_edited, edit_and_resubmit, edit_fields
from podium.app.run_continuation import how_it_continues
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.model import FrozenModel
from podium.web.access.authentication import Approver, Viewer
from podium.web.api.requests import TEXT, FreeText, Name, NameQuery, RequestBody, Rows
from podium.web.context import CurrentContext, WebContext

router = APIRouter(tags=["approvals"])

Reason = Annotated[str, Field(min_length=1, max_length=4000, pattern=TEXT)]
Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]


class ApprovalsListed(FrozenModel):
    """Matching approvals, newest first."""

    approvals: tuple[Approval, ...]
    before: str | None
    """Pass as `before` to get the next page. None: this is the last page."""


class CardDetails(FrozenModel):
    """An approval with what is needed to answer it."""

    card: Card
    fields: tuple[EditField, ...]
    """Fields that can be edited; empty when the request cannot be edited."""


class Yes(RequestBody):
    say: FreeText = ""
    """Comment for the agent; for a question, the answer."""
    digest: Annotated[str, Field(max_length=200, pattern=TEXT)] = ""
    """Digest of the request as shown. Approving anything else is refused; empty: not compared."""


class No(RequestBody):
    why: Reason


class ApprovalEdit(RequestBody):
    fields: Annotated[dict[str, Text], Field(max_length=200)]
    """Texts by the names of the card's fields."""


class Edited(FrozenModel):
    """Result of an edit."""

    approval: Approval
    """The old approval, rejected."""
    run: str | None
    """Run that requests the new approval. None: the agent was told, and requests the call again itself."""


class AnsweredApproval(Approval):
    """An approval after an answer, and how its run continues."""

    hosted: bool = False
    """A live process hosts the run."""
    continues: bool = False
    """The run continues by itself: it is hosted, or a live worker picks it up."""
    next: str = ""
    """Next step for a person, with the command; empty when the run continues by itself, or not at all."""


@router.get("/approvals")
async def list_all_approvals(
    context: CurrentContext,
    person: Viewer,
    status: Annotated[tuple[ApprovalStatus, ...], Query(max_length=10)] = (ApprovalStatus.PENDING,),
    run: NameQuery = "",
    before: NameQuery = "",
    limit: Rows = 200,
) -> ApprovalsListed:
    """List approvals with these statuses, newest first, page by page."""
    store = await context.store()
    run_id = await store.read(lambda view: find_id(view, "run", run)) if run else None
    approvals = await list_approvals(
        store,
        context.podium.clock,
        statuses=status,
        run_id=run_id,
        before_id=before or None,
        limit=limit + 1,
    )
    last = approvals[limit - 1].id if len(approvals) > limit else None
    return ApprovalsListed(approvals=tuple(approvals[:limit]), before=last)


@router.get("/approvals/{approval}")
async def show_approval(context: CurrentContext, person: Viewer, approval: Name) -> CardDetails:
    """Show one approval with its requester, its content and the fields that can be edited."""
    card = await see_card(await context.store(), context.podium.clock, approval)
    return CardDetails(card=card, fields=_fields(card))


@router.post("/approvals/{approval}/approve")
async def approve_it(
    context: CurrentContext, person: Approver, approval: Name, yes: Yes
) -> AnsweredApproval:
    """Approve. Once no further approval is required, the run continues, or `next` says what to do."""
    granted = await approve(
        await context.store(),
        context.podium.clock,
        context.podium.ids,
        approval,
        by=person.approver,
        groups=context.podium.settings.approvers,
        comment=yes.say,
        digest=yes.digest,
    )
    return await answered(context, granted)


@router.post("/approvals/{approval}/reject")
async def reject_it(
    context: CurrentContext, person: Approver, approval: Name, no: No
) -> AnsweredApproval:
    """Reject permanently. The agent is told the reason."""
    podium = context.podium
    refused = await reject(
        await context.store(), podium.clock, podium.ids, approval, by=person.approver, why=no.why
    )
    return await answered(context, refused)


@router.post("/approvals/{approval}/resubmit")
async def edit_it(
    context: CurrentContext, person: Approver, approval: Name, edit: ApprovalEdit
) -> Edited:
    """Edit the request: the old approval is rejected, and a new one with a new digest is requested."""
    card = await see_card(await context.store(), context.podium.clock, approval)
    done = await edit_and_resubmit(context.podium, card, edit.fields, by=person.approver)
    if isinstance(done, Resubmitted):
        return Edited(approval=done.approval, run=done.run.id)
    return Edited(approval=done, run=None)


async def answered(context: WebContext, approval: Approval) -> AnsweredApproval:
    """Return the answered approval with how its run continues."""
    goes_on = await how_it_continues(await context.store(), context.podium.engine, approval)
    return AnsweredApproval.model_validate(
        {**approval.model_dump(), **goes_on.model_dump(exclude={"ended"})}
    )


def _fields(card: Card) -> tuple[EditField, ...]:
    return edit_fields(card) if card.is_open and not cannot_be_edited(card) else ()
