"""Timeline of a run as bars in lanes, and its events page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from podium.app.id_lookup import find_id
from podium.app.run_list import RunListing
from podium.core import events as e
from podium.core.decisions import Approval, ApprovalStatus, CallRecord, Usage, usage_counted
from podium.core.errors import UnknownId
from podium.core.events import Event, RunStarted, StepBroke, StepCompleted, StepStarted
from podium.core.forge import check_passed
from podium.core.job import job_event_types
from podium.core.model import FrozenModel, UtcDatetime
from podium.core.work import PULL_SIGNAL, TIMER, Run, WorkerHeartbeat
from podium.ports import Engine, EventQuery, RunQuery, Store, StoreView
from podium.render.event import view_event
from podium.render.event_view import BarEnd, BarStart, Outcome

MAX_CHILDREN = 50
MAX_STEPS = 200
"""Steps of which a person can choose where a run goes again."""
WINDOW = 800
"""Events that are looked through first; each time that this was not enough, twice as many."""
_FLIGHT = ("run_started", "step_started", "step_completed", "step_broke")
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_BY_ITSELF = (TIMER, PULL_SIGNAL)
"""Beginnings of the names of waits that nobody has to end."""


class RunHead(FrozenModel):
    """A run, and what a person wants to know of it at once. All of one moment."""

    listing: RunListing
    usage: Usage = Usage()
    in_flight: tuple[str, ...] = ()
    """Steps that were begun by whoever took the run last, and not ended."""
    done: tuple[str, ...] = ()
    """The last steps that ended, in their order."""
    owner: WorkerHeartbeat | None = None
    asks: tuple[Approval, ...] = ()
    """Open approvals."""
    children: tuple[RunListing, ...] = ()
    last_seq: int = 0

    @property
    def run(self) -> Run:
        return self.listing.run


async def look_at_run(store: Store, engine: Callable[[], Awaitable[Engine]], run: str) -> RunHead:
    """The run that `run` stands for. Raises `UnknownId` or `AmbiguousId`."""
    alive = await (await engine()).alive()
    return await store.read(lambda view: _head(view, run, alive))


async def newest_events(
    store: Store, run_id: str, types: Sequence[str], *, most: int, until_seq: int | None = None
) -> list[Event]:
    """The last events of these types, oldest first; with `until_seq` the last ones up to it."""
    return await store.read(lambda view: newest_in(view, run_id, types, most, until_seq))


async def log_before(store: Store, run_id: str, before_seq: int, most: int) -> list[Event]:
    """The events before this one, or the last ones for 0. Oldest first."""

    def look(view: StoreView) -> list[Event]:
        end = before_seq - 1 if before_seq else view.last_seq(run_id)
        query = EventQuery(run_id=run_id, after_seq=max(0, end - most), until_seq=end, limit=most)
        return view.events(query)

    return await store.read(look)


async def log_after(store: Store, run_id: str, after_seq: int, most: int) -> list[Event]:
    """The events behind this one."""
    query = EventQuery(run_id=run_id, after_seq=after_seq, limit=most)
    return await store.read(lambda view: view.events(query))


async def calls_of(store: Store, run_id: str) -> list[CallRecord]:
    """Every call of a run, the oldest first."""
    return await store.read(lambda view: view.calls(run_id))


def newest_in(
    view: StoreView, run_id: str, types: Sequence[str], most: int, until_seq: int | None = None
) -> list[Event]:
    """The same on a view."""
    high = view.last_seq(run_id) if until_seq is None else until_seq
    events: list[Event] = []
    window = WINDOW
    while high > 0 and len(events) < most:
        low = max(0, high - window)
        query = EventQuery(
            run_id=run_id, types=tuple(types), after_seq=low, until_seq=high, limit=window
        )
        events = [*view.events(query), *events]
        high, window = low, window * 2
    return events[-most:]


def _head(view: StoreView, text: str, alive: Collection[str]) -> RunHead:
    run_id = find_id(view, "run", text)
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", text)
    begun, done = _steps(view, run)
    return RunHead(
        listing=RunListing.among(run, alive),
        usage=usage_counted(
            lambda counter: view.counted(counter, _BEGINNING), "run", run_id, "", view.now()
        ),
        in_flight=begun,
        done=done,
        owner=next((heartbeat for heartbeat in view.workers() if heartbeat.id == run.owner), None),
        asks=() if run.status.ended else _asks(view, run_id),
        children=tuple(
            RunListing.among(child, alive)
            for child in view.runs(RunQuery(parent_id=run_id, limit=MAX_CHILDREN))
        ),
        last_seq=view.last_seq(run_id),
    )


def _asks(view: StoreView, run_id: str) -> tuple[Approval, ...]:
    return tuple(view.approvals(run_id=run_id, statuses=(ApprovalStatus.PENDING,), limit=20))


def _steps(view: StoreView, run: Run) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those in flight, and the last ones that ended."""
    begun: dict[str, None] = {}
    done: dict[str, None] = {}
    for event in newest_in(view, run.id, _FLIGHT, MAX_STEPS):
        match event.body:
            case RunStarted():
                begun.clear()
            case StepStarted(step=step):
                begun[step] = None
            case StepCompleted(step=step) | StepBroke(step=step):
                begun.pop(step, None)
                done[step] = None
    return () if run.status.ended else tuple(begun), tuple(done)


