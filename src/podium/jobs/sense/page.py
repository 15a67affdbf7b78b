"""Page of the sense loop: ticks, plan, candidates with one click to deploy, earned trust; and the view it shows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import yaml
from fastapi import APIRouter, Form, Request
from fastapi.responses import Response
from pydantic import ValidationError

from podium.app.approvals import reject
from podium.app.submission import WorkRequest, submit
from podium.core.decisions import Approval, ApprovalStatus, Tier
from podium.core.errors import BadInput
from podium.core.model import FrozenModel
from podium.core.work import Mode
from podium.jobs.sense import SenseOptions
from podium.jobs.sense.candidates import CandidateSeen, candidates_seen, deploy_candidate
from podium.jobs.sense.composition import record_of, sense_options, trust_of
from podium.jobs.sense.effective_options import sense_mode
from podium.jobs.sense.io.tick_files import BOOK, MEMORY, STATE
from podium.jobs.sense.models import PlannerStatus, SenseMemory, TickOutcome, no_plan
from podium.jobs.sense.orders.work_order import WorkOrder, order_text
from podium.jobs.sense.promotion import demote, plan_promotion, promote
from podium.jobs.sense.trust import Standing, standings
from podium.ports import StoreView
from podium.web.access.authentication import Approver, Operator, Viewer
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.context import CurrentContext, WebContext
from podium.web.live.sse import Topic, streamed, told_anew
from podium.web.pages.templates import page

if TYPE_CHECKING:
    from podium.app.app import Podium


class CandidateCard(FrozenModel):
    """A candidate with the order it would deliver, as somebody is asked about it."""

    seen: CandidateSeen
    order: WorkOrder | None = None
    """None: what is asked about cannot be read as an order any more."""
    text: str = ""
    """The order itself, byte for byte what a yes is bound to."""
    asked: Approval | None = None
    """The question that waits for somebody."""


class SenseSeen(FrozenModel):
    """All of it at one moment."""

    at: datetime
    mode: Mode
    planner: str
    every_seconds: float
    promote_after: int
    memory: SenseMemory = SenseMemory()
    ticks: tuple[TickOutcome, ...] = ()
    """Newest first."""
    trust: tuple[Standing, ...] = ()
    faults: tuple[str, ...] = ()
    """What could not be read of it, in words."""
    candidates: tuple[CandidateCard, ...] = ()

    @property
    def last(self) -> TickOutcome | None:
        return self.ticks[0] if self.ticks else None

    @property
    def last_plan(self) -> TickOutcome | None:
        """The last tick that had a plan, with how that differs from the one before."""
        return next((each for each in self.ticks if each.status is PlannerStatus.OK), None)

    @property
    def no_plan(self) -> str:
        """Why the last try to plan gave no plan; empty where it gave one."""
        return no_plan(self.memory.status, self.memory.why)

    @property
    def next_at(self) -> datetime | None:
        """When the next tick is due. None: there was none yet."""
        return self.last.at + timedelta(seconds=self.every_seconds) if self.last else None

    @property
    def is_ticking(self) -> bool:
        """Whether somebody seems to tick here: the next one is not overdue by a whole round."""
        due = self.next_at
        return due is not None and self.at < due + timedelta(seconds=self.every_seconds)

    @property
    def tokens_saved(self) -> int:
        """What idle ticks would have taken, had each been planned for as those that were."""
        planned = self.memory.ticks - self.memory.idle_ticks
        return self.memory.tokens * self.memory.idle_ticks // planned if planned > 0 else 0

    def proposal(self, standing: Standing) -> Tier | None:
        """Up to which tier a promotion is worth a person's thought. None: it is not yet."""
        earned = standing.proposes(self.promote_after)
        return max(standing.highest_agreed, Tier.T1) if earned else None


MAX_TICKS = 20
MAX_CANDIDATES = 40


async def see_sense(podium: Podium) -> SenseSeen:
    """As `podium sense status`, `candidates` and `sense trust` tell it, in one look. Changes nothing."""
    options = sense_options(podium)
    from_files = await asyncio.to_thread(_from_files, podium, options)
    found = (
        await candidates_seen(podium, ended=True, limit=MAX_CANDIDATES) if podium.has_record else []
    )
    return from_files.model_copy(update={"candidates": await _cards(podium, found)})


def _from_files(podium: Podium, options: SenseOptions) -> SenseSeen:
    from podium.jobs.sense.io.record import last_ticks

    record, book = record_of(podium, options), trust_of(podium)
    entries = book.entries()
    return SenseSeen(
        at=podium.clock.now(),
        mode=sense_mode(podium.configuration, podium.environ),
        planner=options.planner,
        every_seconds=options.every_seconds,
        promote_after=options.promote_after,
        memory=record.memory(),
        ticks=last_ticks(podium.folders.project, options.layout.telemetry, most=MAX_TICKS),
        trust=standings(entries),
        faults=(*book.faults, *record.faults),
    )


async def _cards(podium: Podium, found: Sequence[CandidateSeen]) -> tuple[CandidateCard, ...]:
    """What is still open comes first, each newest first."""
    if not found:
        return ()
    ordered = sorted(found, key=lambda each: not each.open)
    store = await podium.store()
    return await store.read(lambda view: tuple(_card(view, each) for each in ordered))


