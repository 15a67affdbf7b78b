"""List, show and follow runs; list, follow and verify receipts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing

import pytest

from podium.app.id_lookup import find_call_key
from podium.app.receipts import Fault, Finding, follow_receipts, list_receipts, verify_receipts
from podium.app.run_list import list_runs
from podium.app.run_report import EVENT_PAGE, follow_logs, show_run
from podium.core.decisions import Receipt, Usage
from podium.core.errors import BadInput, UnknownId
from podium.core.events import AgentReplied, EventBody, StepCompleted, StepStarted, UsageRecorded
from podium.core.ids import short_id
from podium.core.work import RunStatus, StepRecord, StepStatus
from podium.ports import RunQuery, Transaction
from tests.unit.usecases.scene import Scene


async def test_runs_are_listed_newest_first_and_by_state(scene: Scene) -> None:
    old = await scene.add_run()
    new = await scene.add_run(status=RunStatus.FAILED)
    assert [run.id for run in await list_runs(scene.store)] == [new.id, old.id]
    waiting = RunQuery(statuses=(RunStatus.WAITING,))
    assert [run.id for run in await list_runs(scene.store, waiting)] == [old.id]


async def test_a_report_holds_the_run_and_its_last_events(scene: Scene) -> None:
    run = await scene.add_run()
    await scene.add_approval(run)
    for number in range(5):
        await scene.note(run, f"note {number}")
    report = await show_run(scene.store, short_id(run.id), last_events=2)
    assert report.run.id == run.id
    assert len(report.approvals) == 1
    assert [event.seq for event in report.events] == [4, 5]
    assert report.record()["events"][1]["text"] == "note 4"


async def test_report_shows_who_answered_every_step_and_the_total_cost(scene: Scene) -> None:
    run = await scene.add_run()
    lost = Usage(input_tokens=5, usd=0.01, complete=False)
    used = Usage(input_tokens=100, output_tokens=20, usd=0.25, turns=1)
    bodies: list[EventBody] = [
        StepStarted(step="plan#0"),
        UsageRecorded(source="agent:a", usage=lost),
        AgentReplied(role="planner", agent="b", text="ok", usage=used),
        UsageRecorded(source="agent:b", usage=used),
        StepCompleted(step="plan#0"),
        # Two side by side: only the transcript tells whose answer it is.
        StepStarted(step="left#0"),
        StepStarted(step="right#0"),
        AgentReplied(role="dev", agent="c", text="done", transcript="runs/x/2.jsonl"),
        AgentReplied(role="dev", agent="d", text="done"),
        StepCompleted(step="right#0"),
    ]

    def write(tx: Transaction) -> None:
        for key, output in (("plan#0", None), ("right#0", {"transcript": "runs/x/2.jsonl"})):
            now = scene.clock.now()
            tx.save_step(
                StepRecord(
                    run_id=run.id,
                    key=key,
                    status=StepStatus.COMPLETED,
                    output=output,
                    started_at=now,
                )
            )
        for body in bodies:
            tx.append(run.id, body)

    await scene.store.write(write)
    report = await show_run(scene.store, run.id)
    assert report.work.agents == {"plan#0": ("b",), "right#0": ("c",)}
    assert report.work.usage == lost.plus(used)
    record = report.record()
    assert [step["agents"] for step in record["steps"]] == [["b"], ["c"]]
    assert (record["usage"]["usd"], record["usage"]["complete"]) == (0.26, False)


async def test_what_was_used_is_counted_over_more_events_than_are_read_at_once(
    scene: Scene,
) -> None:
    run = await scene.add_run()

    def write(tx: Transaction) -> None:
        for _ in range(EVENT_PAGE + 1):
            tx.append(run.id, UsageRecorded(source="agent:a", usage=Usage(turns=1)))

    await scene.store.write(write)
    assert (await show_run(scene.store, run.id)).work.usage.turns == EVENT_PAGE + 1


async def test_unknown_run_is_reported_as_unknown(scene: Scene) -> None:
    with pytest.raises(UnknownId, match="no run 'deadbeef'"):
        await show_run(scene.store, "deadbeef")
    with pytest.raises(UnknownId):
        async for _ in follow_logs(scene.store, "deadbeef"):
            pass


async def test_logs_end_with_what_is_there(scene: Scene) -> None:
    run = await scene.add_run()
    await scene.note(run, "one")
    seen = [event.seq async for event in follow_logs(scene.store, run.id)]
    assert seen == [1]


async def test_followed_logs_go_on_until_the_run_ends(scene: Scene) -> None:
    run = await scene.add_run(status=RunStatus.RUNNING)
    await scene.note(run, "before")
    seen: list[str] = []

    async def follow() -> None:
        async for event in follow_logs(scene.store, run.id, follow=True):
            seen.append(event.body.type)
            if len(seen) == 1:
                await scene.note(run, "during")
            if len(seen) == 2:
                await scene.end(run)

    await asyncio.wait_for(follow(), 120)
    assert seen == ["note_taken", "note_taken", "run_succeeded"]


async def test_followed_logs_of_many_events_skip_none(scene: Scene) -> None:
    run = await scene.add_run(status=RunStatus.RUNNING)
    for number in range(1201):
        await scene.note(run, str(number))
    await scene.end(run)
    seen = [event.seq async for event in follow_logs(scene.store, run.id, follow=True)]
    assert seen == list(range(1, 1203))


async def test_receipts_are_listed_by_run_or_all(scene: Scene) -> None:
    one, other = await scene.add_run(), await scene.add_run()
    for run in (one, one, other):
        await scene.add_receipt(run)
    assert len(await list_receipts(scene.store)) == 3
    assert [receipt.number for receipt in await list_receipts(scene.store, one.id)] == [1, 2]


async def test_followed_receipts_begin_now(scene: Scene) -> None:
    run = await scene.add_run()
    await scene.add_receipt(run)
    following = follow_receipts(scene.store)
    async with aclosing(following):  # type: ignore[type-var]  # an async generator in fact
        coming = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        while not coming.done():
            await scene.add_receipt(run)
        assert (await coming).number >= 2


async def test_verifying_hands_over_every_chain_and_reports_on_the_one_asked_for(
    scene: Scene,
) -> None:
    one, other = await scene.add_run(), await scene.add_run()
    for run in (one, one, other):
        await scene.add_receipt(run)

    def verifier(chains: Mapping[str, Sequence[Receipt]]) -> Sequence[Finding]:
        assert {run: len(chain) for run, chain in chains.items()} == {one.id: 2, other.id: 1}
        return [Fault(run_id=other.id, number=1, kind="edited", problem="seal does not fit")]

    everything = await verify_receipts(scene.store, verifier)
    assert (everything.runs, everything.receipts, everything.sound) == (2, 3, False)
    only = await verify_receipts(scene.store, verifier, short_id(one.id))
    assert (only.runs, only.receipts, only.sound) == (1, 2, True)


async def test_a_call_is_named_by_a_short_run_and_its_step(scene: Scene) -> None:
    run = await scene.add_run()
    key = await scene.store.read(lambda view: find_call_key(view, f"{short_id(run.id)}:act:0"))
    assert key == f"{run.id}:act:0"
    with pytest.raises(BadInput, match="is not a call"):
        await scene.store.read(lambda view: find_call_key(view, "act"))


async def test_too_short_an_id_is_reported_as_such(scene: Scene) -> None:
    with pytest.raises(BadInput, match="at least 4 characters"):
        await show_run(scene.store, "b0c")
