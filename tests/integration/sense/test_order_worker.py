"""The worker: every operation once, whatever happens in between, and an answer for every order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.app.run_control import resume
from podium.core.model import Json
from podium.core.work import RunStatus
from podium.jobs.sense import WORK_ORDER
from podium.jobs.sense.orders.work_order import MAX_OUTPUT, OP_TOOLS
from podium.testing import retry_until
from tests.unit.sense.process_death import Death, When
from tests.unit.sense.sense_harness import (
    ACKS,
    CLAIMED,
    DONE,
    INBOX,
    PARKED,
    Post,
    Station,
)

APPEND = {"op": "append", "path": "logs/notes.log", "content": "a line\n"}
COPY = {"op": "copy", "path": "g/docs/a.md", "to": "g/reports/a.md"}
IMPOSSIBLE = {"op": "edit", "path": "g/docs/a.md", "find": "not there", "replace": "x"}
FORBIDDEN = {"op": "write", "path": "CLS/a.md", "content": "x"}


def dropped(station: Station, *ops: Json, name: str = "WO-1", **fields: Json) -> None:
    order = {"id": name, "title": f"order {name}", "target": "api", "zones": ["logs"], **fields}
    text = yaml.safe_dump({**order, **({"ops": list(ops)} if ops else {})})
    station.write(f"{INBOX}/{name}.yaml", text)


def at_work(tmp_path: Path, **options: Json) -> Station:
    station = Station(tmp_path, settings={"mode": "autonomous"}, **options)
    station.write("g/docs/a.md", "alpha\n")
    return station


async def passing(post: Post) -> None:
    """Let time pass until every order has ended."""

    async def ended() -> bool:
        post.station.pass_time(5)
        runs = await post.runs(WORK_ORDER)
        return bool(runs) and all(run.status.ended for run in runs)

    await retry_until(ended)


async def test_every_operation_is_done_and_has_a_receipt_in_the_answer(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    station.write("g/docs/b.md", "beta\n")
    station.write("g/docs/c.md", "gamma\n")
    ops: list[dict[str, Any]] = [
        {"op": "mkdir", "path": "g/reports/new"},
        {"op": "write", "path": "g/reports/new/w.md", "content": "written\n"},
        {"op": "edit", "path": "g/docs/a.md", "find": "alpha", "replace": "ALPHA"},
        APPEND,
        {"op": "copy", "path": "g/docs/a.md", "to": "g/reports/new/copy.md"},
        {"op": "move", "path": "g/docs/b.md", "to": "g/reports/new/moved.md"},
        {"op": "session", "session": "SESSION-DEMO-001", "values": {"status": "paused"}},
        {"op": "run", "command": "ls g/docs"},
        {"op": "tool", "tool": "write_file", "arguments": {"path": "logs/t.log", "content": "t"}},
        {"op": "trash", "path": "g/docs/c.md"},
    ]
    assert {item["op"] for item in ops} == {*OP_TOOLS, "tool"}
    dropped(station, *ops)
    async with station.open() as post:
        [run] = await post.work()
        assert run.status is RunStatus.WAITING, "to trash is T2, and nobody said yes to that"
        [asked] = await post.waiting_approvals()
        assert asked.tool == "trash_file"
        await post.say_yes(asked.id)
        await post.at_rest(WORK_ORDER)
        receipts = await post.receipts(run.id)
        worker = (await post.podium.hosting_engine()).worker_id
    ack = station.ack("WO-1")
    assert (ack.status, ack.run_id, ack.error) == ("done", run.id, "")
    assert ack.worker == worker
    assert ack.ops[7].output == "a.md\nc.md"
    assert [item.status for item in ack.ops] == ["done"] * 10
    assert [item.receipt for item in ack.ops] == [receipt.number for receipt in receipts]
    assert ack.ops[3].op == "append logs/notes.log"
    assert station.read("g/reports/new/copy.md") == station.read("g/docs/a.md") == "ALPHA\n"
    assert station.read("g/reports/new/moved.md") == "beta\n"
    assert station.read("g/reports/new/w.md") == "written\n"
    assert station.read("logs/notes.log") == "a line\n"
    assert "paused" in station.read("state/clc_sessions/SESSION-DEMO-001.yaml")
    assert station.files("g/docs") == ["a.md"]
    assert len(station.files(DONE)) == 1
    assert station.files(INBOX) == station.files(CLAIMED) == station.files(PARKED) == []


async def test_an_order_of_which_one_operation_is_denied_is_refused_whole(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND, FORBIDDEN, COPY)
    async with station.open() as post:
        [run] = await post.work()
        incidents = [entry.kind for entry in post.trust.entries()]
    ack = station.ack("WO-1")
    assert ack.status == "refused"
    assert "op 2 (write CLS/a.md)" in ack.error
    assert "orders can write only in " in ack.error
    assert "g/reports" in ack.error
    assert [item.status for item in ack.ops] == ["skipped", "failed", "skipped"]
    assert run.status is RunStatus.FAILED
    assert incidents == ["incident"]
    order, reason = station.files(PARKED)
    assert order.startswith("WO-1.")
    assert ack.error in station.read(f"{PARKED}/{reason}")
    assert not (station.root / "logs/notes.log").exists()
    assert not (station.root / "CLS").exists()
    assert not (station.root / "g/reports/a.md").exists()


async def test_a_failing_operation_is_tried_a_few_times_then_parked_as_an_incident(
    tmp_path: Path,
) -> None:
    station = at_work(tmp_path, most_tries=2)
    dropped(station, IMPOSSIBLE, APPEND)
    async with station.open() as post:
        await post.serve()
        await post.tend()
        await passing(post)
        [run] = await post.runs(WORK_ORDER)
        receipts = await post.receipts(run.id)
        [entry] = post.trust.entries()
    ack = station.ack("WO-1")
    assert ack.status == "failed"
    assert "op 1 (edit g/docs/a.md) failed 2 times" in ack.error
    assert [receipt.status for receipt in receipts] == ["failed", "failed"]
    assert [(item.status, item.receipt) for item in ack.ops] == [("failed", 2), ("skipped", None)]
    assert (entry.kind, entry.target, entry.zone, entry.wo_id) == ("incident", "api", "logs", "WO-1")  # fmt: skip
    assert len(station.files(PARKED)) == 2
    assert not (station.root / "logs/notes.log").exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", ["{ this is: no yaml", "- a list\n", "id: ../../x\ntitle: y\n"])
async def test_a_file_that_is_no_order_is_parked_at_once_and_answered(
    tmp_path: Path, text: str
) -> None:
    station = at_work(tmp_path)
    station.write(f"{INBOX}/WO-BAD.yaml", text)
    async with station.open() as post:
        await post.work()
    [name] = [file for file in station.files(ACKS) if file.startswith("WO-BAD")]
    assert name != "WO-BAD.ack.json", "what is no order answers in the name of none"
    ack = station.ack(name.removesuffix(".ack.json"))
    assert (ack.wo_id, ack.status) == ("WO-BAD.yaml", "parked")
    assert ack.error
    assert len(station.files(PARKED)) == 2


async def test_output_of_a_program_is_in_the_answer_even_when_it_failed(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    text = f"echo start {'x' * 3_000}; echo out; echo bad end >&2; exit 3"
    dropped(station, {"op": "run", "command": f"sh -c '{text}'"}, APPEND)
    async with station.open() as post:
        await post.work()
        for asked in await post.waiting_approvals():
            await post.say_yes(asked.id)
        await passing(post)
    ack = station.ack("WO-1")
    assert "exit code 3" in ack.error
    assert (ack.ops[0].status, ack.ops[0].receipt) == ("failed", 1)
    assert ack.ops[0].output.endswith("xxx\nout\nbad end")
    assert len(ack.ops[0].output) == MAX_OUTPUT


FAULTY = "id: WO-1\ntitle: order WO-1\nops: [{op: delete, path: g/docs/a.md}]\n"


async def test_a_faulty_order_is_answered_under_its_id_until_it_is_mended(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    station.write(f"{INBOX}/sent.yaml", FAULTY)
    async with station.open() as post:
        await post.work()
        ack = station.ack("WO-1")
        assert (ack.status, ack.title) == ("parked", "order WO-1")
        assert "ops.0.op: unknown value 'delete'" in ack.error
        dropped(station, APPEND)
        await post.tend()
        await post.at_rest(WORK_ORDER)
    assert station.ack("WO-1").status == "done"
    assert [name for name in station.files(ACKS) if "sent" in name] == []


async def test_a_faulty_order_never_hides_that_one_of_its_id_was_done(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND)
    async with station.open() as post:
        await post.work()
        station.write(f"{INBOX}/sent.yaml", FAULTY)
        await post.tend()
        await post.at_rest(WORK_ORDER)
    assert station.ack("WO-1").status == "done"
    [other] = [name for name in station.files(ACKS) if "sent" in name]
    assert station.ack(other.removesuffix(".ack.json")).status == "parked"


async def test_report_on_a_file_without_an_id_is_replaced_when_it_is_repaired(
    tmp_path: Path,
) -> None:
    station = at_work(tmp_path)
    station.write(f"{INBOX}/WO-1.yaml", "- a list\n")
    async with station.open() as post:
        await post.work()
        [name] = [file for file in station.files(ACKS) if file.startswith("WO-1")]
        assert station.ack(name.removesuffix(".ack.json")).status == "parked"
        dropped(station, APPEND)
        await post.tend()
        await post.at_rest(WORK_ORDER)
    assert station.ack("WO-1").status == "done"
    assert station.ack(name.removesuffix(".ack.json")).status == "done"


async def test_an_id_that_was_answered_is_a_duplicate_and_its_first_answer_stays(
    tmp_path: Path,
) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND)
    async with station.open() as post:
        await post.work()
        first = station.ack("WO-1")
        dropped(station, APPEND)
        await post.tend()
        runs = await post.at_rest(WORK_ORDER)
    assert [run.status for run in runs] == [RunStatus.SUCCEEDED, RunStatus.FAILED]
    assert runs[1].failure is not None
    assert "duplicate" in runs[1].failure.message
    assert "choose another `id`" in runs[1].failure.message
    assert station.ack("WO-1") == first
    assert station.read("logs/notes.log") == "a line\n"
    assert len(station.files(PARKED)) == 2


async def test_an_order_of_words_waits_until_a_person_wrote_operations_into_its_file(
    tmp_path: Path,
) -> None:
    station = at_work(tmp_path)
    dropped(station, tasks=["add a line to the notes"])
    async with station.open() as post:
        [run] = await post.work()
        assert run.status is RunStatus.NEEDS_HUMAN
        assert run.failure is not None
        [claimed] = station.files(CLAIMED)
        assert f"{CLAIMED}/{claimed}" in run.failure.message
        order = yaml.safe_load(station.read(f"{CLAIMED}/{claimed}"))
        station.write(f"{CLAIMED}/{claimed}", yaml.safe_dump({**order, "ops": [APPEND]}))
        await resume(await post.podium.store(), await post.podium.hosting_engine(), run.id, by="ann")  # fmt: skip
        [run] = await post.at_rest(WORK_ORDER)
    assert run.status is RunStatus.SUCCEEDED
    assert station.ack("WO-1").status == "done"
    assert station.read("logs/notes.log") == "a line\n"


WRITER = {"agents": {"writer": {"kind": "scripted", "script": "writer.yaml"}}, "mode": "autonomous"}


def writing(tmp_path: Path, *replies: Json) -> Station:
    """A station whose agent makes these operations of words."""
    station = Station(tmp_path, settings=WRITER, writer="writer")
    turns = [{"role": "order_writer", "acts": [{"payload": reply}]} for reply in replies]
    (station.root / "writer.yaml").write_text(yaml.safe_dump({"turns": turns}))
    return station


async def test_an_agent_makes_operations_of_words_and_its_calls_are_one_tier_riskier(
    tmp_path: Path,
) -> None:
    station = writing(tmp_path, {"ops": [APPEND], "cannot": ""})
    dropped(station, tasks=["add a line to the notes"])
    async with station.open() as post:
        [run] = await post.work()
        assert run.status is RunStatus.WAITING
        [asked] = await post.waiting_approvals()
        assert (asked.tool, str(asked.tier)) == ("append_to_file", "T2")
        assert not (station.root / "logs/notes.log").exists()
        await post.say_yes(asked.id)
        [run] = await post.at_rest(WORK_ORDER)
    assert run.status is RunStatus.SUCCEEDED
    assert station.read("logs/notes.log") == "a line\n"


async def test_words_that_an_agent_cannot_make_operations_of_wait_for_a_person(
    tmp_path: Path,
) -> None:
    station = writing(tmp_path, {"ops": [], "cannot": "which notes?"})
    dropped(station, tasks=["add a line to the notes"])
    async with station.open() as post:
        [run] = await post.work()
    assert run.status is RunStatus.NEEDS_HUMAN
    assert run.failure is not None
    assert "has no `ops`, and none could be planned (which notes?)" in run.failure.message


STEPS = ["seen", "weigh", "release", "call", "call", "ack", "put-away"]
TIMESTAMPS = [
    pytest.param(number, when, id=f"{name}-{number}-{when}", marks=_marks)
    for when in ("acted", "recorded")
    for number, name in enumerate(STEPS, start=1)
    for _marks in [
        ()
        if when == "acted" and number in (1, len(STEPS) // 2, len(STEPS))
        else (pytest.mark.soak,)
    ]
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("number", "when"), TIMESTAMPS)
async def test_whenever_its_worker_dies_an_order_is_done_once_and_answered_the_same(
    tmp_path: Path, number: int, when: When
) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND, COPY)
    death = Death(number, when)
    async with station.open({WORK_ORDER: death}) as post:
        await post.serve()
        await post.tend()
        await post.dies_with(death)
    assert death.steps == STEPS[:number]
    assert (station.root / "logs/notes.log").exists() == (number >= STEPS.index("call") + 1)
    async with station.open() as post:
        [run] = await post.work()
        receipts = await post.receipts(run.id)
    assert run.status is RunStatus.SUCCEEDED
    assert station.read("logs/notes.log") == "a line\n"
    assert station.read("g/reports/a.md") == "alpha\n"
    ack = station.ack("WO-1")
    assert [(item.op, item.status) for item in ack.ops] == [
        ("append logs/notes.log", "done"),
        ("copy g/docs/a.md to g/reports/a.md", "done"),
    ]
    done = [(receipt.tool, receipt.number) for receipt in receipts if receipt.status == "completed"]
    assert done == [
        ("append_to_file", ack.ops[0].receipt),
        ("copy_file", ack.ops[1].receipt),
    ]
    assert len(station.files(DONE)) == 1
    assert station.files(INBOX) == station.files(CLAIMED) == station.files(PARKED) == []


async def test_the_answer_is_what_the_next_tick_senses(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND)
    async with station.open() as post:
        await post.work()
        payload: dict[str, Any] = json.loads(station.read(f"{ACKS}/WO-1.ack.json"))
        await post.tick()
    bundle = station.read(".podium/sense/context_bundle.json")
    assert payload["status"] == "done"
    assert "WO-1.ack.json" in bundle
