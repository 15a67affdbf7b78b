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
from podium.web.pages.cards import CardView, blocked_view, card_view
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
