"""`/api/v1/approvals`: what people are asked, and their answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from podium.app.approvals import approve, list_approvals, reject
from podium.app.id_lookup import find_id
from podium.app.inbox import Card, see_card
from podium.app.resubmission import (
    MAX_CHARACTERS,
    EditField,
    Resubmitted,
    cannot_be_edited,
    edit_and_resubmit,
    edit_fields,
)
from podium.app.run_continuation import how_it_continues
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.model import FrozenModel
from podium.web.access.authentication import Approver, Viewer
from podium.web.api.requests import TEXT, Asked, Name, NameAsked, Rows, Words
from podium.web.context import CurrentContext, WebContext

router = APIRouter(tags=["approvals"])

Reason = Annotated[str, Field(min_length=1, max_length=4000, pattern=TEXT)]
Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]


class ApprovalsListed(FrozenModel):
    """Approvals that fit, newest first."""

    approvals: tuple[Approval, ...]
    before: str | None
    """Ask for approvals before this one to have the next page. None: there are no more."""


class CardShown(FrozenModel):
    """An approval with what is needed to answer it."""

    card: Card
    fields: tuple[EditField, ...]
    """What can be changed; none where an edit is not possible."""


class Yes(Asked):
    say: Words = ""
    """Words for whoever asked; a question is answered by them."""
    digest: Annotated[str, Field(max_length=200, pattern=TEXT)] = ""
    """Of what was seen. A yes to anything else is refused; empty: not compared."""


class No(Asked):
    why: Reason


class Edit(Asked):
    fields: Annotated[dict[str, Text], Field(max_length=200)]
    """Texts by the names of the card's fields."""


class Edited(FrozenModel):
    """What became of an edit."""

    approval: Approval
    """The old question, rejected."""
    run: str | None
    """The run that asks the new one. None: the agent was told, and asks again itself."""


class AnsweredApproval(Approval):
    """An approval after an answer, and how its run goes on."""

    hosted: bool = False
    """A process alive hosts the run."""
    continues: bool = False
    """The run goes on by itself: it is hosted, or a worker alive takes it up."""
    next: str = ""
    """What is left to a person, with the command; empty when the run goes on by itself, or not at all."""


@router.get("/approvals")
async def list_all_approvals(
    context: CurrentContext,
    person: Viewer,
    status: Annotated[tuple[ApprovalStatus, ...], Query(max_length=10)] = (ApprovalStatus.PENDING,),
    run: NameAsked = "",
    before: NameAsked = "",
    limit: Rows = 200,
) -> ApprovalsListed:
    """Approvals in these states, newest first, page by page."""
    store = await context.store()
    run_id = await store.read(lambda view: find_id(view, "run", run)) if run else None
    found = await list_approvals(
        store,
        context.podium.clock,
        statuses=status,
        run_id=run_id,
        before_id=before or None,
        limit=limit + 1,
    )
    last = found[limit - 1].id if len(found) > limit else None
    return ApprovalsListed(approvals=tuple(found[:limit]), before=last)


@router.get("/approvals/{approval}")
async def show_approval(context: CurrentContext, person: Viewer, approval: Name) -> CardShown:
    """One approval with who asks, what it is about and what of it can be edited."""
    card = await see_card(await context.store(), context.podium.clock, approval)
    return CardShown(card=card, fields=_fields(card))


@router.post("/approvals/{approval}/approve")
async def approve_it(
    context: CurrentContext, person: Approver, approval: Name, yes: Yes
) -> AnsweredApproval:
    """Say yes. When the answer is complete, the run goes on, or `next` says what is left to do."""
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
    """Say no, for good. The agent hears why."""
    podium = context.podium
    refused = await reject(
        await context.store(), podium.clock, podium.ids, approval, by=person.approver, why=no.why
    )
    return await answered(context, refused)


@router.post("/approvals/{approval}/resubmit")
async def edit_it(context: CurrentContext, person: Approver, approval: Name, edit: Edit) -> Edited:
    """Change what is asked about: the old question is rejected, and a new one with a new digest comes of it."""
    card = await see_card(await context.store(), context.podium.clock, approval)
    done = await edit_and_resubmit(context.podium, card, edit.fields, by=person.approver)
    if isinstance(done, Resubmitted):
        return Edited(approval=done.approval, run=done.run.id)
    return Edited(approval=done, run=None)


async def answered(context: WebContext, approval: Approval) -> AnsweredApproval:
    """The approval with how its run goes on, for whoever just answered."""
    goes_on = await how_it_continues(await context.store(), context.podium.engine, approval)
    return AnsweredApproval.model_validate(
        {**approval.model_dump(), **goes_on.model_dump(exclude={"ended"})}
    )


def _fields(card: Card) -> tuple[EditField, ...]:
    return edit_fields(card) if card.is_open and not cannot_be_edited(card) else ()
