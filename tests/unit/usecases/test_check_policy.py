"""Gate's decision on a call, without acting."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podium.app.dry_run import ClosedDoor
from podium.app.policy_trial import check_policy
from podium.core.decisions import Call, Decision, Effect, GateContext, Tier, ToolSpec
from podium.core.errors import BadArguments
from podium.core.model import Json
from podium.testing import FakeTool, FakeToolbox, ScriptedGate, decision

SPEC = ToolSpec(
    name="send",
    tier=Tier.T3,
    input_schema={"type": "object", "required": ["to"]},
    receipt_fields=("id",),
)


def judged(call: Call, context: GateContext) -> Decision:
    known = context.tool is not None
    return decision(Effect.ALLOW if known and context.mode == "autonomous" else Effect.DENY)


def check(tool: str, arguments: dict[str, Json], mode: str = "autonomous") -> Effect:
    async def handler(arguments: dict[str, Json]) -> Json:
        raise AssertionError("nothing may be performed")

    toolbox = FakeToolbox(ClosedDoor("only looking"), [FakeTool(SPEC, handler)])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    gate = ScriptedGate(judged)
    return check_policy(gate, toolbox, tool, arguments, mode=mode, root="/w", now=now).effect


def test_the_gate_sees_the_tool_and_the_mode() -> None:
    assert check("send", {"to": "ann"}) is Effect.ALLOW
    assert check("send", {"to": "ann"}, mode="sensing") is Effect.DENY


def test_a_tool_that_is_not_registered_is_judged_as_unknown() -> None:
    assert check("launch", {}) is Effect.DENY


def test_unsuitable_arguments_are_reported() -> None:
    with pytest.raises(BadArguments):
        check("send", {})
