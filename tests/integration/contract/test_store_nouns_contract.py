"""Contract of every `Store`: finding the records that it stores."""

from __future__ import annotations

from datetime import timedelta

import pytest

from podium.core.decisions import Approval, ApprovalStatus, CallStatus, Receipt
from podium.core.events import NoteTaken, RunParked
from podium.core.ids import short_id, tail_of
from podium.core.work import Run, RunStatus, Schedule, StepStatus, WorkerHeartbeat
from podium.ports import EventQuery, RunQuery, Store, StoreView, Transaction
from podium.testing import FixedClock
from tests.unit.contract.nouns import (
    NOON,
    a_call,
    a_note,
    a_queued_run,
    a_receipt,
    a_run,
    a_signal,
    a_step,
    an_approval,
)


async def texts(store: Store, query: EventQuery) -> list[str]:
    events = await store.read(lambda view: view.events(query))
    return [event.body.text for event in events if isinstance(event.body, NoteTaken)]


async def note(store: Store, run_id: str, text: str) -> None:
    await store.write(lambda tx: tx.append(run_id, a_note(text)))


async def add(store: Store, *runs: Run) -> None:
    def work(tx: Transaction) -> None:
        for run in runs:
            tx.add_run(run)

    await store.write(work)


async def save(store: Store, *approvals: Approval) -> None:
    def work(tx: Transaction) -> None:
        for approval in approvals:
            tx.save_approval(approval)

    await store.write(work)


async def run_ids(store: Store, query: RunQuery) -> list[str]:
    return [run.id for run in await store.read(lambda view: view.runs(query))]


async def test_events_are_found_by_run_in_order(store: Store) -> None:
    for run_id, text in (("run_a", "1"), ("run_b", "2"), ("run_a", "3")):
        await note(store, run_id, text)
    assert await texts(store, EventQuery(run_id="run_a")) == ["1", "3"]
    assert await texts(store, EventQuery()) == ["1", "2", "3"]
    assert await texts(store, EventQuery(run_id="run_none")) == []


