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
from podium.app.work_request import WorkRequest, submit
from podium.core.decisions import Approval, ApprovalStatus, Tier
from podium.core.errors import BadInput
from podium.core.model import FrozenModel
from podium.core.work import Mode
from podium.jobs.sense import SenseOptions
from podium.jobs.sense.candidates import CandidateView, deploy_candidate, load_candidates
from podium.jobs.sense.composition import record_of, sense_options, trust_of
from podium.jobs.sense.io.tick_files import BOOK, MEMORY, STATE
from podium.jobs.sense.models import PlannerStatus, SenseMemory, TickOutcome, no_plan
from podium.jobs.sense.options import sense_mode
from podium.jobs.sense.orders.work_order import WorkOrder, order_text
from podium.jobs.sense.trust import EarnedTrust, demote, earned_trust, plan_promotion, promote
from podium.ports import StoreView
from podium.web.access.authentication import Approver, Operator, Viewer
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.context import CurrentContext, WebContext
from podium.web.live.sse import Topic, streamed, topic_updates
from podium.web.pages.templates import page

if TYPE_CHECKING:
    from podium.app.app import Podium


class CandidateCard(FrozenModel):
    """A candidate with the order it would deliver, as somebody is asked about it."""

    view: CandidateView
    order: WorkOrder | None = None
    """None: what is asked about cannot be read as an order any more."""
    text: str = ""
    """The order itself, byte for byte what a yes is bound to."""
    asked: Approval | None = None
    """The question that waits for somebody."""


class SenseView(FrozenModel):
    """State of the sense loop, as the page shows it."""

    at: datetime
    mode: Mode
    planner: str
    every_seconds: float
    promote_after: int
    memory: SenseMemory = SenseMemory()
    ticks: tuple[TickOutcome, ...] = ()
    """Newest first."""
    trust: tuple[EarnedTrust, ...] = ()
    problems: tuple[str, ...] = ()
    """Files that could not be read, and why."""
    candidates: tuple[CandidateCard, ...] = ()

    @property
    def last(self) -> TickOutcome | None:
        return self.ticks[0] if self.ticks else None

    @property
    def last_plan(self) -> TickOutcome | None:
        """The last tick that had a plan, with how that differs from the one before."""
        return next((tick for tick in self.ticks if tick.status is PlannerStatus.OK), None)

    @property
    def no_plan(self) -> str:
        """Reason why the last attempt gave no plan; empty where it gave one."""
        return no_plan(self.memory.status, self.memory.why)

    @property
    def next_at(self) -> datetime | None:
        """Time at which the next tick is due. None: there was none yet."""
        return self.last.at + timedelta(seconds=self.every_seconds) if self.last else None

    @property
    def is_ticking(self) -> bool:
        """True if a loop seems to run here: the next tick is not overdue by a whole interval."""
        due = self.next_at
        return due is not None and self.at < due + timedelta(seconds=self.every_seconds)

    @property
    def tokens_saved(self) -> int:
        """Tokens that idle ticks would have used, had each been planned."""
        planned = self.memory.ticks - self.memory.idle_ticks
        return self.memory.tokens * self.memory.idle_ticks // planned if planned > 0 else 0

    def proposal(self, trust: EarnedTrust) -> Tier | None:
        """Return the tier up to which a promotion is proposed. None: none is yet."""
        earned = trust.proposes(self.promote_after)
        return max(trust.highest_agreed, Tier.T1) if earned else None


MAX_TICKS = 20
MAX_CANDIDATES = 40


async def see_sense(podium: Podium) -> SenseView:
    """Load what `podium sense status`, `candidates` and `sense trust` show. Changes nothing."""
    options = sense_options(podium)
    from_files = await asyncio.to_thread(_from_files, podium, options)
    views = (
        await load_candidates(podium, ended=True, limit=MAX_CANDIDATES) if podium.has_record else []
    )
    return from_files.model_copy(update={"candidates": await _cards(podium, views)})


def _from_files(podium: Podium, options: SenseOptions) -> SenseView:
    from podium.jobs.sense.io.record import last_ticks

    record, book = record_of(podium, options), trust_of(podium)
    entries = book.entries()
    return SenseView(
        at=podium.clock.now(),
        mode=sense_mode(podium.configuration, podium.environ),
        planner=options.planner,
        every_seconds=options.every_seconds,
        promote_after=options.promote_after,
        memory=record.memory(),
        ticks=last_ticks(podium.folders.project, options.layout.telemetry, most=MAX_TICKS),
        trust=earned_trust(entries),
        problems=(*book.problems, *record.problems),
    )


async def _cards(podium: Podium, views: Sequence[CandidateView]) -> tuple[CandidateCard, ...]:
    """Build the cards: open candidates first, each group newest first."""
    if not views:
        return ()
    ordered = sorted(views, key=lambda view: not view.open)
    store = await podium.store()
    return await store.read(lambda view: tuple(_card(view, candidate) for candidate in ordered))


