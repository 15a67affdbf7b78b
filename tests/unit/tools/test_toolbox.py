from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from podium.core.decisions import CallOutcome, CallStatus, Effect, Receipt, Refusal, Usage
from podium.core.errors import AgentLost, BudgetSpent, StoreFull, ToolBroke
from podium.core.events import ToolCompleted, ToolFailed, ToolRefused, ToolRequested, UsageRecorded
from podium.core.model import FrozenModel, Json
from podium.platform.completion import in_thread
from podium.ports import Transaction
from podium.testing import FixedClock, MemoryStore
from podium.tools import ToolScope
from tests.unit.tools.toolbox_harness import SECRET, Harness, a_tool, always, make_harness

T = TypeVar("T")


def harness_with(tmp_path: Path, handler: Any, **changes: Any) -> Harness:
    return make_harness(tmp_path, [a_tool(handler, **changes)])


async def test_a_call_is_requested_performed_and_settled_event_by_event(tmp_path: Path) -> None:
    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        assert [type(event) for event in await harness.events()] == [ToolRequested]
        assert scope.key == call.key
        return {"number": 7, "to": arguments["to"]}

    harness = harness_with(tmp_path, send)
    call = harness.call("send", to="ann")

    outcome = await harness.toolbox.perform(call)

    assert outcome == CallOutcome(ok=True, result={"number": 7, "to": "ann"})
    assert await harness.events() == [
        ToolRequested(
            call=call.key,
            tool="send",
            arguments={"to": "ann"},
            digest=call.digest(harness.registry.spec("send")),
            tier="T1",
            rule="scripted",
            reason="as the test says",
        ),
        ToolCompleted(call=call.key, tool="send", result={"number": 7, "to": "ann"}, receipt=1),
    ]
    (receipt,) = await harness.receipts()
    assert (receipt.status, receipt.fields, receipt.rule) == (
        "completed",
        {"number": 7},
        "scripted",
    )


async def test_a_refused_call_never_reaches_its_handler(tmp_path: Path) -> None:
    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        raise AssertionError("performed")

    harness = make_harness(tmp_path, [a_tool(send)], gate=always(Effect.DENY))

    answer = await harness.toolbox.perform(harness.call("send"))

    assert isinstance(answer, Refusal)
    assert [type(event) for event in await harness.events()] == [ToolRefused]


async def test_a_settled_call_gives_its_outcome_again_without_acting(tmp_path: Path) -> None:
    sent: list[Json] = []

    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        sent.append(arguments)
        return {"number": len(sent)}

    harness = harness_with(tmp_path, send)

    first = await harness.use("send", to="ann")
    second = await harness.use("send", to="ann")

    assert first == second
    assert len(sent) == 1
    assert len(await harness.receipts()) == 1


async def test_a_checkpoint_is_written_with_the_settlement_and_again_for_a_settled_call(
    tmp_path: Path,
) -> None:
    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        return {"number": 1}

    harness = harness_with(tmp_path, send)
    seen: list[tuple[CallStatus, Json]] = []

    def checkpoint(tx: Transaction, outcome: FrozenModel) -> None:
        record = tx.call(harness.call("send").key)
        assert record
        assert isinstance(outcome, CallOutcome)
        seen.append((record.status, outcome.result))

    await harness.toolbox.perform(harness.call("send"), checkpoint)
    await harness.toolbox.perform(harness.call("send"), checkpoint)

    assert seen == [(CallStatus.COMPLETED, {"number": 1})] * 2
    assert len(await harness.receipts()) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ToolBroke("the line is dead"), "the line is dead"),
        (ValueError("no such colour"), "'send' broke: ValueError: no such colour"),
        (OSError(28, "No space left on device", "a.txt"), "'send' broke: No space left on device"),
        (TimeoutError("the server's own"), "'send' broke: TimeoutError: the server's own"),
    ],
)
async def test_what_a_handler_raises_is_a_failed_outcome_in_words(
    tmp_path: Path, error: Exception, words: str
) -> None:
    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        raise error

    harness = harness_with(tmp_path, send)

    outcome = await harness.use("send")

    assert not outcome.ok
    assert outcome.error.startswith(words)
    assert "Traceback" not in outcome.error
    assert [type(event) for event in await harness.events()] == [ToolRequested, ToolFailed]


@pytest.mark.parametrize("error", [BudgetSpent("no money"), AgentLost("gone")])
async def test_an_error_that_stops_the_run_is_settled_and_goes_on(
    tmp_path: Path, error: Exception
) -> None:
    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        raise error

    harness = harness_with(tmp_path, send)

    with pytest.raises(type(error)):
        await harness.use("send")

    assert [receipt.status for receipt in await harness.receipts()] == ["failed"]


