"""Report of one run at one point in time: steps, calls, approvals, agents, usage; its log and transcripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from podium.app.id_lookup import find_id
from podium.core.decisions import Approval, CallRecord, Receipt, Usage
from podium.core.errors import NotPossibleNow, UnknownId
from podium.core.events import (
    AgentReplied,
    Event,
    RunStarted,
    StepBroke,
    StepCompleted,
    StepStarted,
)
from podium.core.model import FrozenModel, Json
from podium.core.run_cost import METERED_TYPES, CostMeter
from podium.core.work import Run, StepRecord, WorkerHeartbeat
from podium.platform.safe_open import read_start
from podium.ports import EventQuery, Store, StoreView

if TYPE_CHECKING:
    from podium.app.app import Podium

TYPES = (*METERED_TYPES, "run_started", "step_started", "agent_replied")
EVENT_PAGE = 1000


class RunWork(FrozenModel):
    """Agents of a run's steps, and the usage."""

    agents: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Step key → those who answered in it, the first first."""
    usage: Usage = Usage()
    """Of agents and tools together, also of what was discarded, brought no answer or goes on."""
    calls: int = 0
    """Refused ones included."""
    model_answers: int = 0
    """Of agents whose models Podium asks itself."""
    used_by: dict[str, Usage] = Field(default_factory=dict)
    """Agent → what its turns used that have ended."""


def who_worked(view: StoreView, run_id: str, steps: Sequence[StepRecord]) -> RunWork:
    """Read the run's whole stream once."""
    open_steps: dict[str, None] = {}
    agents: dict[str, dict[str, None]] = {}
    meter = CostMeter()
    for event in _events(view, run_id):
        meter.take(event.body)
        match event.body:
            case RunStarted():
                open_steps.clear()
            case StepStarted(step=step):
                open_steps[step] = None
            case StepCompleted(step=step) | StepBroke(step=step):
                open_steps.pop(step, None)
            case AgentReplied() as reply:
                if (step_key := _step_of(reply, tuple(open_steps), steps)) is not None:
                    agents.setdefault(step_key, {})[reply.agent] = None
    return RunWork(
        agents={step: tuple(names) for step, names in agents.items()},
        usage=meter.usage,
        calls=meter.calls,
        model_answers=meter.model_answers,
        used_by=meter.agents,
    )


def _step_of(
    reply: AgentReplied, open_steps: Sequence[str], steps: Sequence[StepRecord]
) -> str | None:
    """The step an answer belongs to. None: several were going on, and nothing tells them apart."""
    if len(open_steps) == 1:
        return open_steps[0]
    keys = (step.key for step in steps if reply.transcript and _keeps(step, reply.transcript))
    return next(keys, None)


def _keeps(step: StepRecord, transcript: str) -> bool:
    return isinstance(step.output, dict) and step.output.get("transcript") == transcript


def _events(view: StoreView, run_id: str) -> Iterator[Event]:
    after = 0
    while page := view.events(
        EventQuery(run_id=run_id, types=TYPES, after_seq=after, limit=EVENT_PAGE)
    ):
        yield from page
        after = page[-1].seq


FLIGHT = ("run_started", "step_started", "step_completed", "step_broke")
"""Events that say which step is being done."""
LOOKED_BACK = 1000
"""So many of the last events are looked through for it."""