def _card(view: StoreView, seen: CandidateSeen) -> CandidateCard:
    approvals = view.approvals(run_id=seen.standing.run_id, limit=1)
    approval = approvals[0] if approvals else None
    text = _text(view, seen.standing.run_id, approval)
    pending = approval is not None and approval.status is ApprovalStatus.PENDING
    return CandidateCard(
        seen=seen, order=_order(text), text=text, asked=approval if pending else None
    )


def _text(view: StoreView, run_id: str, approval: Approval | None) -> str:
    """As somebody was asked about it, else as it was planned."""
    if approval is not None:
        return str(approval.arguments.get("content", ""))
    run = view.run(run_id)
    try:
        return order_text(WorkOrder.model_validate(run.input["order"])) if run else ""
    except (ValidationError, KeyError, TypeError):
        return ""


def _order(text: str) -> WorkOrder | None:
    try:
        return WorkOrder.model_validate(yaml.safe_load(text))
    except (ValidationError, yaml.YAMLError):
        return None


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
async def sense_page(request: Request, context: CurrentContext, person: Viewer) -> Response:
    return await _shown(request, context, person, "sense.html")


@router.get("/sense/now")
async def sense_now(request: Request, context: CurrentContext, person: Viewer) -> Response:
    """The part that changes, for pages that are open."""
    return await _shown(request, context, person, "sense_now.html")


@router.get("/live/sense")
async def sense_live(context: CurrentContext, person: Viewer) -> Response:
    """Says `sense` whenever there is something new to see."""

    async def mark() -> object:
        return await asyncio.to_thread(_written_at, context)

    return streamed(told_anew(context.hub, [Topic("sense", NEWS, mark)], SETTLE_SECONDS))


@router.post("/sense/tick")
async def tick_now(request: Request, context: CurrentContext, person: Operator) -> Response:
    run = await submit(context.podium, WorkRequest(flow="sense", text=""), by=person.name)
    return await _shown(
        request,
        context,
        person,
        "sense_now.html",
        said="A tick was put into the queue.",
        run=run.id,
    )


@router.post("/sense/deploy")
async def deploy(
    request: Request, context: CurrentContext, person: Approver, candidate: Name, asked: Words = ""
) -> Response:
    seen = await deploy_candidate(
        context.podium, candidate, by=person.approver, asked=asked, most_seconds=DELIVERY_SECONDS
    )
    where = f" It lies in {seen.standing.file}." if seen.standing.file else ""
    said = f"Your yes stands: {seen.standing.wo_id} is {seen.state}.{where}"
    return await _shown(request, context, person, "sense_now.html", said=said)


@router.post("/sense/reject")
async def say_no(
    request: Request, context: CurrentContext, person: Approver, asked: Name, why: Words = ""
) -> Response:
    if not why.strip():
        raise BadInput("say why: the reason is recorded, and counts against what the loop earns")
    podium = context.podium
    store = await podium.store()
    await reject(store, podium.clock, podium.ids, asked, by=person.approver, why=why.strip())
    return await _shown(
        request, context, person, "sense_now.html", said="Rejected; it is not delivered."
    )


@router.post("/sense/promote")
async def grant(
    request: Request, context: CurrentContext, person: Approver, target: Name, zone: Name
) -> Response:
    podium, book = context.podium, trust_of(context.podium)
    needed, known = sense_options(podium).promote_after, standings(book.entries())
    plan = plan_promotion(known, target, (zone,), up_to=None, needed=needed, anyway=False)
    promote(book, podium.clock, plan, by=person.name)
    words = f"{target} in {zone} goes unasked up to {plan.grants[0][1]}, in autonomous mode."
    return await _shown(request, context, person, "sense_now.html", said=words)


@router.post("/sense/demote")
async def take_back(
    request: Request,
    context: CurrentContext,
    person: Approver,
    target: Name,
    zone: Name,
    why: Words = "",
) -> Response:
    podium = context.podium
    demote(trust_of(podium), podium.clock, target, (zone,), by=person.name, why=why.strip())
    return await _shown(
        request, context, person, "sense_now.html", said=f"{target} in {zone} is asked about again."
    )


def _written_at(context: WebContext) -> list[tuple[int, int, int]]:
    """Of the loop's own files: a tick that finds nothing new leaves the record alone, and trust has a book."""
    places = (
        f"{STATE}/{MEMORY}",
        f"{STATE}/{BOOK}",
        sense_options(context.podium).layout.telemetry,
    )
    found = []
    for place in places:
        try:
            seen = (context.podium.folders.project / place).stat()
        except OSError:
            continue
        found.append((seen.st_mtime_ns, seen.st_size, seen.st_ino))
    return found


async def _shown(
    request: Request,
    context: WebContext,
    person: Person,
    template: str,
    *,
    said: str = "",
    run: str = "",
) -> Response:
    return page(
        request,
        template,
        sense=await see_sense(context.podium),
        said=said,
        run=run,
        may_answer=person.may(ConsoleRole.APPROVER),
        may_start=person.may(ConsoleRole.OPERATOR),
    )