async def test_a_handler_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    stopped = asyncio.Event()

    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    harness = harness_with(tmp_path, send, timeout_seconds=0.05)

    outcome = await harness.use("send")

    assert outcome.error == "timed out after 0.05 seconds"
    assert stopped.is_set()


async def test_a_result_that_is_no_json_is_a_failure(tmp_path: Path) -> None:
    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        return {"number": float("nan")} if arguments else {"number": b"bytes"}

    harness = harness_with(tmp_path, send)

    assert "not JSON serializable" in (await harness.use("send")).error
    assert "not JSON compliant" in (await harness.use("send", 1, nan=True)).error


async def test_what_the_agent_sees_is_plain_redacted_and_bounded(tmp_path: Path) -> None:
    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        return {"text": f"\x1b[31m{SECRET} " + "x" * 50_000}

    harness = make_harness(tmp_path, [a_tool(send)], result_bytes=1000)

    outcome = await harness.use("send")

    assert outcome.result["text"].startswith("[redacted:DOOR_KEY] xx")
    assert len(outcome.result["text"]) < 1000
    (completed,) = [event for event in await harness.events() if isinstance(event, ToolCompleted)]
    assert completed.result == outcome.result


async def test_usage_of_a_tool_is_recorded_and_counted(tmp_path: Path) -> None:
    async def send(arguments: dict[str, Json], scope: ToolScope) -> CallOutcome:
        return CallOutcome(ok=True, result={}, usage=Usage(usd=0.5, input_tokens=10))

    harness = harness_with(tmp_path, send)
    begun = harness.clock.now()

    await harness.use("send")
    await harness.use("send", 1)

    names = [
        "usd:run:run_1",
        "usd:step:run_1:work#0",
        f"usd:day:{begun.date()}",
        "input_tokens:run:run_1",
        "output_tokens:run:run_1",
    ]
    counted = await harness.store.read(lambda view: [view.counted(name, begun) for name in names])
    assert counted == [1.0, 1.0, 1.0, 20.0, 0.0]
    recorded = [event for event in await harness.events() if isinstance(event, UsageRecorded)]
    assert (
        recorded == [UsageRecorded(source="tool:send", usage=Usage(usd=0.5, input_tokens=10))] * 2
    )


async def test_a_tool_that_was_cancelled_is_settled_and_an_idempotent_one_may_run_again(
    tmp_path: Path,
) -> None:
    begun = asyncio.Event()
    tries: list[int] = []

    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        tries.append(1)
        begun.set()
        if len(tries) == 1:
            await asyncio.Event().wait()
        return {"number": len(tries)}

    harness = harness_with(tmp_path, send, idempotent=True)
    task = asyncio.create_task(harness.use("send"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [receipt.status for receipt in await harness.receipts()] == ["failed"]
    assert (await harness.use("send")).result == {"number": 2}
    assert [receipt.status for receipt in await harness.receipts()] == ["failed", "completed"]


async def test_a_cancelled_thread_has_ended_before_the_call_is_settled(tmp_path: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()
    ended: list[bool] = []

    def work() -> None:
        inside.set()
        go_on.wait(120)
        ended.append(True)

    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        await in_thread(work)
        return {}

    harness = harness_with(tmp_path, send)
    task = asyncio.create_task(harness.use("send"))
    await asyncio.to_thread(inside.wait, 120)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended == [True]
    record = await harness.store.read(lambda view: view.call(harness.call("send").key))
    assert record
    assert record.status is CallStatus.FAILED


class FullStore(MemoryStore):
    """Takes requests and then no more."""

    async def write(self, work: Callable[[Transaction], T]) -> T:
        answer = await super().write(work)
        if isinstance(answer, Receipt):
            raise StoreFull("podium.db", "the disk is full", "make room")
        return answer


async def test_a_cancellation_goes_on_even_when_the_call_cannot_be_settled(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def send(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        begun.set()
        await asyncio.Event().wait()
        return {}

    harness = make_harness(tmp_path, [a_tool(send)], store=FullStore(FixedClock()))
    task = asyncio.create_task(harness.use("send"))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_finish_hands_over_summary_and_payload(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)

    outcome = await harness.use("finish", summary="Done.", payload={"verdict": "pass"})

    assert outcome.result == {"summary": "Done.", "payload": {"verdict": "pass"}}
    (receipt,) = await harness.receipts()
    assert receipt.fields == {"summary": "Done."}
