"""The page of the sense loop: ticks, plan, candidates with one click to deploy, and earned trust."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from podium.bridge.tick_files import BOOK, MEMORY, STATE
from podium.domain.errors import BadInput
from podium.domain.trust import standings
from podium.usecases import demote, plan_promotion, promote, reject
from podium.web.access.entering import Approver, Operator, Viewer
from podium.web.access.people import ConsoleRole, Person
from podium.web.desk import Desk, DeskHere
from podium.web.live.looks import Topic, told_anew
from podium.web.live.sse import streamed
from podium.web.pages.rendering import page
from podium.wiring.candidates import deploy_candidate
from podium.wiring.sense_seeing import see_sense
from podium.wiring.sensing import sense_options, trust_of
from podium.wiring.submitting import Wish, submit

router = APIRouter()

DELIVERY_SECONDS = 10.0
"""So long a click waits for the delivery that it released; it goes on without."""
SETTLE_SECONDS = 1.0
NEWS = (
    "approval_requested", "approval_granted", "approval_rejected", "approval_expired", "approval_consumed",
    "run_queued", "run_started", "run_succeeded", "run_failed", "run_cancelled", "run_needed_human", "run_waiting",
)  # fmt: skip
"""Events after which a candidate may stand otherwise."""
Words = Annotated[str, Form(max_length=2_000)]
Name = Annotated[str, Form(min_length=1, max_length=500)]


@router.get("/sense")
async def sense_page(request: Request, desk: DeskHere, person: Viewer) -> Response:
    return await _shown(request, desk, person, "sense.html")


@router.get("/sense/now")
async def sense_now(request: Request, desk: DeskHere, person: Viewer) -> Response:
    """The part that changes, for pages that are open."""
    return await _shown(request, desk, person, "sense_now.html")


@router.get("/live/sense")
async def sense_live(desk: DeskHere, person: Viewer) -> Response:
    """Says `sense` whenever there is something new to see."""

    async def mark() -> object:
        return await asyncio.to_thread(_written_at, desk)

    return streamed(told_anew(desk.hub, [Topic("sense", NEWS, mark)], SETTLE_SECONDS))


@router.post("/sense/tick")
async def tick_now(request: Request, desk: DeskHere, person: Operator) -> Response:
    run = await submit(desk.podium, Wish(flow="sense", text=""), by=person.name)
    return await _shown(
        request, desk, person, "sense_now.html", said="A tick was put into the queue.", run=run.id
    )


@router.post("/sense/deploy")
async def deploy(
    request: Request, desk: DeskHere, person: Approver, candidate: Name, asked: Words = ""
) -> Response:
    seen = await deploy_candidate(
        desk.podium, candidate, by=person.approver, asked=asked, most_seconds=DELIVERY_SECONDS
    )
    where = f" It lies in {seen.standing.file}." if seen.standing.file else ""
    said = f"Your yes stands: {seen.standing.wo_id} is {seen.state}.{where}"
    return await _shown(request, desk, person, "sense_now.html", said=said)


@router.post("/sense/reject")
async def say_no(
    request: Request, desk: DeskHere, person: Approver, asked: Name, why: Words = ""
) -> Response:
    if not why.strip():
        raise BadInput("say why: the reason is recorded, and counts against what the loop earns")
    podium = desk.podium
    store = await podium.store()
    await reject(store, podium.clock, podium.ids, asked, by=person.approver, why=why.strip())
    return await _shown(
        request, desk, person, "sense_now.html", said="Rejected; it is not delivered."
    )


@router.post("/sense/promote")
async def grant(
    request: Request, desk: DeskHere, person: Approver, target: Name, zone: Name
) -> Response:
    podium, book = desk.podium, trust_of(desk.podium)
    needed, known = sense_options(podium).promote_after, standings(book.entries())
    plan = plan_promotion(known, target, (zone,), up_to=None, needed=needed, anyway=False)
    promote(book, podium.clock, plan, by=person.name)
    words = f"{target} in {zone} goes unasked up to {plan.grants[0][1]}, in autonomous mode."
    return await _shown(request, desk, person, "sense_now.html", said=words)


@router.post("/sense/demote")
async def take_back(
    request: Request, desk: DeskHere, person: Approver, target: Name, zone: Name, why: Words = ""
) -> Response:
    podium = desk.podium
    demote(trust_of(podium), podium.clock, target, (zone,), by=person.name, why=why.strip())
    return await _shown(
        request, desk, person, "sense_now.html", said=f"{target} in {zone} is asked about again."
    )


def _written_at(desk: Desk) -> list[tuple[int, int, int]]:
    """Of the loop's own files: a tick that finds nothing new leaves the record alone, and trust has a book."""
    places = (f"{STATE}/{MEMORY}", f"{STATE}/{BOOK}", sense_options(desk.podium).layout.telemetry)
    found = []
    for place in places:
        try:
            seen = (desk.podium.folders.project / place).stat()
        except OSError:
            continue
        found.append((seen.st_mtime_ns, seen.st_size, seen.st_ino))
    return found


async def _shown(
    request: Request, desk: Desk, person: Person, template: str, *, said: str = "", run: str = ""
) -> Response:
    return page(
        request,
        template,
        sense=await see_sense(desk.podium),
        said=said,
        run=run,
        may_answer=person.may(ConsoleRole.APPROVER),
        may_start=person.may(ConsoleRole.OPERATOR),
    )
