"""Prompts to an agent after its first turn, and cases in which it is asked again although it has ended."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from podium.agents import GeminiAgent
from podium.core.turns import Reply, Turn
from podium.jobs.playbook.conversation import (
    DiscardedAttempt,
    go_on,
    in_a_new_conversation,
    not_met,
)
from podium.jobs.playbook.events import PlaybookEnded
from podium.jobs.playbook.models import Criterion
from podium.library import run_playbook
from podium.testing.modelserver import ModelServer
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.playbook.playbook_harness import (
    EDIT,
    READ,
    Stage,
    call,
    of_type,
    result_of,
    trace_of,
)
from tests.integration.playbook.replay_harness import same

KEY = "AIza-loopback-0123456789"
WRONG = call("write_file", path="version.txt", content="1.5\n")
MENDED = call("write_file", path="version.txt", content="2.0\n")
FAILED = Criterion(
    command="make test", met=False, exit_code=2, why="exit code 2", said="1 failed\n", output_sha256="ab"
)  # fmt: skip
SILENT = Criterion(command="false", met=False, exit_code=1, why="exit code 1", output_sha256="cd")
MET = Criterion(command="make lint", met=True, exit_code=0, output_sha256="ef")


@pytest.fixture
def stage(cli: CommandRunner) -> Stage:
    return Stage(cli)


def turn(*acts: Any, when: str = "", reply: str = "Done.") -> dict[str, Any]:
    return {"role": "playbook", "when": when, "acts": list(acts), "reply": reply}


def prompts(stage: Stage, run_id: str) -> list[str]:
    return [item["prompt"] for item in of_type(trace_of(stage.root, run_id), "agent_asked")]


def test_after_an_answer_the_agent_gets_the_news_and_not_the_assignment_again(
    stage: Stage,
) -> None:
    stage.acts(call("ask_human", question="Which version?"), EDIT)
    code, lines = stage.events()
    assert code == 3
    run_id = lines[0]["run"]
    same(stage, run_id)
    (asked,) = of_type(lines, "approval_requested")
    assert "Which version?" in asked["summary"]
    stage.cli.run("approve", asked["approval_id"], "--say", "the second one")
    assert stage.cli.run("resume", run_id).code == 0
    first, second = prompts(stage, run_id)
    assert "Follow the playbook below" in first
    assert "Follow the playbook below" not in second
    assert second.startswith("Results of your last turn:\n")
    assert "the second one" in second
    assert second.endswith(
        "Continue with the playbook where you stopped, until these succeed: "
        "`grep -q 2.0 version.txt`. The assignment, its rules and its limits still apply."
    )
    same(stage, run_id)


def test_an_end_that_comes_too_early_goes_on_in_the_same_conversation(stage: Stage) -> None:
    stage.profile(commands={"test": "cat version.txt && grep -q 2.0 version.txt"})
    stage.turns([turn(WRONG, call("finish", summary="Bumped.")), turn(MENDED)])
    code, lines = stage.events()
    assert code == 0, lines[-1]
    run_id = lines[0]["run"]
    first, second = prompts(stage, run_id)
    steps = [event["step"] for event in of_type(trace_of(stage.root, run_id), "agent_asked")]
    assert steps == ["follow", "follow#1"], "a run of an earlier version could not go on"
    assert second not in first
    assert second.startswith(
        "# Not done yet\n\nYou ended your work, and Podium ran the criteria.\n\n"
        "Not met: `cat version.txt && grep -q 2.0 version.txt` (exit code 1). The end of its output:\n\n"
        "```data\n1.5\n```\n\nContinue from here"
    )
    assert result_of(lines)["result"]["ends"] == 2
    same(stage, run_id)


@pytest.mark.soak
def test_an_agent_that_ends_twice_without_changing_anything_is_not_asked_again(
    stage: Stage,
) -> None:
    stage.acts(READ)
    code, lines = stage.events()
    assert code == 1
    run_id = lines[0]["run"]
    assert len(prompts(stage, run_id)) == 2
    failure = result_of(lines)["run"]["failure"]["message"]
    assert "the agent ended 2 times, but criteria are not met" in failure
    assert "not asked again: it ended 2 times in a row without changing anything" in failure
    same(stage, run_id)


@pytest.mark.soak
def test_criteria_that_keep_failing_in_the_same_way_end_the_run(stage: Stage) -> None:
    stage.playbook(limits={"same_results": 3})
    stage.acts(WRONG)
    code, lines = stage.events()
    assert code == 1
    assert len(prompts(stage, lines[0]["run"])) == 3
    failure = result_of(lines)["run"]["failure"]["message"]
    assert "the criteria failed with the same output 3 times in a row" in failure


@pytest.mark.soak
def test_going_on_ends_with_the_limits_of_the_run(stage: Stage) -> None:
    stage.playbook(limits={"tool_calls": 2})
    stage.profile(commands={"test": "date +%N && false"})
    stage.acts(WRONG)
    code, lines = stage.events()
    assert code == 5
    assert len(of_type(lines, "agent_stopped")) == 1
    assert result_of(lines)["result"]["words"] == "All done, I promise."
    assert result_of(lines)["result"]["stop"]["kind"] == "tool_calls"


def test_a_criterion_that_may_not_be_run_is_not_put_to_the_agent(stage: Stage) -> None:
    stage.playbook(success=["sudo true"])
    code, lines = stage.events()
    assert code == 1
    assert len(prompts(stage, lines[0]["run"])) == 1
    assert "a criterion was not run" in result_of(lines)["run"]["failure"]["message"]


def test_a_retry_says_what_was_done_and_which_criteria_failed(stage: Stage) -> None:
    mends = turn(MENDED, when="# What was done before")
    stage.turns([mends, turn(READ, WRONG, reply="It says 1.5 now.")])
    stage.playbook(limits={"same_results": 2})
    code, lines = stage.events()
    assert code == 1
    run_id = lines[0]["run"]
    assert stage.cli.run("retry", run_id, "--from", "follow").code == 0
    first, *_, again = prompts(stage, run_id)
    assert again.startswith(first.rstrip())
    messages = again[len(first.rstrip()) :]
    assert "# What was done before" in messages
    assert "Files that it changed: `version.txt`." in messages
    assert "Not met: `grep -q 2.0 version.txt` (exit code 1). It had no output." in messages
    assert 'write_file {"content": "1.5\\n", "path": "version.txt"}: done' in messages
    assert "read_file" not in messages
    assert "It says 1.5 now." in messages
    same(stage, run_id)


def wants(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": tool, "arguments": arguments}]}


async def test_a_model_that_finishes_too_early_goes_on_with_what_it_knows(stage: Stage) -> None:
    steps = [
        wants("write_file", path="version.txt", content="1.5\n"),
        wants("finish", summary="Bumped."),
        wants("write_file", path="version.txt", content="2.0\n"),
        wants("finish", summary="Bumped for real."),
    ]
    async with ModelServer({"default": {"each_time": True, "steps": steps}}, key=KEY) as server:
        result = await run_playbook(
            stage.root / "bump.md",
            stage.root / "plugin-profile.yaml",
            agent=lambda deps: GeminiAgent(deps, lambda name: KEY, base_url=server.url),
            environ={**os.environ, "PODIUM_HOME": str(stage.cli.home)},
        )
        text = json.dumps(server.requests[2].body)
    assert (result.met, result.ends, len(server.requests)) == (True, 2, 4), result
    assert text.count("Follow the playbook below") == 1
    assert text.count("# Not done yet") == 1
    assert text.index("Bumped.") < text.index("# Not done yet")


class Forgetful:
    """An agent that keeps no conversation."""

    name = "forgetful"

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    async def ask(self, turn: Turn) -> Reply:
        self.turns.append(turn)
        return Reply(text="I looked at it.", agent=self.name)


async def test_an_agent_that_kept_no_conversation_gets_the_whole_assignment(stage: Stage) -> None:
    agent = Forgetful()
    result = await run_playbook(
        stage.root / "bump.md",
        stage.root / "plugin-profile.yaml",
        agent=lambda deps: agent,
        environ={**os.environ, "PODIUM_HOME": str(stage.cli.home)},
    )
    assert not result.met
    first, second = (item.prompt for item in agent.turns)
    assert [item.session for item in agent.turns] == [None, None]
    assert second.startswith(first.rstrip())
    assert "in a conversation that was not saved" in second
    assert "I looked at it." in second
    assert "# Not done yet" in second


def test_the_texts_of_later_turns() -> None:
    assert go_on([]) == (
        "Continue with the playbook where you stopped, until everything that it asks for is done. The assignment, its "
        "rules and its limits still apply."
    )
    assert not_met([FAILED, SILENT, MET], idle=True) == (
        "# Not done yet\n\n"
        "You ended your work, and Podium ran the criteria.\n\n"
        "Not met: `make test` (exit code 2). The end of its output:\n\n```data\n1 failed\n```\n\n"
        "Not met: `false` (exit code 1). It had no output.\n\n"
        "Met: `make lint`.\n\n"
        "Nothing that you did since the last check could have changed this result.\n\n"
        "Continue from here: find the cause, fix it, and end again. The assignment, its rules and its limits still apply. "
        "If you cannot do it with your permissions, end and say why: the run stops when you end twice in a row without "
        "changing anything."
    )
    ended = PlaybookEnded(met=False, criteria=(FAILED.record(), MET.record()), changed=("a.txt",))
    assert DiscardedAttempt(
        calls="write_file {}: done", last_text="I tried.", ended=ended
    ).summary() == (
        "# What was done before\n\n"
        "A person restarted this run from here. The earlier attempt is not part of this conversation. The folder is as that "
        "attempt left it, plus whatever people have changed since.\n\n"
        "Files that it changed: `a.txt`.\n\n"
        "Not met: `make test` (exit code 2). The end of its output:\n\n```data\n1 failed\n```\n\n"
        "Calls that may have changed something, in order:\n\n```data\nwrite_file {}: done\n```\n\n"
        "Its last message:\n\n```data\nI tried.\n```\n\n"
        "Look at the current state first. Keep what is right; add what is missing and correct what is wrong."
    )
    assert in_a_new_conversation("# Your task\n", Reply(text=""), "", "News.") == (
        "# Your task\n\n# What was done before\n\n"
        "You already started on this, in a conversation that was not saved. The folder is as you left it.\n\nNews."
    )
