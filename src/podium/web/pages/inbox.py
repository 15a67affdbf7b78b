"""The inbox: cards, answers to them, and blocked runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from podium.app.approvals import approve, reject
from podium.app.id_lookup import find_id
from podium.app.inbox import Blocked, Card, CardKind, Resubmitted, see_card, see_inbox
from podium.app.resubmission import edit_and_resubmit, edit_fields
from podium.app.run_continuation import how_it_continues
from podium.app.run_control import resolve_call, resume
from podium.core.decisions import Approval, ApprovalStatus, CallStatus
from podium.core.errors import BadInput, NotPossibleNow, UnknownId, UserMustAct
from podium.core.events import Event
from podium.core.ids import short_id
from podium.ports import StoreView
from podium.render.approval import waits_for, what_line
from podium.render.text import escaped_line
from podium.web.access.authentication import FORM_FIELD, Approver, Operator, Viewer
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.context import CurrentContext, WebContext
from podium.web.live.sse import Part, streamed
from podium.web.pages.cards import HIGHEST_TOGETHER, CardView, blocked_view, card_view
from podium.web.pages.templates import page

router = APIRouter()

NEWS = (
    "approval_requested",
    "approval_granted",
    "approval_rejected",
    "approval_expired",
    "run_needed_human",
    "run_started",
    "run_succeeded",
    "run_failed",
    "run_cancelled",
    "tool_resolved",
)
"""Event types that may change the inbox."""


@router.get("/")
async def inbox_page(request: Request, context: CurrentContext, person: Viewer) -> Response:
    return page(request, "inbox.html", **await _inbox_values(context, person))


@router.get("/inbox/cards")
async def inbox_cards(request: Request, context: CurrentContext, person: Viewer) -> Response:
    """Render the current cards, for open pages."""
    return page(request, "inbox_cards.html", **await _inbox_values(context, person))


@router.get("/live/inbox")
async def live_inbox(context: CurrentContext, person: Viewer) -> Response:
    """Stream when to refresh. The content depends on the viewer."""
    return streamed(_news(context))


@router.get("/cards/{approval_id}/live")
async def live_card(context: CurrentContext, person: Viewer, approval_id: str) -> Response:
    """Stream the same for the page of one card, also for people who may see nothing else."""
    return streamed(_news(context))


@router.get("/cards/{approval_id}")
async def card_page(
    request: Request, context: CurrentContext, person: Viewer, approval_id: str
) -> Response:
    return page(request, "card_page.html", shown=await _card(context, person, approval_id), note="")


@router.get("/cards/{approval_id}/part")
async def card_part(
    request: Request, context: CurrentContext, person: Viewer, approval_id: str
) -> Response:
    """Render the current card, for a page that shows it."""
    view = await _card(context, person, approval_id, whole=False)
    return page(request, "card.html", shown=view, note="")


async def _inbox_values(context: WebContext, person: Person) -> dict[str, Any]:
    podium = context.podium
    inbox = await see_inbox(await context.store(), podium.clock, podium.engine)
    groups = podium.settings.approvers
    return {
        "count": inbox.count,
        "more": inbox.more,
        "cards": [card_view(card, person, groups) for card in inbox.cards],
        "blocked": [blocked_view(blocked, person) for blocked in inbox.blocked],
        "may_answer": person.may(ConsoleRole.APPROVER),
        "note": "",
    }


async def _card(
    context: WebContext, person: Person, approval_id: str, *, whole: bool = True
) -> CardView:
    podium = context.podium
    card = await see_card(await context.store(), podium.clock, approval_id)
    is_open = card.approval.status is ApprovalStatus.PENDING
    view = card_view(card, person, podium.settings.approvers, whole=whole and is_open)
    goes_on = await how_it_continues(await context.store(), podium.engine, card.approval)
    return replace(view, next=goes_on.next)


async def _news(context: WebContext) -> AsyncIterator[Part]:
    async with aclosing(context.hub.follow(types=NEWS)) as happening:  # type: ignore[type-var]  # a hub gives async generators
        async for item in happening:
            at = item.position if isinstance(item, Event) else item.to
            yield Part(str(at), event="inbox")


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
        raise BadInput("the digest of the request is missing; reload the page and answer again")
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
    note = f"Rejected. The agent is told the reason. {goes_on.sentence if goes_on.next else ''}"
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
        note = f"Edited. Run {short_id(done.run.id)} replaces it and requests approval with a new digest."
    else:
        note = "Rejected. The agent is told your arguments and should request the call again with them."
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
        raise BadInput("a reason is required; the agent will see it")
    digests = dict(_id_and_digest(text) for text in chosen)
    if not digests:
        raise BadInput("no cards are selected")
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
        raise BadInput("the digest of the request is missing; reload the page and select again")
    return approval_id, digest


async def _refuse_unlike(context: WebContext, ids: list[str]) -> None:
    """Raise unless the cards share one tier that may be answered together."""
    cards = [await _meant(context, approval_id) for approval_id in ids]
    tiers = {card.approval.tier for card in cards}
    if len(tiers) > 1:
        listed = " and ".join(map(str, sorted(tiers)))
        raise BadInput(
            f"cards of tiers {listed} cannot be answered together; select cards of one tier"
        )
    if max(tiers) > HIGHEST_TOGETHER:
        raise BadInput(f"cards of tier {max(tiers)} must be answered one by one")
    if any(card.kind is CardKind.QUESTION for card in cards):
        raise BadInput("questions must be answered one by one, on their cards")


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
        raise BadInput("a reason is required; the agent will see it")
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
        ran_out = "the request expired, and nothing was done"
        note = f"Too late: {escaped_line(card.approval.why) or ran_out}."
    else:
        decision = "rejected" if card.approval.status is ApprovalStatus.REJECTED else "approved"
        at = f" at {answer.at:%H:%M:%S} UTC" if answer.at else ""
        note = f"Already {decision} by {escaped_line(answer.by)}{at}. Your answer changed nothing."
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
    return f"Approved. {goes_on.sentence or 'The run no longer exists.'}"


@router.post("/blocked/{run_id}/resume")
async def go_on(
    request: Request,
    context: CurrentContext,
    person: Operator,
    run_id: str,
    note: Annotated[str, Form(max_length=4_000)] = "",
) -> Response:
    """Resume the run in this process; the note is guidance for one that asked."""
    engine = await context.podium.hosting_engine()
    run = await resume(await context.store(), engine, run_id, note=note.strip(), by=person.name)
    return await _response(request, context, person, run.id, "Resumed in the console process.")


@router.post("/blocked/{run_id}/resolve")
async def resolve(
    request: Request,
    context: CurrentContext,
    person: Approver,
    run_id: str,
    call: Annotated[str, Form(max_length=1_000)] = "",
    happened: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Record the outcome of a call. The run stays blocked until somebody resumes it."""
    if happened not in ("yes", "no"):
        raise BadInput("choose whether the call happened")
    if not call.startswith(f"{run_id}:"):
        raise BadInput(f"call {call[:100]!r} does not belong to run {run_id}")
    did = happened == "yes"
    await resolve_call(
        await context.store(), context.podium.clock, call, happened=did, by=person.name
    )
    note = "Recorded: the call happened." if did else "Recorded: the call did not happen."
    return await _response(request, context, person, run_id, note)


async def _response(
    request: Request, context: WebContext, person: Person, text: str, note: str
) -> Response:
    if "hx-request" not in request.headers:
        return RedirectResponse("/", status_code=303)
    store = await context.store()

    def look(view: StoreView) -> Blocked:
        run = view.run(find_id(view, "run", text))
        if run is None:
            raise UnknownId("run", text)
        return Blocked(
            run=run,
            reason=run.failure.message if run.failure else "",
            in_doubt=tuple(view.calls(run.id, CallStatus.IN_DOUBT)),
        )

    blocked = await store.read(look)
    return page(request, "card_blocked.html", shown=blocked_view(blocked, person), note=note)
