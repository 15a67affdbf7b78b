"""A hook's token lets whoever has it ask, for what its CLI itself tells of, and nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from podium.core.approval_steps import grant
from podium.core.decisions import ApprovalStatus, CallStatus, Effect
from podium.core.events import NoteTaken, ToolRefused
from podium.core.model import Json
from podium.ports import ANY_USE, Transaction, nameless_use
from podium.sandbox import HookServerSettings, TurnHookServer
from podium.testing import FixedClock, retry_until
from tests.integration.sandbox.door_harness import TURN, DoorHarness, RealDoorHarness, say_raw

COMMAND: dict[str, Json] = {"command": "make"}
ASKING: dict[str, Json] = {"op": "request", "tool": "run_command", "arguments": COMMAND}
IMPATIENT = HookServerSettings(expect_seconds=0.05)


async def ask(door: TurnHookServer, **message: Json) -> dict[str, Any]:
    """Put one message with the hook's token to the door."""
    line = {"token": door.hook_env["PODIUM_DOOR_TOKEN"], **message}
    return await say_raw(door, json.dumps(line).encode() + b"\n")


async def test_hook_may_ask_for_what_its_cli_announces() -> None:
    harness = RealDoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        door.expect("u1")
        answer = await ask(door, **ASKING, ref="u1")
        await door.settle("u1", ok=True)
    assert answer["decision"] == "allow"
    assert await harness.statuses() == [CallStatus.COMPLETED]


@pytest.mark.parametrize(
    "message",
    [
        {"op": "settle", "ref": "u1", "ok": True},
        {"op": "settle", "tool": "run_command", "arguments": COMMAND, "ok": True},
        {"op": "perform", "tool": "echo", "arguments": {}},
        {"op": "tools"},
    ],
)
async def test_a_hook_that_does_not_ask_is_refused_and_that_is_noted(
    message: dict[str, Json],
) -> None:
    harness = RealDoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        door.expect("u1")
        await ask(door, **ASKING, ref="u1")
        answer = await ask(door, **message)
    assert answer == {
        "decision": "deny",
        "say": f"denied: a hook may only send requests; {message['op']!r} is refused",
    }
    assert await harness.statuses() == [CallStatus.ABANDONED]
    (note,) = [event for event in await harness.events() if isinstance(event, NoteTaken)]
    assert "a hook may only send requests" in note.text


async def test_use_not_announced_by_the_cli_does_not_come_before_the_gate() -> None:
    harness = RealDoorHarness(Effect.ALLOW, settings=IMPATIENT)
    async with harness.hook_door.open(TURN) as door:
        door.expect("u1")
        answer = await ask(door, **ASKING, ref="made-up")
        nameless = await ask(door, **ASKING)
    assert "has not announced the tool use 'made-up'" in answer["say"]
    assert nameless["decision"] == "deny"
    assert harness.gate.judged == []
    refused = [event for event in await harness.events() if isinstance(event, ToolRefused)]
    assert len(refused) == 2


async def test_every_use_is_asked_for_once_and_so_is_every_part_of_it() -> None:
    harness = RealDoorHarness(*[Effect.ALLOW] * 4, settings=IMPATIENT)
    async with harness.hook_door.open(TURN) as door:
        door.expect("u1")
        refs = ("u1", "u1", "u1#0", "u1#1", "u1#1")
        messages = [(await ask(door, **ASKING, ref=ref))["decision"] for ref in refs]
        door.expect("u1")
        messages.append((await ask(door, **ASKING, ref="u1"))["decision"])
    assert messages == ["allow", "deny", "allow", "allow", "deny", "allow"]


async def test_a_forged_question_does_not_use_up_the_approval_of_a_call_that_waits() -> None:
    harness = RealDoorHarness(Effect.ASK, Effect.ALLOW, settings=IMPATIENT)
    async with harness.hook_door.open(TURN) as door:
        door.expect("u1")
        waiting = await ask(door, **ASKING, ref="u1")
        door.expect_no_more("u1")
    await harness.store.write(lambda tx: _say_yes(tx, waiting["approval_id"]))
    async with harness.hook_door.open(TURN.model_copy(update={"asking": 1})) as door:
        forged = [await ask(door, **ASKING, ref=ref) for ref in ("u1", "u2", "")]
        door.expect("u2")
        real = await ask(door, **ASKING, ref="u2")
        held = await harness.store.read(lambda view: view.approval(waiting["approval_id"]))
    assert [answer["decision"] for answer in forged] == ["deny", "deny", "deny"]
    assert real["decision"] == "allow"
    assert held is not None
    assert (held.status, held.reserved_by) == (ApprovalStatus.RESERVED, real["call"])


def _say_yes(tx: Transaction, approval_id: str) -> None:
    approval = tx.approval(approval_id)
    assert approval is not None
    tx.save_approval(grant(approval, "somebody", FixedClock().now()))


async def test_a_use_that_is_over_cannot_be_asked_for() -> None:
    harness = RealDoorHarness(Effect.ALLOW, settings=IMPATIENT)
    async with harness.hook_door.open(TURN) as door:
        door.expect("u1")
        door.expect_no_more("u1")
        door.expect_no_more("never heard of")
        answer = await ask(door, **ASKING, ref="u1")
    assert answer["decision"] == "deny"
    assert harness.gate.judged == []


async def test_hook_may_be_quicker_than_its_clis_announcement() -> None:
    harness = RealDoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        asking = asyncio.create_task(ask(door, **ASKING, ref="u1"))
        await retry_until(lambda: len(door._handlers) == 1)
        door.expect("another")
        door.expect("u1")
        assert (await asking)["decision"] == "allow"


async def test_a_use_without_a_name_is_known_by_its_tool_and_arguments() -> None:
    harness = RealDoorHarness(Effect.ALLOW, Effect.ALLOW, settings=IMPATIENT)
    name = nameless_use("run_command", COMMAND)
    async with harness.hook_door.open(TURN) as door:
        door.expect(name)
        other = await ask(door, op="request", tool="run_command", arguments={"command": "push"})
        assert (await ask(door, **ASKING))["decision"] == "allow"
        await door.settle(name, ok=False, error="exit code 3")
    assert other["decision"] == "deny"
    assert await harness.statuses() == [CallStatus.FAILED]


async def test_unannounced_inner_agents_may_ask_while_they_work() -> None:
    harness = RealDoorHarness(Effect.ALLOW, settings=IMPATIENT)
    async with harness.hook_door.open(TURN) as door:
        door.expect(ANY_USE)
        assert (await ask(door, **ASKING))["decision"] == "allow"
        door.expect_no_more(ANY_USE)
        assert (await ask(door, **ASKING))["decision"] == "deny"


async def test_the_agents_own_program_keeps_its_whole_contract() -> None:
    harness = DoorHarness(Effect.ALLOW, Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        assert door.env["PODIUM_DOOR_TOKEN"] != door.hook_env["PODIUM_DOOR_TOKEN"]
        own = {"token": door.env["PODIUM_DOOR_TOKEN"]}
        for message in ({**ASKING, "ref": "a"}, {"op": "settle", "ref": "a", "ok": True}):
            answer = await say_raw(door, json.dumps({**own, **message}).encode() + b"\n")
            assert answer["decision"] == "allow"