def _card(view: StoreView, candidate: CandidateView) -> CandidateCard:
    approvals = view.approvals(run_id=candidate.standing.run_id, limit=1)
    approval = approvals[0] if approvals else None
    text = _text(view, candidate.standing.run_id, approval)
    pending = approval is not None and approval.status is ApprovalStatus.PENDING
    return CandidateCard(
        view=candidate, order=_order(text), text=text, asked=approval if pending else None
    )


def _text(view: StoreView, run_id: str, approval: Approval | None) -> str:
    """Return the order's text: as it was submitted for approval, else as planned."""
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
FreeText = Annotated[str, Form(max_length=2_000)]
Name = Annotated[str, Form(min_length=1, max_length=500)]


@router.get("/sense")
async def sense_page(request: Request, context: CurrentContext, person: Viewer) -> Response:
    return await _page(request, context, person, "sense.html")


@router.get("/sense/now")
async def sense_now(request: Request, context: CurrentContext, person: Viewer) -> Response:
    """The part that changes, for pages that are open."""
    return await _page(request, context, person, "sense_now.html")


@router.get("/live/sense")
async def sense_live(context: CurrentContext, person: Viewer) -> Response:
    """Stream `sense` whenever the page has changed."""

    async def version() -> object:
        return await asyncio.to_thread(_written_at, context)

    return streamed(topic_updates(context.hub, [Topic("sense", NEWS, version)], SETTLE_SECONDS))


@router.post("/sense/tick")
async def tick_now(request: Request, context: CurrentContext, person: Operator) -> Response:
    run = await submit(context.podium, WorkRequest(flow="sense", text=""), by=person.name)
    return await _page(
        request,
        context,
        person,
        "sense_now.html",
        message="The tick was queued.",
        run=run.id,
    )


@router.post("/sense/deploy")
async def deploy(
    request: Request,
    context: CurrentContext,
    person: Approver,
    candidate: Name,
    asked: FreeText = "",
) -> Response:
    view = await deploy_candidate(
        context.podium, candidate, by=person.approver, asked=asked, most_seconds=DELIVERY_SECONDS
    )
    where = f" File: {view.standing.file}." if view.standing.file else ""
    message = f"Approved: {view.standing.wo_id} is {view.state}.{where}"
    return await _page(request, context, person, "sense_now.html", message=message)


@router.post("/sense/reject")
async def say_no(
    request: Request, context: CurrentContext, person: Approver, asked: Name, why: FreeText = ""
) -> Response:
    if not why.strip():
        raise BadInput("a reason is required; it is recorded and counts against earned autonomy")
    podium = context.podium
    store = await podium.store()
    await reject(store, podium.clock, podium.ids, asked, by=person.approver, why=why.strip())
    return await _page(
        request, context, person, "sense_now.html", message="Rejected. It will not be delivered."
    )


@router.post("/sense/promote")
async def grant(
    request: Request, context: CurrentContext, person: Approver, target: Name, zone: Name
) -> Response:
    podium, book = context.podium, trust_of(context.podium)
    needed, trust = sense_options(podium).promote_after, earned_trust(book.entries())
    plan = plan_promotion(trust, target, (zone,), up_to=None, needed=needed, anyway=False)
    promote(book, podium.clock, plan, by=person.name)
    message = f"Orders for {target} in {zone} up to {plan.grants[0][1]} are delivered without approval in autonomous mode."
    return await _page(request, context, person, "sense_now.html", message=message)


@router.post("/sense/demote")
async def take_back(
    request: Request,
    context: CurrentContext,
    person: Approver,
    target: Name,
    zone: Name,
    why: FreeText = "",
) -> Response:
    podium = context.podium
    demote(trust_of(podium), podium.clock, target, (zone,), by=person.name, why=why.strip())
    return await _page(
        request,
        context,
        person,
        "sense_now.html",
        message=f"{target} in {zone} needs approval again.",
    )


def _written_at(context: WebContext) -> list[tuple[int, int, int]]:
    """Return times and sizes of the loop's own files: an idle tick writes no events, and trust has its own file."""
    paths = (
        f"{STATE}/{MEMORY}",
        f"{STATE}/{BOOK}",
        sense_options(context.podium).layout.telemetry,
    )
    stamps = []
    for path in paths:
        try:
            status = (context.podium.folders.project / path).stat()
        except OSError:
            continue
        stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return stamps


async def _page(
    request: Request,
    context: WebContext,
    person: Person,
    template: str,
    *,
    message: str = "",
    run: str = "",
) -> Response:
    return page(
        request,
        template,
        sense=await see_sense(context.podium),
        said=message,
        run=run,
        may_answer=person.may(ConsoleRole.APPROVER),
        may_start=person.may(ConsoleRole.OPERATOR),
    )
