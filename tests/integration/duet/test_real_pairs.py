"""Real terminal AIs plan for each other: each of the three as planner and as executer, to the byte both ways."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from podium.app.approvals import approve
from podium.core.events import AgentReplied
from podium.core.work import RunStatus
from podium.jobs.duet.events import MessageHeard
from podium.jobs.duet.models import DUET, DuetJob
from tests.integration.duet.real_pairs import ID, body_in, leaks, nasty, real_pair, script

CLIS = ("claude", "codex", "gemini")
REPORT = "Everything is *done*.\n\n- ünïcödé 漢字 🎭"


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pd", dir="/tmp") as name:  # sockets lie in it
        yield Path(name)


@pytest.mark.parametrize(
    ("planner", "executer"),
    [
        pytest.param(
            *pair, id="-".join(pair), marks=() if pair == ("claude", "codex") else pytest.mark.soak
        )
        for pair in product(CLIS, CLIS)
    ],
)
async def test_a_plan_and_its_result_arrive_to_the_byte(
    root: Path, planner: str, executer: str
) -> None:
    plan, result = nasty("the plan", 6_000), nasty("the result", 6_000)
    async with real_pair(root, planner, executer, script(plan, result, REPORT)) as live:
        for task in ("tidy up", "tidy up again"):
            run = await live.send(task)
            await live.resize(90, 30)
            assert run.status is RunStatus.SUCCEEDED, run.failure
            assert isinstance(run.result, dict)
            assert run.result["report"] == REPORT
            replied = await live.events(run, "agent_replied")
            assert {item.read_from for item in replied if isinstance(item, AgentReplied)} == {
                "transcript"
            }
        forwarded = live.asked("PLANNER sends you this plan")
        assert [body_in(item, "PLAN") for item in forwarded] == [plan, plan]
        back = live.asked("EXECUTER sends you this result:")
        assert [body_in(item, "RESULT") for item in back] == [result, result]
        assert leaks(root) == ["home/config.yaml"] or leaks(root) == []


@pytest.mark.soak
@pytest.mark.parametrize("who", CLIS)
async def test_bodies_of_64_kb_arrive_to_the_byte(root: Path, who: str) -> None:
    plan, result = nasty("the plan", 64_000), nasty("the result", 64_000)
    async with real_pair(root, who, who, script(plan, result, REPORT)) as live:
        run = await live.send("a large one")
        assert run.status is RunStatus.SUCCEEDED, run.failure
        output = await live.events(run, "message_heard")
        bodies = [item.message.body for item in output if isinstance(item, MessageHeard)]
        assert bodies[:2] == [plan, result]


async def test_a_call_that_waits_for_a_person_is_made_after_the_approval_in_the_same_turn(
    root: Path,
) -> None:
    output = script("1. remove old.txt", "removed", REPORT)
    remove = {"run": "rm old.txt"}
    output["rules"][1]["steps"] = [remove, "I wait for the approval."]
    block = output["rules"][0]["steps"][0].replace("EXECUTER", "PLANNER").replace("plan", "result")
    continued = {"when": rf"Results of your last turn[\s\S]*{ID}", "steps": [remove, block]}
    output["rules"].insert(0, continued)
    async with real_pair(root, "claude", "claude", output) as live:
        old = Path(live.pair.executer.cwd) / "old.txt"
        old.write_text("old")
        engine = await live.podium.hosting_engine()
        job = DuetJob(text="tidy up", pairs=(live.pair,))
        run = await engine.start(DUET, job.model_dump(mode="json"), task="tidy up")
        waits = await engine.finish(run.id, stop_when_waiting=True)
        assert old.exists()
        assert waits.waiting_for is not None
        approval = waits.waiting_for.removeprefix("approval:")
        podium = live.podium
        await approve(await podium.store(), podium.clock, podium.ids, approval, by="ann")
        done = await engine.finish(run.id)
        assert done.status is RunStatus.SUCCEEDED, done.failure
        assert not old.exists()
        sent = repr([request.body for request in live.model.requests])
        assert f"hook error: Waiting for approval {approval}" in sent
        assert "hook_client" not in sent
        [news] = dict.fromkeys(live.asked("Results of your last turn"))
        assert "once. The command:\n```\nrm old.txt\n```\n" in news
