"""Listeners of a run that raise, hang, lag or leave: the run is the same, and missed events are reported."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from podium.core.events import Event, NoteTaken, RunStarted
from podium.core.work import RunStatus
from podium.engine import EngineSettings, FlowDefinition, FolderPresence, LocalEngine
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import EventQuery, FlowContext, StepContext, Store, StoreView
from podium.store import SqlStore
from podium.telemetry import event_feed
from podium.telemetry.event_feed import ListenerThread
from podium.testing import MemoryStore, retry_until

STEPS = 5
RUN = "run_x"
Take = Callable[[Event], None]
T = TypeVar("T")


async def _flow(ctx: FlowContext, _input: object) -> None:
    async def work(step: StepContext) -> str:
        return step.key

    for number in range(STEPS):
        await ctx.step("work", work, index=number)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[SqlStore, LocalEngine]]:
    clock, ids = SystemClock(), SystemIds()
    store = await SqlStore.open(folder, clock=clock, ids=ids)
    presence = FolderPresence(folder / "workers")
    engine = LocalEngine(store, clock=clock, ids=ids, presence=presence, settings=EngineSettings())
    engine.register(FlowDefinition("steps", _flow))
    try:
        yield store, engine
    finally:
        await engine.close()
        await store.close()


def listen(
    store: Store, take: Take, *, run_id: str | None = None, patience: float = 30
) -> ListenerThread:
    query = EventQuery(run_id=run_id)
    return ListenerThread(store, query, take, name="the live view", patience_seconds=patience)


async def types_of(store: Store, run_id: str) -> list[str]:
    events = await store.read(lambda view: view.events(EventQuery(run_id=run_id)))
    return [event.body.type for event in events]


EVENTS = [
    *("run_queued", "run_started"),
    *("step_started", "step_completed") * STEPS,
    "run_succeeded",
]


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Yield an event that a listener hangs at until the test is over."""
    held = threading.Event()
    yield held
    held.set()


async def say(store: Store, *texts: str) -> None:
    await store.write(lambda tx: [tx.append(RUN, NoteTaken(text=text)) for text in texts])


async def test_listener_is_notified_of_every_event_in_order(tmp_path: Path) -> None:
    seen: list[str] = []
    async with opened(tmp_path) as (store, engine):
        listening = listen(store, lambda event: seen.append(event.body.type))
        run = await engine.finish((await engine.start("steps")).id)
        await listening.close()
        assert await types_of(store, run.id) == seen == EVENTS
    assert (listening.problems, listening.dropped) == ((), 0)


async def test_listener_that_raises_gets_the_next_event_and_costs_the_run_nothing(
    tmp_path: Path,
) -> None:
    seen: list[str] = []

    def take(event: Event) -> None:
        if isinstance(event.body, RunStarted):
            raise ValueError("cannot draw this")
        seen.append(event.body.type)

    async with opened(tmp_path) as (store, engine):
        listening = listen(store, take)
        run = await engine.finish((await engine.start("steps")).id)
        await listening.close()
        assert await types_of(store, run.id) == EVENTS
    assert run.status is RunStatus.SUCCEEDED
    assert seen == [item for item in EVENTS if item != "run_started"]
    [fault] = listening.problems
    assert fault == (
        "the live view failed for 1 event, most recently with ValueError: cannot draw this"
    )


async def test_a_listener_that_hangs_for_ever_is_given_up_and_what_it_missed_is_counted(
    tmp_path: Path, held: threading.Event
) -> None:
    seen: list[str] = []

    def take(event: Event) -> None:
        seen.append(event.body.type)
        if len(seen) == 3:
            held.wait()

    async with opened(tmp_path) as (store, engine):
        listening = listen(store, take, patience=0.05)
        run = await engine.finish((await engine.start("steps")).id)
        assert run.status is RunStatus.SUCCEEDED
        await retry_until(lambda: len(seen) == 3)
        await listening.close()
        assert await types_of(store, run.id) == EVENTS
    assert listening.dropped == len(EVENTS) - 2
    [fault] = listening.problems
    assert fault == "the live view missed 11 events: it stopped accepting events"
    held.set()
    assert len(seen) == 3


async def test_a_listener_slower_than_the_run_lags_without_filling_memory_and_loses_nothing(
    held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "PAGE", 2)
    store, seen = _Counting(), []

    def take(event: Event) -> None:
        held.wait()
        seen.append(event.seq)

    await say(store, *map(str, range(10)))
    slow = listen(store, take, run_id=RUN)
    await retry_until(lambda: store.given >= 4)
    for _ in range(50):  # rounds in which it could read on
        await store.read(lambda view: view.last_position())
    assert store.given == 4
    # One page is with the listener and one behind it; the other six stay where they are.
    assert seen == []
    held.set()
    await slow.close()
    assert seen == list(range(1, 11))
    assert slow.problems == ()


class _Counting(MemoryStore):
    """Counts the different events that were read from it."""

    @property
    def given(self) -> int:
        return len(self.seqs)

    seqs: set[int]

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.seqs = set()

    async def read(self, work: Callable[[StoreView], T]) -> T:
        found = await super().read(work)
        if isinstance(found, list):
            self.seqs |= {item.seq for item in found if isinstance(item, Event)}
        return found


async def test_a_listener_can_leave_while_the_run_goes_on() -> None:
    store, seen = MemoryStore(SystemClock()), []
    listening = listen(store, lambda event: seen.append(event.seq), run_id=RUN)
    await say(store, "one", "two")
    await listening.close()
    await say(store, "three")
    await listening.close()
    assert seen == [1, 2]
    assert (await types_of(store, RUN), listening.problems) == (["note_taken"] * 3, ())


async def test_only_events_of_the_run_after_the_cursor_are_reported() -> None:
    store, seen = MemoryStore(SystemClock()), []
    await say(store, "one", "two", "three")
    await store.write(lambda tx: tx.append("run_y", NoteTaken(text="of another")))
    query = EventQuery(run_id=RUN, after_seq=1)
    messages = ListenerThread(store, query, lambda event: seen.append(event.seq), name="the view")
    await say(store, "four")
    await messages.close()
    assert seen == [2, 3, 4]


class _Falters(MemoryStore):
    """A store that cannot be read for a while."""

    away = 0

    async def read(self, work: Callable[[StoreView], T]) -> T:
        if self.away:
            self.away -= 1
            raise OSError("the disk is away")
        return await super().read(work)


async def test_a_store_that_is_away_for_a_while_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_feed, "PAUSE_SECONDS", 0.001)  # nothing is waited for in it
    store, seen = _Falters(SystemClock()), []
    store.away = 3
    output = listen(store, lambda event: seen.append(event.seq), run_id=RUN)
    await say(store, "one")
    await retry_until(lambda: seen == [1])
    await output.close()
    assert output.problems == ()


async def test_store_that_is_away_at_the_end_is_reported_and_raises_nothing() -> None:
    store, seen = _Falters(SystemClock()), []
    output = listen(store, lambda event: seen.append(event.seq), run_id=RUN)
    await retry_until(lambda: not output._following.done())
    store.away = 1000
    await say(store, "one")
    await output.close()
    assert output.problems == ("the live view missed 1 event: the journal could not be read",)