class RunReport(FrozenModel):
    """A run and all that is known of it. All parts are of one moment."""

    run: Run
    steps: tuple[StepRecord, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    approvals: tuple[Approval, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    events: tuple[Event, ...] = ()
    """The last ones."""
    in_flight: tuple[str, ...] = ()
    """Steps that were begun by whoever took the run last, and not ended."""
    owner: WorkerHeartbeat | None = None
    """Last heartbeat of the run's owner, if it is known."""
    work: RunWork = RunWork()
    """Agents of its steps, and the usage so far."""

    def record(self) -> dict[str, Json]:
        """The report as JSON, events flat as in traces."""
        return {
            "run": self.run.model_dump(mode="json"),
            "steps": [
                {**step.model_dump(mode="json"), "agents": list(self.work.agents.get(step.key, ()))}
                for step in self.steps
            ],
            "usage": self.work.usage.model_dump(mode="json"),
            "cost": {
                "calls": self.work.calls,
                "model_answers": self.work.model_answers,
                "agents": {
                    name: used.model_dump(mode="json") for name, used in self.work.used_by.items()
                },
            },
            "calls": [call.model_dump(mode="json") for call in self.calls],
            "approvals": [approval.model_dump(mode="json") for approval in self.approvals],
            "receipts": [receipt.model_dump(mode="json") for receipt in self.receipts],
            "events": [event.line() for event in self.events],
            "in_flight": list(self.in_flight),
            "owner": self.owner.model_dump(mode="json") if self.owner else None,
        }


async def show_run(store: Store, run: str, *, last_events: int = 20) -> RunReport:
    """The run that `run` stands for. Raises `UnknownId` or `AmbiguousId`."""
    return await store.read(lambda view: _report(view, run, last_events))


def _report(view: StoreView, text: str, last_events: int) -> RunReport:
    run_id = find_id(view, "run", text)
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", text)
    last = view.last_seq(run_id)
    behind = max(0, last - last_events)
    steps = tuple(view.steps(run_id))
    return RunReport(
        run=run,
        steps=steps,
        calls=tuple(view.calls(run_id)),
        approvals=tuple(view.approvals(run_id=run_id)),
        receipts=tuple(view.receipts(run_id)),
        events=tuple(view.events(_last(run_id, behind, last_events))),
        in_flight=() if run.status.ended else _in_flight(view, run_id, last),
        owner=next((heartbeat for heartbeat in view.workers() if heartbeat.id == run.owner), None),
        work=who_worked(view, run_id, steps),
    )


def _last(run_id: str, behind: int, how_many: int) -> EventQuery:
    return EventQuery(run_id=run_id, after_seq=behind, limit=max(1, how_many))


def _in_flight(view: StoreView, run_id: str, last: int) -> tuple[str, ...]:
    after = max(0, last - LOOKED_BACK)
    begun: dict[str, None] = {}
    for event in view.events(EventQuery(run_id=run_id, types=FLIGHT, after_seq=after)):
        match event.body:
            case RunStarted():
                begun.clear()
            case StepStarted(step=step):
                begun[step] = None
            case StepCompleted(step=step) | StepBroke(step=step):
                begun.pop(step, None)
    return tuple(begun)


LOG_PAGE = 500


async def follow_logs(
    store: Store, run: str, *, follow: bool = False, after_seq: int = 0
) -> AsyncIterator[Event]:
    """Yield a run's events in order; with `follow` until the run has ended, whoever hosts it.

    Raises `UnknownId` or `AmbiguousId` before the first event.
    """
    run_id = await store.read(lambda view: find_id(view, "run", run))
    changes = store.changes()
    async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
        async for _ in changes:
            more = True
            while more:
                events, ended = await store.read(partial(_page, run_id, after_seq))
                for event in events:
                    yield event
                    after_seq = event.seq
                more = len(events) == LOG_PAGE
            if ended or not follow:
                return


def _page(run_id: str, after_seq: int, view: StoreView) -> tuple[list[Event], bool]:
    """The next events, and whether the run had ended when they were read."""
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", run_id)
    query = EventQuery(run_id=run_id, after_seq=after_seq, limit=LOG_PAGE)
    return view.events(query), run.status.ended


async def list_events(
    store: Store, *, after: int = 0, limit: int, types: Sequence[str] = ()
) -> list[Event]:
    """Events of all runs behind this position."""
    query = EventQuery(after_position=after, types=tuple(types), limit=limit)
    return await store.read(lambda view: view.events(query))


async def list_run_events(
    store: Store, run: str, *, after: int = 0, limit: int, types: Sequence[str] = ()
) -> list[Event]:
    """Events of one run behind this `seq`. Raises `UnknownId` or `AmbiguousId`."""

    def look(view: StoreView) -> list[Event]:
        run_id = find_id(view, "run", run)
        query = EventQuery(run_id=run_id, after_seq=after, types=tuple(types), limit=limit)
        return view.events(query)

    return await store.read(look)


async def list_steps(store: Store, run: str, *, after: int = -1, limit: int) -> list[StepRecord]:
    """Steps behind this ordinal, in their order. Raises `UnknownId` or `AmbiguousId`."""

    def look(view: StoreView) -> list[StepRecord]:
        return view.steps(find_id(view, "run", run), after=after, limit=limit)

    return await store.read(look)


MAX_BYTES = 400_000


async def transcript_of(podium: Podium, run_id: str, name: str) -> tuple[str, bool]:
    """The beginning of a transcript of a run, and whether that is not all of it.

    Raises `UnknownId` for any other file.
    """
    folder = podium.folders.state / "runs" / run_id / "replies"
    return await asyncio.to_thread(_read, folder, name)


def _read(folder: Path, name: str) -> tuple[str, bool]:
    # Only what is listed there: a name is never followed as a path.
    if not folder.is_dir() or name not in {path.name for path in folder.iterdir()}:
        raise UnknownId("transcript", name)
    try:
        content = read_start(folder / name, MAX_BYTES + 1)
    except OSError as error:
        raise NotPossibleNow(f"transcript {name!r} cannot be read ({error.strerror})") from None
    return content[:MAX_BYTES].decode(errors="replace"), len(content) > MAX_BYTES