async def test_events_are_found_by_type(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.append("run_a", a_note("1"))
        tx.append("run_a", RunParked(reason="test"))
        tx.append("run_b", a_note("2"))

    await store.write(work)
    assert await texts(store, EventQuery(types=("note_taken",))) == ["1", "2"]
    parked = await store.read(lambda view: view.events(EventQuery(types=("run_parked",))))
    assert [event.seq for event in parked] == [2]
    both = EventQuery(types=("note_taken", "run_parked"))
    assert len(await store.read(lambda view: view.events(both))) == 3


async def test_events_are_found_by_time_both_ends_included(store: Store, clock: FixedClock) -> None:
    for text in "12345":
        await note(store, "run_a", text)
        clock.advance(10)
    second, fourth = NOON + timedelta(seconds=10), NOON + timedelta(seconds=30)
    assert await texts(store, EventQuery(since=second)) == ["2", "3", "4", "5"]
    assert await texts(store, EventQuery(until=second)) == ["1", "2"]
    assert await texts(store, EventQuery(since=second, until=fourth)) == ["2", "3", "4"]
    assert await texts(store, EventQuery(since=clock.now())) == []


async def test_events_come_in_pages(store: Store) -> None:
    for text in "0123456":
        await note(store, "run_a", text)

    def pages(view: StoreView) -> list[list[int]]:
        found, query = [], EventQuery(limit=3)
        while page := view.events(query):
            found.append([event.seq for event in page])
            query = query.model_copy(update={"after_position": page[-1].position})
        return found

    assert await store.read(pages) == [[1, 2, 3], [4, 5, 6], [7]]
    assert await texts(store, EventQuery(run_id="run_a", after_seq=5)) == ["5", "6"]


async def test_the_last_position_is_that_of_the_last_event(store: Store) -> None:
    assert await store.read(lambda view: view.last_position()) == 0
    await store.write(lambda tx: tx.append("run_a", a_note()))
    await store.write(lambda tx: tx.append("run_b", a_note()))
    events = await store.read(lambda view: view.events(EventQuery()))
    assert await store.read(lambda view: view.last_position()) == events[-1].position
    assert await store.read(lambda view: view.last_seq("run_b")) == 1


async def test_runs_are_listed_newest_first_in_pages(store: Store) -> None:
    runs = [a_run() for _ in range(5)]
    await add(store, *runs)
    newest_first = [run.id for run in reversed(runs)]
    first = await run_ids(store, RunQuery(limit=2))
    assert first == newest_first[:2]
    assert await run_ids(store, RunQuery(before_id=first[-1])) == newest_first[2:]


async def test_runs_are_listed_by_status_flow_queue_and_parent(store: Store) -> None:
    plain = a_run()
    other = a_run(flow="other", status=RunStatus.FAILED)
    queued = a_queued_run(status=RunStatus.WAITING)
    child = a_run(parent_id=plain.id, status=RunStatus.SUCCEEDED)
    await add(store, plain, other, queued, child)
    assert await run_ids(store, RunQuery(flow="other")) == [other.id]
    assert await run_ids(store, RunQuery(queue="work")) == [queued.id]
    assert await run_ids(store, RunQuery(parent_id=plain.id)) == [child.id]
    two = (RunStatus.FAILED, RunStatus.SUCCEEDED)
    assert await run_ids(store, RunQuery(statuses=two)) == [child.id, other.id]


async def test_a_saved_run_replaces_the_one_before(store: Store) -> None:
    run = a_run()
    await store.write(lambda tx: tx.add_run(run))
    await store.write(
        lambda tx: tx.save_run(run.model_copy(update={"status": RunStatus.SUCCEEDED}))
    )
    assert await run_ids(store, RunQuery(statuses=(RunStatus.QUEUED,))) == []
    assert await run_ids(store, RunQuery(statuses=(RunStatus.SUCCEEDED,))) == [run.id]


async def test_an_id_is_found_whole_or_by_the_beginning_of_its_tail(store: Store) -> None:
    run, approval = a_run(), an_approval("run_x")
    await store.write(lambda tx: tx.add_run(run))
    await store.write(lambda tx: tx.save_approval(approval))

    async def found(kind: str, text: str) -> list[str]:
        return await store.read(lambda view: view.find_ids(kind, text))

    assert await found("run", run.id) == [run.id]
    assert await found("run", short_id(run.id)) == [run.id]
    assert await found("run", tail_of(run.id)[:4]) == [run.id]
    assert await found("run", tail_of(run.id)[:3]) == []
    assert await found("run", "zzzz") == []
    assert await found("run", "") == []
    assert await found("approval", short_id(approval.id)) == [approval.id]
    assert await found("approval", run.id) == []


async def test_a_short_id_that_fits_several_gives_them_all(store: Store) -> None:
    ids = ["run_" + "0" * 20 + "abcd" + str(number) * 8 for number in range(3)]
    await add(store, *(a_run(id=identifier) for identifier in ids))
    assert await store.read(lambda view: view.find_ids("run", "abcd")) == ids
    assert await store.read(lambda view: view.find_ids("run", "abcd1")) == ids[1:2]


@pytest.mark.parametrize("text", ["%%%%", "____", "abcd%", "'; --"])
async def test_a_short_id_is_no_pattern(store: Store, text: str) -> None:
    await store.write(lambda tx: tx.add_run(a_run()))
    assert await store.read(lambda view: view.find_ids("run", text)) == []


async def test_steps_come_in_the_order_of_their_ordinals(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.save_step(a_step("run_a", "late#0", ordinal=2))
        tx.save_step(a_step("run_a", "early#0", ordinal=1, output={"n": 1}))
        tx.save_step(a_step("run_b", "early#0", ordinal=1))

    await store.write(work)
    steps = await store.read(lambda view: view.steps("run_a"))
    assert [step.key for step in steps] == ["early#0", "late#0"]
    behind = await store.read(lambda view: view.steps("run_a", after=1))
    assert [step.key for step in behind] == ["late#0"]
    first = await store.read(lambda view: view.steps("run_a", limit=1))
    assert [step.key for step in first] == ["early#0"]
    step = await store.read(lambda view: view.step("run_a", "early#0"))
    assert step is not None
    assert step.output == {"n": 1}


async def test_a_saved_step_is_given_back_as_it_was_kept(store: Store) -> None:
    waiting = a_step("run_a", "ask#0", status=StepStatus.WAITING, deadline=NOON)
    assert await store.write(lambda tx: tx.save_step(waiting)) == waiting
    done = waiting.model_copy(update={"status": StepStatus.COMPLETED, "output": "yes"})
    assert await store.write(lambda tx: tx.save_step(done)) == done
    assert await store.read(lambda view: view.steps("run_a")) == [done]


async def test_dropped_steps_are_gone_and_others_stay(store: Store) -> None:
    def work(tx: Transaction) -> None:
        for ordinal, key in enumerate(("one#0", "two#0", "three#0")):
            tx.save_step(a_step("run_a", key, ordinal=ordinal))
        tx.save_step(a_step("run_b", "two#0"))
        tx.drop_steps("run_a", ["two#0", "three#0", "never#0"])

    await store.write(work)
    assert [one.key for one in await store.read(lambda view: view.steps("run_a"))] == ["one#0"]
    assert await store.read(lambda view: view.step("run_b", "two#0"))


async def test_with_a_step_its_calls_are_forgotten_but_none_that_is_in_doubt(store: Store) -> None:
    def work(tx: Transaction) -> None:
        for status in CallStatus:
            tx.save_call(a_call("run_a", status, step_key="edit#0", status=status))
        tx.save_call(a_call("run_a", "kept", step_key="read#0", status=CallStatus.COMPLETED))
        tx.save_call(a_call("run_b", "other", step_key="edit#0", status=CallStatus.COMPLETED))
        tx.drop_steps("run_a", ["edit#0"])

    await store.write(work)
    left = await store.read(lambda view: view.calls("run_a"))
    assert {call.key for call in left} == {"requested", "in_doubt", "kept"}
    assert await store.read(lambda view: view.call("other"))


async def test_signals_are_taken_oldest_first_and_once(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.add_signal(a_signal("run_a", "answer", 1))
        tx.add_signal(a_signal("run_a", "other", 2))
        tx.add_signal(a_signal("run_a", "answer", {"n": 3}))
        tx.add_signal(a_signal("run_b", "answer", 4))

    await store.write(work)
    everything = await store.read(lambda view: view.signals("run_a"))
    assert [signal.payload for signal in everything] == [1, 2, {"n": 3}]
    taken = [await store.write(lambda tx: tx.take_signal("run_a", "answer")) for _ in range(3)]
    assert [signal and signal.payload for signal in taken] == [1, {"n": 3}, None]
    left = await store.read(lambda view: view.signals("run_a"))
    assert [signal.payload for signal in left] == [2]
    assert await store.read(lambda view: view.signals("run_b", "answer"))


async def test_calls_are_found_by_key_run_and_status_in_the_order_they_were_asked(
    store: Store,
) -> None:
    def work(tx: Transaction) -> None:
        tx.save_call(a_call("run_a", "z", requested_at=NOON))
        later = NOON + timedelta(seconds=1)
        tx.save_call(a_call("run_a", "a", status=CallStatus.COMPLETED, requested_at=later))
        tx.save_call(a_call("run_b", "b"))

    await store.write(work)
    calls = await store.read(lambda view: view.calls("run_a"))
    assert [call.key for call in calls] == ["z", "a"]
    open_ones = await store.read(lambda view: view.calls("run_a", CallStatus.REQUESTED))
    assert [call.key for call in open_ones] == ["z"]
    assert await store.read(lambda view: view.call("b")) == a_call("run_b", "b")
    assert await store.read(lambda view: view.call("none")) is None


async def test_approvals_are_listed_newest_first_by_run_and_status(store: Store) -> None:
    first = an_approval("run_a")
    second = an_approval("run_a", status=ApprovalStatus.GRANTED)
    third = an_approval("run_b")
    await save(store, first, second, third)

    assert await store.read(lambda view: view.approvals()) == [third, second, first]
    assert await store.read(lambda view: view.approvals(limit=1)) == [third]
    assert await store.read(lambda view: view.approvals(before_id=third.id)) == [second, first]
    assert await store.read(lambda view: view.approvals(run_id="run_a")) == [second, first]
    pending = (ApprovalStatus.PENDING,)
    assert await store.read(lambda view: view.approvals(statuses=pending)) == [third, first]
    assert await store.read(lambda view: view.approval(second.id)) == second


async def test_the_newest_approval_of_a_digest_in_a_state_is_found(store: Store) -> None:
    older = an_approval("run_a", digest="sha256:x", status=ApprovalStatus.GRANTED)
    newer = an_approval("run_a", digest="sha256:x", status=ApprovalStatus.GRANTED)
    newest = an_approval("run_a", digest="sha256:x", status=ApprovalStatus.REJECTED)
    await save(store, older, newer, newest)
    granted = (ApprovalStatus.GRANTED,)
    assert await store.read(lambda view: view.approval_for("sha256:x", granted)) == newer
    assert await store.read(lambda view: view.approval_for("sha256:y", granted)) is None


async def test_receipts_are_numbered_and_chained_per_run(store: Store) -> None:
    def work(tx: Transaction) -> list[Receipt]:
        return [tx.add_receipt(a_receipt(run)) for run in ("run_a", "run_b", "run_a")]

    one, other, two = await store.write(work)
    assert (one.number, one.previous) == (1, "")
    assert (two.number, two.previous) == (2, one.seal)
    assert (other.number, other.previous) == (1, "")
    assert len({one.seal, two.seal, other.seal, "made up", ""}) == 5
    assert await store.read(lambda view: view.receipts("run_a")) == [one, two]
    assert await store.read(lambda view: view.receipts()) == [one, two, other]
    assert await store.read(lambda view: view.last_receipt("run_a")) == two
    assert await store.read(lambda view: view.last_receipt("run_none")) is None


async def test_counters_add_up_what_falls_into_the_window(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.count("usd", NOON, 0.5)
        tx.count("usd", NOON, 0.25)
        tx.count("usd", NOON + timedelta(seconds=60), 1.0)
        tx.count("calls", NOON)

    await store.write(work)

    async def counted(counter: str, seconds: float) -> float:
        since = NOON + timedelta(seconds=seconds)
        return await store.read(lambda view: view.counted(counter, since))

    assert await counted("usd", 0) == 1.75
    assert await counted("usd", 1) == 1.0
    assert await counted("usd", 61) == 0.0
    assert await counted("calls", 0) == 1.0
    assert await counted("nothing", 0) == 0.0


async def test_schedules_are_kept_by_name(store: Store) -> None:
    nightly = Schedule(name="nightly", flow="f", queue="q", cron="0 3 * * *", next_at=NOON)
    hourly = Schedule(name="hourly", flow="f", queue="q", every_seconds=3600, next_at=NOON)
    paused = nightly.model_copy(update={"paused": True})

    def work(tx: Transaction) -> None:
        for schedule in (nightly, hourly, paused):
            tx.save_schedule(schedule)

    await store.write(work)
    assert await store.read(lambda view: view.schedules()) == [hourly, paused]
    await store.write(lambda tx: tx.drop_schedule("hourly"))
    assert await store.read(lambda view: view.schedules()) == [paused]


async def test_workers_are_kept_by_id(store: Store) -> None:
    heartbeat = WorkerHeartbeat(id="w1", host="h", pid=1, started_at=NOON, beat_at=NOON)
    later = heartbeat.model_copy(update={"beat_at": NOON + timedelta(seconds=5)})
    await store.write(lambda tx: tx.save_worker(heartbeat))
    await store.write(lambda tx: tx.save_worker(later))
    assert await store.read(lambda view: view.workers()) == [later]
    await store.write(lambda tx: tx.drop_worker("w1"))
    assert await store.read(lambda view: view.workers()) == []