MAX_BARS = 150
"""The last ones are shown."""
PODIUM, CHECKS, PERSON, TIME = "podium", "checks", "a person", "time"
"""Lanes that are no role's."""

_JOB = "job:"
"""Prefix of the keys of bars that the job of the run draws."""
_WORK = (_JOB, "step:")
"""Prefixes of the keys of bars that need a process; waits need none."""
_STEPS = ("agent_asked", "step_started", "step_completed", "step_broke")
_OF_ALL = (
    "branch_delivered",
    "checks_ran",
    "child_started",
    "run_cancelled",
    "run_failed",
    "run_needed_human",
    "run_parked",
    "run_retried",
    "run_started",
    "run_succeeded",
    "run_waiting",
    "signal_received",
    "wait_expired",
)


class Bar(FrozenModel):
    """A piece of work or a wait."""

    lane: str
    label: str
    round: int = 1
    began_at: UtcDatetime
    ended_at: UtcDatetime | None = None
    """None: it goes on, or nobody knows how it ended."""
    outcome: Outcome = "live"
    text: str = ""
    """The verdict, or what went wrong."""
    agent: str = ""
    comes_back: bool = False
    """It repeats work that was sent back."""


class Turning(FrozenModel):
    """Something that concerns the run as a whole: it was taken up again, let go of, or ended."""

    before: int
    """It stands before the bar of this number."""
    label: str
    outcome: Outcome
    at: UtcDatetime


class Timeline(FrozenModel):
    """Bars in the order in which they began."""

    lanes: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    turnings: tuple[Turning, ...] = ()
    cut: bool = False
    """Earlier bars are left out."""


async def run_timeline(store: Store, run_id: str) -> Timeline:
    """Build the timeline of a run from the journal; of a long run, the end."""
    return await store.read(lambda view: _timeline(view, run_id))


def _timeline(view: StoreView, run_id: str) -> Timeline:
    most = 3 * MAX_BARS
    events = newest_in(view, run_id, (*job_event_types(), *_OF_ALL), most)
    if not any(view_event(event.body).bar for event in events):
        events = newest_in(view, run_id, (*_STEPS, *_OF_ALL), most)
    return drawn(events, cut=len(events) == most)


def drawn(events: Iterable[e.Event], *, cut: bool = False) -> Timeline:
    """The bars of these events."""
    drawing = _Drawing()
    for event in events:
        drawing.hear(event)
    left_out = max(0, len(drawing.bars) - MAX_BARS)
    bars = tuple(drawing.bars[left_out:])
    return Timeline(
        lanes=_lanes(bars),
        bars=bars,
        turnings=tuple(
            turning.model_copy(update={"before": turning.before - left_out})
            for turning in drawing.turnings
            if turning.before >= left_out
        ),
        cut=cut or left_out > 0,
    )


def _lanes(bars: Sequence[Bar]) -> tuple[str, ...]:
    """Roles in the order in which they came in; what is no role's stands below."""
    lanes = dict.fromkeys(bar.lane for bar in bars)
    others = (PODIUM, CHECKS, PERSON, TIME)
    return (*(lane for lane in lanes if lane not in others), *(x for x in others if x in lanes))


