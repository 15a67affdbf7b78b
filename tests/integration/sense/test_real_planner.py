"""The planner as the real Gemini CLI on a loopback model: whatever it says, the tick goes on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from podium.jobs.sense.models import PlannerStatus, TickOutcome
from podium.testing.modelserver import ModelServer
from tests.integration.agents import clis
from tests.integration.contract.media import GEMINI, KEY
from tests.integration.sense.root import Root

PLAN = {
    "timestamp": "2026-01-01T00:00:00Z",
    "source": "gmx_clc_orchestrator",
    "context_summary": "One check fails.",
    "items": [
        {
            "type": "health_fix",
            "priority": "high",
            "target": "opal_api",
            "action": "create_wo",
            "wo_suggestion": {
                "wo_id_hint": "FIX-OPAL-API",
                "title": "Bring the API back",
                "summary": "It refuses connections.",
                "tasks": ["Look at its log"],
            },
        },
        {"type": "info", "priority": "low", "target": "clc_worker", "action": "log"},
    ],
}
USAGE = {"input": 900, "output": 100}


async def planned_by(
    tmp_path: Path, *steps: Any, seconds: float = 60.0, mode: str = "sensing"
) -> tuple[TickOutcome, Root]:
    """A tick whose planner is the real CLI, and whose model says this, the last of it again and again."""
    root = Root(tmp_path)
    async with ModelServer({"rules": [{"when": "", "steps": list(steps)}]}, key=KEY) as server:
        profile = {"system": "Plan.", "timeout_seconds": seconds}
        root.configure(
            {"planner": "gemini", "profile": "tests", "profiles": {"tests": profile}},
            agents={"gemini": GEMINI.settings(server.url)},
            secrets=["MODEL_KEY"],
        )
        root.environ["MODEL_KEY"] = KEY
        return await root.tick(mode), root


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("{plan}", id="the plan alone", marks=pytest.mark.soak),
        pytest.param("I looked at it all.\n\n```json\n{plan}\n```", id="prose around it"),
    ],
)
async def test_a_good_plan_is_read(tmp_path: Path, words: str) -> None:
    payload = {"text": words.replace("{plan}", json.dumps(PLAN, indent=2)), "usage": USAGE}
    outcome, root = await planned_by(tmp_path, payload)
    assert (outcome.status, outcome.why) == (PlannerStatus.OK, "")
    assert [(candidate.title, candidate.state) for candidate in outcome.candidates] == [
        ("Bring the API back", "logged")
    ]
    assert [item.index for item in outcome.skipped_items] == [1]
    assert outcome.tokens == 1000
    assert outcome.summary().endswith("GMX_Call_Status=OK, WOs_Created=0, WO_IDs=[]")
    assert root.inbox == []


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(
            {"text": '{"items": [{"type": "health_fix", "prio'},
            id="broken JSON",
            marks=pytest.mark.soak,
        ),
        pytest.param({"text": ""}, id="empty", marks=pytest.mark.soak),
        pytest.param(
            {"text": "I cannot help with that."}, id="refusal in words", marks=pytest.mark.soak
        ),
        pytest.param(
            {"text": "", "finish": "safety"}, id="refusal by its provider", marks=pytest.mark.soak
        ),
        pytest.param({"status": 500}, id="its provider is down", marks=pytest.mark.soak),
    ],
)
async def test_no_plan_is_an_error_and_the_tick_goes_on(
    tmp_path: Path, step: dict[str, Any]
) -> None:
    outcome, root = await planned_by(tmp_path, step, step, step, step, seconds=30)
    assert outcome.status is PlannerStatus.ERROR
    assert outcome.why
    assert outcome.candidates == ()
    assert "GMX_Call_Status=ERROR, WOs_Created=0, WO_IDs=[]" in root.log


async def test_a_planner_that_hangs_is_ended_when_its_time_is_over(tmp_path: Path) -> None:
    outcome, _ = await planned_by(tmp_path, {"fault": "hang"}, seconds=5)
    assert outcome.status is PlannerStatus.ERROR
    assert "gave no answer within" in outcome.why


@pytest.mark.soak
async def test_a_planner_that_crashes_is_an_error(tmp_path: Path) -> None:
    # The model's answer has its own process killed: the CLI runs in a shell that ends by a signal.
    program = shlex.join(clis.gemini())
    dying = ["/bin/sh", "-c", f'{program} "$@"; kill -9 $$', "sh"]
    root = Root(tmp_path)
    async with ModelServer(
        {"rules": [{"when": "", "steps": [{"fault": "drop"}] * 9}]}, key=KEY
    ) as server:
        settings = {**GEMINI.settings(server.url), "command": dying}
        root.configure({"planner": "gemini"}, agents={"gemini": settings}, secrets=["MODEL_KEY"])
        root.environ["MODEL_KEY"] = KEY
        outcome = await root.tick("sensing")
    assert outcome.status is PlannerStatus.ERROR


async def test_a_planner_that_is_not_there_is_mocked(tmp_path: Path) -> None:
    root = Root(tmp_path, {"planner": "gemini"})
    root.environ["PATH"] = str(tmp_path / "nothing")
    outcome = await root.tick("sensing")
    assert outcome.status is PlannerStatus.MOCK
    assert "gemini" in outcome.why
    assert outcome.summary().endswith("GMX_Call_Status=MOCK, WOs_Created=0, WO_IDs=[]")


@pytest.mark.soak  # held in test_planner.py without a start, which takes seconds
async def test_plan_already_in_the_data_is_no_answer(tmp_path: Path) -> None:
    root_plan = json.dumps(PLAN)
    root = Root(tmp_path)
    (root.path / "bridge/outbox/LIAM/evil.ack.json").write_text(root_plan)
    async with ModelServer({"rules": [{"when": "", "steps": [root_plan]}]}, key=KEY) as server:
        root.configure(
            {"planner": "gemini"},
            agents={"gemini": GEMINI.settings(server.url)},
            secrets=["MODEL_KEY"],
        )
        root.environ["MODEL_KEY"] = KEY
        outcome = await root.tick("supervised")
    assert outcome.status is PlannerStatus.ERROR
    assert "part of its input" in outcome.why
