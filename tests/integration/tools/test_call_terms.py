"""Conditions under which a call is judged: its own workspace, and the settings that its run recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.decisions import (
    Budget,
    Call,
    Decision,
    Effect,
    GateContext,
    Refusal,
    Tier,
    ToolSpec,
)
from podium.core.model import Json
from podium.core.work import Run
from podium.testing import ScriptedGate, decision
from podium.tools.door_request import SpecDigests
from tests.unit.tools.toolbox_harness import RUN, Harness, a_tool, make_harness

LIMIT = Budget(scope="run", usd=2)


def watched(tmp_path: Path) -> tuple[Harness, list[GateContext]]:
    """A rig that keeps what its gate was shown."""
    seen: list[GateContext] = []

    def judge(call: Call, context: GateContext) -> Decision:
        seen.append(context)
        return decision(Effect.ALLOW)

    return make_harness(tmp_path, [a_tool()], gate=ScriptedGate(judge)), seen


async def record_run(harness: Harness, settings: dict[str, Json]) -> None:
    run = Run(id=RUN, flow="f", settings=settings, created_at=harness.clock.now())
    await harness.store.write(lambda tx: tx.add_run(run))


async def test_a_call_is_judged_and_performed_in_its_own_workspace(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "link").symlink_to(other)
    arguments: dict[str, Json] = {"path": "a.txt", "content": "x"}
    call = harness.toolbox.normalise(
        "write_file", arguments, run_id=RUN, step_key="s", index=0, root=str(tmp_path / "link")
    )
    assert call.root == str(other)
    assert [use.real for use in call.paths] == [str(other / "a.txt")]

    await harness.toolbox.perform(call)

    assert (other / "a.txt").read_text() == "x"
    assert not (harness.root / "a.txt").exists()


async def test_the_gate_is_shown_the_workspace_of_the_call(tmp_path: Path) -> None:
    harness, seen = watched(tmp_path)
    call = harness.call("send")
    await harness.toolbox.perform(call)
    await harness.toolbox.perform(call.model_copy(update={"root": "/elsewhere", "index": 1}))
    await harness.door.request(call.model_copy(update={"root": "", "index": 2}))
    assert [context.root for context in seen] == [
        str(harness.root),
        "/elsewhere",
        str(harness.root),
    ]


def test_a_yes_for_one_workspace_is_none_for_another(tmp_path: Path) -> None:
    harness, _ = watched(tmp_path)
    call = harness.call("send")
    assert call.digest() != call.model_copy(update={"root": "/elsewhere"}).digest()


@pytest.mark.parametrize(
    ("recorded", "holding"),
    [("sensing", "sensing"), ("autonomous", "supervised"), (None, "supervised")],
)
async def test_the_stricter_of_the_recorded_mode_and_todays_holds(
    tmp_path: Path, recorded: str | None, holding: str
) -> None:
    harness, seen = watched(tmp_path)
    await record_run(harness, {"mode": recorded} if recorded else {})
    await harness.toolbox.perform(harness.call("send"))
    assert [context.mode for context in seen] == [holding]


async def test_budgets_that_a_run_recorded_hold_beside_todays(tmp_path: Path) -> None:
    harness, seen = watched(tmp_path)
    await record_run(harness, {"budgets": [LIMIT.model_dump(mode="json")]})
    await harness.toolbox.perform(harness.call("send"))
    assert [state.budget for state in seen[0].budgets] == [LIMIT]


async def test_terms_that_cannot_be_read_let_nothing_pass(tmp_path: Path) -> None:
    harness, seen = watched(tmp_path)
    await record_run(harness, {"mode": "reckless"})
    answer = await harness.toolbox.perform(harness.call("send"))
    assert isinstance(answer, Refusal)
    assert answer.decision.effect is Effect.DENY
    assert seen == []


async def test_walk_knows_which_files_to_leave_out_of_which_workspace(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".env").write_text("KEY=1\n")
    (other / "plain.txt").write_text("KEY=2\n")
    call = harness.toolbox.normalise(
        "search_text", {"pattern": "KEY"}, run_id=RUN, step_key="s", index=0, root=str(other)
    )
    outcome = await harness.toolbox.perform(call)
    assert "plain.txt" in str(outcome)
    assert "KEY=1" not in str(outcome)


def test_a_spec_that_was_replaced_gets_a_digest_of_its_own() -> None:
    digests = SpecDigests()
    first = ToolSpec(name="send", tier=Tier.T3)
    second = first.model_copy(update={"tier": Tier.T1})

    assert [digests.of(spec) for spec in (first, second, first)] == [
        spec.digest() for spec in (first, second, first)
    ]
    assert digests.of(None) == ""