@dataclass
class _Drawing:
    bars: list[Bar] = field(default_factory=list)
    turnings: list[Turning] = field(default_factory=list)
    _open: dict[str, int] = field(default_factory=dict)
    """Key of an open bar → its number."""

    def hear(self, event: e.Event) -> None:
        match event.body:
            case e.StepStarted(step=step, attempt=attempt):
                self._begin(f"step:{step}", event, PODIUM, step, attempt)
            case e.AgentAsked(step=step) as body if f"step:{step}" in self._open:
                self._amend(f"step:{step}", lane=body.role, agent=body.agent)
            case e.StepCompleted(step=step):
                self._end(f"step:{step}", event, "good", "")
            case e.StepBroke(step=step, failure=failure):
                self._end(f"step:{step}", event, "bad", f"{failure.kind}: {failure.message}")
            case e.ChecksRan() as body:
                self._checked(event, body)
            case e.EventBody() as body if bar_event := view_event(body).bar:
                self._draw(event, bar_event)
            case _:
                self._of_the_run(event)

    def _draw(self, event: e.Event, bar_event: BarStart | BarEnd) -> None:
        """Draw what the job of the run marks."""
        key = f"{_JOB}{bar_event.key}"
        if isinstance(bar_event, BarStart):
            if bar_event.ends_open is not None:
                self._end(key, event, bar_event.ends_open, "")
            self._begin(
                key,
                event,
                bar_event.lane,
                bar_event.label,
                bar_event.round,
                comes_back=bar_event.round > 1,
            )
        elif (
            key in self._open
        ):  # else it was recorded again on resume, or its start is too far back
            self._amend(key, agent=bar_event.agent)
            self._end(key, event, bar_event.outcome, bar_event.text)

    def _of_the_run(self, event: e.Event) -> None:
        match event.body:
            case e.RunWaiting(signal=signal):
                lane = TIME if signal.startswith(_BY_ITSELF) else PERSON
                self._begin(f"wait:{signal}", event, lane, signal.removeprefix(TIMER))
                self._amend(f"wait:{signal}", outcome="wait")
            case e.SignalReceived() | e.WaitExpired() as body:
                came = isinstance(body, e.SignalReceived) or body.name.startswith(_BY_ITSELF)
                how: Outcome = "good" if came else "bad"
                self._end(f"wait:{body.name}", event, how, "" if how == "good" else "too late")
            case e.RunStarted(fence=fence) if fence > 1:
                self._end_all(event, _WORK, "bad", "interrupted: its process is gone")
                self._turn(event, "resumed", "wait")
            case e.RunParked(reason=reason):
                self._turn(event, f"interrupted: {reason}", "wait")
            case e.RunRetried():
                self._turn(event, "retried", "wait")
            case e.RunNeededHuman():
                self._turn(event, "needs a person", "wait")
            case e.RunFailed(failure=failure):
                self._end_all(event, "", "bad", "")
                self._turn(event, f"failed: {failure.message}", "bad")
            case e.RunCancelled():
                self._end_all(event, "", "bad", "cancelled")
                self._turn(event, "cancelled", "bad")
            case e.RunSucceeded():
                self._end_all(event, "", "plain", "")
                self._turn(event, "succeeded", "good")

    def _checked(self, event: e.Event, body: e.ChecksRan) -> None:
        self._begin("checks", event, CHECKS, "checks")
        self._end("checks", event, "good" if body.passed else "bad", _checks_text(body))

    def _begin(
        self,
        key: str,
        event: e.Event,
        lane: str,
        label: str,
        round: int = 1,
        *,
        comes_back: bool = False,
    ) -> None:
        again = self._open.pop(key, None)
        if again is not None and self.bars[again].outcome == "live":
            self.bars[again] = self.bars[again].model_copy(update={"outcome": "bad"})
        self._open[key] = len(self.bars)
        self.bars.append(
            Bar(lane=lane, label=label, round=round, began_at=event.at, comes_back=comes_back)
        )

    def _amend(self, key: str, **facts: object) -> None:
        number = self._open[key]
        self.bars[number] = self.bars[number].model_copy(update=facts)

    def _end(self, key: str, event: e.Event, outcome: Outcome, text: str) -> None:
        number = self._open.pop(key, None)
        if number is not None:
            update = {"ended_at": event.at, "outcome": outcome, "text": text}
            self.bars[number] = self.bars[number].model_copy(update=update)

    def _end_all(
        self, event: e.Event, beginning: str | tuple[str, ...], outcome: Outcome, text: str
    ) -> None:
        for key in [name for name in self._open if name.startswith(beginning)]:
            self._end(key, event, outcome, text)

    def _turn(self, event: e.Event, label: str, outcome: Outcome) -> None:
        self.turnings.append(
            Turning(before=len(self.bars), label=label, outcome=outcome, at=event.at)
        )


def _checks_text(body: e.ChecksRan) -> str:
    if not body.results:
        return "none ran"
    passed = sum(1 for result in body.results if check_passed(result))
    return f"{passed} of {len(body.results)} passed"
