"""A person takes a keyboard: the task that the pair works on says so, and shows it in its ladder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.terminals import KeyboardRequest, Terminal
from podium.core.turns import MessageBlock
from podium.core.work import Run, RunStatus
from podium.jobs.duet.events import KeyboardReturned, KeyboardTaken, MessageHeard, PairSeated
from podium.jobs.duet.keyboard import keyboard_came_back, return_keyboard, take_keyboard
from podium.jobs.duet.models import DUET
from podium.jobs.duet.task_table import task_history
from podium.ports import Transaction
from podium.testing import FixedClock, MemoryMirror, MemoryStore, SteadyIds

PLANNER = Terminal(side="PLANNER")
ANN = KeyboardRequest(terminal=PLANNER, who="ann")
RUN = SteadyIds().new("run")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def store(clock: FixedClock) -> AsyncIterator[MemoryStore]:
    """With a task that pair `main` works on."""
    store = MemoryStore(clock)

    def begin(tx: Transaction) -> None:
        tx.add_run(
            Run(id=RUN, flow=DUET, task="tidy", status=RunStatus.RUNNING, created_at=clock.now())
        )
        tx.append(RUN, PairSeated(pair="main", planner="a", executer="b", transport="tui"))

    await store.write(begin)
    yield store
    await store.close()


async def test_taking_and_returning_appear_in_the_journal_exactly_once(
    store: MemoryStore, clock: FixedClock
) -> None:
    mirror = MemoryMirror(clock)
    await take_keyboard(store, mirror, ANN)
    await take_keyboard(store, mirror, ANN)
    await return_keyboard(store, mirror, PLANNER, "ann")
    messages = [item.event for item in await task_history(store, RUN, 10)]
    assert messages == [
        KeyboardTaken(pair="main", side="PLANNER", by="ann"),
        KeyboardReturned(pair="main", side="PLANNER", by="ann"),
    ]


async def test_nothing_is_put_down_for_whoever_did_not_get_it(
    store: MemoryStore, clock: FixedClock
) -> None:
    mirror = MemoryMirror(clock)
    with pytest.raises(BadInput, match="nobody has taken the keyboard of PLANNER"):
        await return_keyboard(store, mirror, PLANNER, "bob")
    hold = await take_keyboard(store, mirror, ANN)
    with pytest.raises(NotPossibleNow, match="'ann' has the keyboard"):
        await take_keyboard(store, mirror, ANN.model_copy(update={"who": "bob"}))
    with pytest.raises(NotPossibleNow):
        await return_keyboard(store, mirror, PLANNER, "bob")
    assert len(await task_history(store, RUN, 10)) == 1
    await keyboard_came_back(store, RUN, PLANNER, hold)
    last = (await task_history(store, RUN, 10))[-1].event
    assert isinstance(last, KeyboardReturned)
    assert (last.by, last.why) == ("ann", "the time was up")


async def test_a_pair_at_rest_and_a_project_without_tasks_have_keyboards_too(
    store: MemoryStore, clock: FixedClock
) -> None:
    mirror = MemoryMirror(clock)
    other = Terminal(pair="second", side="PLANNER")
    await take_keyboard(store, mirror, KeyboardRequest(terminal=other, who="ann"))
    await take_keyboard(None, mirror, ANN)
    assert await task_history(store, RUN, 10) == []


async def test_history_shows_who_wrote_what_to_whom_and_only_the_latest_of_it(
    store: MemoryStore,
) -> None:
    plan = MessageBlock(to="EXECUTER", type="plan", id="x", body="1. look")

    def hear(tx: Transaction) -> None:
        stray = MessageHeard(leg=0, sender="PLANNER", message=plan, why="a later one counts")
        tx.append(RUN, stray)
        tx.append(RUN, stray.model_copy(update={"routed_to": "EXECUTER", "why": ""}))

    await store.write(hear)
    rungs = await task_history(store, RUN, 10)
    assert [(rung.sender, rung.to, rung.type, rung.body) for rung in rungs] == [
        ("PLANNER", None, "plan", "1. look"),
        ("PLANNER", "EXECUTER", "plan", "1. look"),
    ]
    assert await task_history(store, RUN, 1) == rungs[1:]
