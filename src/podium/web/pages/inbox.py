"""The inbox: everything that waits for a person, and each card alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.app.inbox import see_card, see_inbox
from podium.app.run_continuation import how_it_continues
from podium.core.decisions import ApprovalStatus
from podium.core.events import Event
from podium.web.access.authentication import Viewer
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.context import CurrentContext, WebContext
from podium.web.live.sse import Part, streamed
from podium.web.pages import inbox_answers, inbox_blocked
from podium.web.pages.cards import ShownCard, shown_blocked, shown_card
from podium.web.pages.templates import page

router = APIRouter()
router.include_router(inbox_answers.router)
router.include_router(inbox_blocked.router)

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
"""Events after which something else may wait."""


@router.get("/")
async def inbox_page(request: Request, context: CurrentContext, person: Viewer) -> Response:
    return page(request, "inbox.html", **await _shown(context, person))


@router.get("/inbox/cards")
async def inbox_cards(request: Request, context: CurrentContext, person: Viewer) -> Response:
    """The cards as they are now, for pages that are open."""
    return page(request, "inbox_cards.html", **await _shown(context, person))


@router.get("/live/inbox")
async def live_inbox(context: CurrentContext, person: Viewer) -> Response:
    """Says when to look again. What there is to see depends on who looks."""
    return streamed(_news(context))


@router.get("/cards/{approval_id}/live")
async def live_card(context: CurrentContext, person: Viewer, approval_id: str) -> Response:
    """The same for the page of one card, also for whoever may see nothing else."""
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
    """The card as it is now, for a page that still shows it."""
    shown = await _card(context, person, approval_id, whole=False)
    return page(request, "card.html", shown=shown, note="")


async def _shown(context: WebContext, person: Person) -> dict[str, Any]:
    podium = context.podium
    inbox = await see_inbox(await context.store(), podium.clock, podium.engine)
    groups = podium.settings.approvers
    return {
        "count": inbox.count,
        "more": inbox.more,
        "cards": [shown_card(each, person, groups) for each in inbox.cards],
        "blocked": [shown_blocked(each, person) for each in inbox.blocked],
        "may_answer": person.may(ConsoleRole.APPROVER),
        "note": "",
    }


async def _card(
    context: WebContext, person: Person, approval_id: str, *, whole: bool = True
) -> ShownCard:
    podium = context.podium
    card = await see_card(await context.store(), podium.clock, approval_id)
    is_open = card.approval.status is ApprovalStatus.PENDING
    shown = shown_card(card, person, podium.settings.approvers, whole=whole and is_open)
    goes_on = await how_it_continues(await context.store(), podium.engine, card.approval)
    return replace(shown, next=goes_on.next)


async def _news(context: WebContext) -> AsyncIterator[Part]:
    async with aclosing(context.hub.follow(types=NEWS)) as happening:  # type: ignore[type-var]  # a hub gives async generators
        async for each in happening:
            at = each.position if isinstance(each, Event) else each.to
            yield Part(str(at), event="inbox")
