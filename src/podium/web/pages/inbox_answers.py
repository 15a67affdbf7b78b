"""Answers to cards: approve, reject, edit, several at once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from podium.app.approvals import approve, reject
from podium.app.inbox import Card, CardKind, Resubmitted, see_card
from podium.app.resubmission import edit_and_resubmit, edit_fields
from podium.app.run_continuation import how_it_continues
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import BadInput, NotPossibleNow, UnknownId, UserMustAct
from podium.core.ids import short_id
from podium.render.approval import waits_for, what_line
from podium.render.text import escaped_line
from podium.web.access.authentication import FORM_FIELD, Approver
from podium.web.access.tokens import Person
from podium.web.context import CurrentContext, WebContext
from podium.web.pages.cards import HIGHEST_TOGETHER, card_view
from podium.web.pages.templates import page

router = APIRouter()

MAX_TOGETHER = 50
FreeText = Annotated[str, Form(max_length=4_000)]
Digest = Annotated[str, Form(max_length=200)]


@router.post("/cards/{approval_id}/approve")
async def say_yes(
    request: Request,
    context: CurrentContext,
    person: Approver,
    approval_id: str,
    digest: Digest = "",
    said: FreeText = "",
    own_words: FreeText = "",
) -> Response:
    """Approve. `own_words` answer a question in place of the choice `said`."""
    await _meant(context, approval_id)
    if not digest:
        raise BadInput("the digest of the request is missing; reload the page and answer there")
    try:
        granted = await _approve(context, person, approval_id, digest, own_words.strip() or said)
    except NotPossibleNow as late:
        return await _too_late(request, context, person, approval_id, late)
    return await _answered(
        request, context, person, await _approved_note(context, granted), granted.id
    )


@router.post("/cards/{approval_id}/reject")
async def say_no(
    request: Request,
    context: CurrentContext,
    person: Approver,
    approval_id: str,
    why: FreeText = "",
) -> Response:
    await _meant(context, approval_id)
    try:
        refused = await _reject(context, person, approval_id, why)
    except NotPossibleNow as late:
        return await _too_late(request, context, person, approval_id, late)
    goes_on = await how_it_continues(await context.store(), context.podium.engine, refused)
    note = f"Rejected. The agent is told why. {goes_on.sentence if goes_on.next else ''}"
    return await _answered(request, context, person, note.strip(), refused.id)


@router.get("/cards/{approval_id}/edit")
async def edit_form(
    request: Request, context: CurrentContext, person: Approver, approval_id: str
) -> Response:
    card = await _meant(context, approval_id)
    return page(request, "card_edit.html", card=card, fields=edit_fields(card))


@router.post("/cards/{approval_id}/resubmit")
async def edit(
    request: Request, context: CurrentContext, person: Approver, approval_id: str
) -> Response:
    card = await _meant(context, approval_id)
    form = await request.form(max_fields=200, max_files=0)
    texts = {name: str(text) for name, text in form.items() if name != FORM_FIELD}
    try:
        done = await edit_and_resubmit(context.podium, card, texts, by=person.approver)
    except NotPossibleNow as late:
        return await _too_late(request, context, person, approval_id, late)
    if isinstance(done, Resubmitted):
        note = f"Edited. Run {short_id(done.run.id)} replaces it and asks again with a new digest."
    else:
        note = "Rejected. The agent is told your arguments and should ask again with them."
    return await _answered(request, context, person, note, approval_id)


@router.post("/inbox/answer")
async def answer_several(
    request: Request,
    context: CurrentContext,
    person: Approver,
    answer: Annotated[str, Form(max_length=20)] = "",
    chosen: Annotated[list[str], Form(max_length=MAX_TOGETHER)] = [],  # noqa: B006 — FastAPI copies it
    why: FreeText = "",
) -> Response:
    """Answer several cards of one tier alike. Each is answered and reported separately."""
    if answer not in ("approve", "reject"):
        raise BadInput("choose approve or reject")
    if answer == "reject" and not why.strip():
        raise BadInput("a reason is required; the agent is told it")
    digests = dict(_id_and_digest(text) for text in chosen)
    if not digests:
        raise BadInput("nothing is selected")
    await _refuse_unlike(context, list(digests))
    groups, report = context.podium.settings.approvers, []
    for approval_id, digest in digests.items():
        line, ok = await _one_of_several(context, person, answer, approval_id, digest, why)
        card = await _see(context, approval_id)
        report.append((card.approval, card_view(card, person, groups), line, ok))
    if _is_plain(request):
        return RedirectResponse("/", status_code=303)
    return page(request, "inbox_report.html", report=report, what_line=what_line)


async def _one_of_several(
    context: WebContext, person: Person, answer: str, approval_id: str, digest: str, why: str
) -> tuple[str, bool]:
    try:
        if answer == "reject":
            refused = await _reject(context, person, approval_id, why)
            goes_on = await how_it_continues(await context.store(), context.podium.engine, refused)
            return f"rejected{f'; {goes_on.next}' if goes_on.next else ''}", True
        granted = await _approve(context, person, approval_id, digest, "")
        return await _approved_note(context, granted), True
    except UserMustAct as error:
        return str(error), False


def _id_and_digest(text: str) -> tuple[str, str]:
    approval_id, _, digest = text.partition(" ")
    if not digest:
        raise BadInput("the digest of the request is missing; reload the page and select there")
    return approval_id, digest


async def _refuse_unlike(context: WebContext, ids: list[str]) -> None:
    """Raise unless the cards share one tier that may be answered together."""
    cards = [await _meant(context, approval_id) for approval_id in ids]
    tiers = {card.approval.tier for card in cards}
    if len(tiers) > 1:
        listed = " and ".join(map(str, sorted(tiers)))
        raise BadInput(f"{listed} are not answered together; select cards of one tier")
    if max(tiers) > HIGHEST_TOGETHER:
        raise BadInput(f"{max(tiers)} is answered one by one")
    if any(card.kind is CardKind.QUESTION for card in cards):
        raise BadInput("questions are answered one by one, on their cards")


async def _approve(
    context: WebContext, person: Person, approval_id: str, digest: str, comment: str
) -> Approval:
    podium = context.podium
    return await approve(
        await context.store(),
        podium.clock,
        podium.ids,
        approval_id,
        by=person.approver,
        groups=podium.settings.approvers,
        comment=comment,
        digest=digest,
    )


async def _reject(context: WebContext, person: Person, approval_id: str, why: str) -> Approval:
    if not why.strip():
        raise BadInput("a reason is required; the agent is told it")
    podium, store = context.podium, await context.store()
    return await reject(
        store, podium.clock, podium.ids, approval_id, by=person.approver, why=why.strip()
    )


async def _see(context: WebContext, approval_id: str) -> Card:
    return await see_card(await context.store(), context.podium.clock, approval_id)


async def _meant(context: WebContext, approval_id: str) -> Card:
    """Return the card by its full id: an answer is for exactly one."""
    card = await _see(context, approval_id)
    if card.approval.id != approval_id:
        raise UnknownId("approval", approval_id)
    return card


async def _too_late(
    request: Request, context: WebContext, person: Person, approval_id: str, late: NotPossibleNow
) -> Response:
    """Say who answered first and when, or raise when the card is still open."""
    card = await _see(context, approval_id)
    if card.is_open:
        raise late
    answer = card.answer
    if card.approval.status is ApprovalStatus.EXPIRED:
        ran_out = "it expired, and nothing was done"
        note = f"Too late: {escaped_line(card.approval.why) or ran_out}."
    else:
        comment = "no" if card.approval.status is ApprovalStatus.REJECTED else "yes"
        at = f" at {answer.at:%H:%M:%S} UTC" if answer.at else ""
        note = f"{escaped_line(answer.by)} said {comment} first{at}. Your answer changed nothing."
    return await _answered(request, context, person, note, approval_id, bad=True)


async def _answered(
    request: Request,
    context: WebContext,
    person: Person,
    note: str,
    approval_id: str,
    *,
    bad: bool = False,
) -> Response:
    if _is_plain(request):
        return RedirectResponse(f"/cards/{approval_id}", status_code=303)
    card = await _see(context, approval_id)
    view = card_view(card, person, context.podium.settings.approvers)
    return page(request, "card.html", shown=view, note=note, bad=bad)


def _is_plain(request: Request) -> bool:
    """True for a browser without scripts."""
    return "hx-request" not in request.headers


async def _approved_note(context: WebContext, granted: Approval) -> str:
    """Describe what follows an approval."""
    if granted.status is ApprovalStatus.PENDING:
        return f"Recorded. It still needs an approval by {escaped_line(waits_for(granted))}."
    goes_on = await how_it_continues(await context.store(), context.podium.engine, granted)
    return f"Approved. {goes_on.sentence or 'Its run no longer exists.'}"
