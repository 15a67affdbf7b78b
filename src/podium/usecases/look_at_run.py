"""A run's page: what stands above all else, and its events piece by piece, however many there are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime

from podium.domain.errors import UnknownId
from podium.domain.events import Event, RunStarted, StepBroke, StepCompleted, StepStarted
from podium.domain.gating import Approval, ApprovalStatus, CallRecord, Usage
from podium.domain.model import Noun
from podium.domain.spending import usage_counted
from podium.domain.work import Run, WorkerBeat
from podium.ports import Engine, EventQuery, RunQuery, Store, View
from podium.usecases.find_id import find_id
from podium.usecases.list_runs import Standing

MOST_CHILDREN = 50
MOST_STEPS = 200
"""Steps of which a person can choose where a run goes again."""
WINDOW = 800
"""Events that are looked through first; each time that this was not enough, twice as many."""
_FLIGHT = ("run_started", "step_started", "step_completed", "step_broke")
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class RunHead(Noun):
    """A run, and what a person wants to know of it at once. All of one moment."""

    stands: Standing
    usage: Usage = Usage()
    in_flight: tuple[str, ...] = ()
    """Steps that were begun by whoever took the run last, and not ended."""
    done: tuple[str, ...] = ()
    """The last steps that ended, in their order."""
    owner: WorkerBeat | None = None
    asks: tuple[Approval, ...] = ()
    """What people are asked just now."""
    children: tuple[Standing, ...] = ()
    last_seq: int = 0

    @property
    def run(self) -> Run:
        return self.stands.run


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

    def look(view: View) -> list[Event]:
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
    view: View, run_id: str, types: Sequence[str], most: int, until_seq: int | None = None
) -> list[Event]:
    """The same on a view."""
    high = view.last_seq(run_id) if until_seq is None else until_seq
    found: list[Event] = []
    window = WINDOW
    while high > 0 and len(found) < most:
        low = max(0, high - window)
        query = EventQuery(
            run_id=run_id, types=tuple(types), after_seq=low, until_seq=high, limit=window
        )
        found = [*view.events(query), *found]
        high, window = low, window * 2
    return found[-most:]


def _head(view: View, text: str, alive: Collection[str]) -> RunHead:
    run_id = find_id(view, "run", text)
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", text)
    begun, done = _steps(view, run)
    return RunHead(
        stands=Standing.among(run, alive),
        usage=usage_counted(
            lambda counter: view.counted(counter, _BEGINNING), "run", run_id, "", view.now()
        ),
        in_flight=begun,
        done=done,
        owner=next((beat for beat in view.workers() if beat.id == run.owner), None),
        asks=() if run.status.ended else _asks(view, run_id),
        children=tuple(
            Standing.among(child, alive)
            for child in view.runs(RunQuery(parent_id=run_id, limit=MOST_CHILDREN))
        ),
        last_seq=view.last_seq(run_id),
    )


def _asks(view: View, run_id: str) -> tuple[Approval, ...]:
    return tuple(view.approvals(run_id=run_id, statuses=(ApprovalStatus.PENDING,), limit=20))


def _steps(view: View, run: Run) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those in flight, and the last ones that ended."""
    begun: dict[str, None] = {}
    done: dict[str, None] = {}
    for event in newest_in(view, run.id, _FLIGHT, MOST_STEPS):
        match event.body:
            case RunStarted():
                begun.clear()
            case StepStarted(step=step):
                begun[step] = None
            case StepCompleted(step=step) | StepBroke(step=step):
                begun.pop(step, None)
                done[step] = None
    return () if run.status.ended else tuple(begun), tuple(done)
