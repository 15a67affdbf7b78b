"""The smallest tool door and toolbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from podium.core.decisions import (
    ApprovalStatus,
    Call,
    CallOutcome,
    CallStatus,
    Effect,
    Permit,
    Refusal,
    Tier,
    ToolSpec,
)
from podium.core.errors import BadArguments, CallInDoubt, NotPossibleNow, UnknownTool
from podium.core.model import FrozenModel
from podium.core.work import StepRecord, StepStatus
from podium.ports import EventQuery, Toolbox, ToolDoor, Transaction
from podium.testing import (
    FakeTool,
    FakeToolbox,
    FixedClock,
    MemoryStore,
    ScriptedGate,
    ScriptedToolDoor,
)

DOUBLE = ToolSpec(
    name="double",
    tier=Tier.T0,
    input_schema={
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    },
)
CALL = Call(run_id="run_a", step_key="edit", index=0, tool="double", arguments={"n": 2})


class Bench:
    """A toolbox with one tool over a memory store."""

    def __init__(self, *effects: Effect) -> None:
        self.clock = FixedClock()
        self.store = MemoryStore(self.clock)
        self.performed: list[Any] = []
        self.door: ToolDoor = ScriptedToolDoor(self.store, ScriptedGate(effects), self.clock)
        self.box: Toolbox = FakeToolbox(self.door, [FakeTool(DOUBLE, self.double)])

    async def double(self, arguments: dict[str, Any]) -> int:
        self.performed.append(arguments)
        if arguments["n"] > 99:
            raise ValueError("too large to double")
        return int(arguments["n"]) * 2

    async def event_types(self) -> list[str]:
        events = await self.store.read(lambda view: view.events(EventQuery()))
        return [event.body.type for event in events]


@pytest.fixture
async def allowing() -> AsyncIterator[Bench]:
    bench = Bench(Effect.ALLOW)
    yield bench
    await bench.store.close()


async def test_a_performed_call_is_requested_settled_and_receipted(allowing: Bench) -> None:
    outcome = await allowing.box.perform(CALL)
    assert outcome == CallOutcome(ok=True, result=4)
    assert await allowing.event_types() == ["tool_requested", "tool_completed"]
    (receipt,) = await allowing.store.read(lambda view: view.receipts("run_a"))
    assert (receipt.call_key, receipt.status, receipt.number) == (CALL.key, "completed", 1)
    record = await allowing.store.read(lambda view: view.call(CALL.key))
    assert record is not None
    assert (record.status, record.receipt_number) == (CallStatus.COMPLETED, 1)


async def test_a_settled_call_is_not_performed_again(allowing: Bench) -> None:
    first = await allowing.box.perform(CALL)
    assert await allowing.box.perform(CALL) == first
    assert len(allowing.performed) == 1


async def test_a_tool_that_raises_is_a_failed_outcome_with_a_receipt(allowing: Bench) -> None:
    large = CALL.model_copy(update={"arguments": {"n": 100}})
    assert await allowing.box.perform(large) == CallOutcome(ok=False, error="too large to double")
    assert await allowing.event_types() == ["tool_requested", "tool_failed"]
    (receipt,) = await allowing.store.read(lambda view: view.receipts("run_a"))
    assert (receipt.status, receipt.error) == ("failed", "too large to double")


async def test_a_call_requested_and_never_settled_is_in_doubt(allowing: Bench) -> None:
    assert isinstance(await allowing.door.request(CALL), Permit)
    with pytest.raises(CallInDoubt):
        await allowing.box.perform(CALL)
    assert allowing.performed == []


async def test_the_checkpoint_is_written_with_the_receipt_or_neither_is(allowing: Bench) -> None:
    def step(tx: Transaction, outcome: FrozenModel) -> None:
        assert isinstance(outcome, CallOutcome)
        tx.save_step(
            StepRecord(
                run_id="run_a",
                key="edit",
                status=StepStatus.COMPLETED,
                output=outcome.result,
                started_at=allowing.clock.now(),
            )
        )

    def crash(tx: Transaction, outcome: FrozenModel) -> None:
        step(tx, outcome)
        raise ZeroDivisionError

    permit = await allowing.door.request(CALL)
    assert isinstance(permit, Permit)
    with pytest.raises(ZeroDivisionError):
        await allowing.door.settle(permit, CallOutcome(ok=True, result=4), crash)
    assert await allowing.store.read(lambda view: (view.receipts(), view.steps("run_a"))) == (
        [],
        [],
    )
    await allowing.door.settle(permit, CallOutcome(ok=True, result=4), step)
    (kept,) = await allowing.store.read(lambda view: view.steps("run_a"))
    assert kept.output == 4


async def test_what_was_never_requested_cannot_be_settled(allowing: Bench) -> None:
    asked = await allowing.door.request(CALL)
    assert isinstance(asked, Permit)
    stray = asked.model_copy(update={"call": CALL.model_copy(update={"index": 5})})
    with pytest.raises(NotPossibleNow, match="never requested"):
        await allowing.door.settle(stray, CallOutcome(ok=True))


async def test_denied_call_never_runs_and_the_agent_is_notified() -> None:
    bench = Bench(Effect.DENY)
    refusal = await bench.box.perform(CALL)
    assert isinstance(refusal, Refusal)
    assert (refusal.say, refusal.approval_id) == ("as the test says", None)
    assert bench.performed == []
    assert await bench.event_types() == ["tool_refused"]
    await bench.store.close()


async def test_an_ask_leaves_an_approval_that_people_can_find() -> None:
    bench = Bench(Effect.ASK)
    refusal = await bench.box.perform(CALL)
    assert isinstance(refusal, Refusal)
    (approval,) = await bench.store.read(lambda view: view.approvals())
    assert refusal.approval_id == approval.id
    assert refusal.deadline == approval.deadline == bench.clock.now() + timedelta(hours=1)
    assert (approval.status, approval.digest) == (ApprovalStatus.PENDING, CALL.digest())
    assert approval.id in refusal.say
    assert await bench.event_types() == ["approval_requested", "tool_refused"]
    await bench.store.close()


def test_normalise_refuses_unknown_tools_and_arguments_that_do_not_fit() -> None:
    box = Bench().box
    place: dict[str, Any] = {"run_id": "run_a", "step_key": "edit", "index": 0}
    assert box.normalise("double", {"n": 2}, **place) == CALL
    with pytest.raises(UnknownTool, match=r"'halve'.*double"):
        box.normalise("halve", {}, **place)
    with pytest.raises(BadArguments, match="'n' is a required"):
        box.normalise("double", {}, **place)
    assert [spec.name for spec in box.specs()] == ["double"]
