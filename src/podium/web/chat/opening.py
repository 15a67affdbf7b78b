"""`/l/…`: links from notices. Looking at one costs nothing; opening it uses it up."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from podium.web.access.cookies import begin_session
from podium.web.access.entering import person_of
from podium.web.access.forwarded import address_of
from podium.web.access.links import OPENED_FOR, CardLink, LinkMaker
from podium.web.access.people import ConsoleRole, Person
from podium.web.desk import DeskHere
from podium.web.pages.rendering import page
from podium.wiring import Podium
from podium.wiring.chat_settings import NoticeSettings
from podium.wiring.identity import os_user
from podium.wiring.noticing import PathTo

APPROVAL = "apr_"
GONE = 410


def link_maker(podium: Podium) -> LinkMaker:
    """The maker of this project's links: all its processes share the key, and what was opened."""
    folder = podium.vault / "console"
    return LinkMaker(folder / "links.key", folder / "links", podium.clock)


def link_paths(podium: Podium) -> PathTo:
    """Where notices lead: to an approval's card by a link of its own, to a run by its page, which asks who comes."""
    maker = link_maker(podium)

    def path_to(card_id: str, notice: NoticeSettings) -> str:
        if not card_id.startswith(APPROVAL):
            return f"/runs/{card_id}"
        person = notice.person or os_user().name
        return maker.link(card_id, person, notice.role, timedelta(hours=notice.link_hours))

    return path_to


def links_router(podium: Podium) -> APIRouter:
    """The page of a link, with one button."""
    maker = link_maker(podium)
    router = APIRouter(include_in_schema=False)

    async def look(request: Request, desk: DeskHere, token: str) -> Response:
        # Chats fetch the links that they show: a look must change nothing.
        found = await asyncio.to_thread(maker.read, token)
        if found is None:
            return _gone(request, desk)
        return page(request, "link.html", link=found, token=token)

    async def use(request: Request, desk: DeskHere, token: str) -> Response:
        found = await asyncio.to_thread(maker.use, token)
        if found is None:
            return _gone(request, desk)
        answer = RedirectResponse(f"/cards/{found.card}", status_code=303)
        if not _may_as_much(person_of(request), found):
            begin_session(answer, request, found.visitor(), OPENED_FOR)
        return answer

    router.get("/l/{token}")(look)
    router.post("/l/{token}")(use)
    return router


def _may_as_much(person: Person | None, link: CardLink) -> bool:
    """Whether they can do all that the link allows by the session they have, which is then left as it is."""
    if person is None or person.card not in ("", link.card):
        return False
    # On a card an operator can only look.
    return link.role is not ConsoleRole.APPROVER or person.may(ConsoleRole.APPROVER)


def _gone(request: Request, desk: DeskHere) -> Response:
    desk.attempts.failed(address_of(request.scope))
    return page(request, "link.html", status_code=GONE, link=None, token="")
