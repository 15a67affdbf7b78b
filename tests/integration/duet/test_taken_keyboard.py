"""A person takes the keyboard of a side in the middle of a task, by the command line."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.testing import retry_until_blocking
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.duet.terminals import Terminals, duet_terminals


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminals]:
    with duet_terminals(CommandRunner(tmp_path, capsys)) as stage:
        yield stage


@pytest.mark.soak  # held in tests/agents/tui/test_keyboard.py without commands
def test_a_plan_waits_for_the_keyboard_through_a_killed_supervisor_and_is_handed_on_once(
    stage: Terminals,
) -> None:
    assert stage.duet("up", "--grant").code == 0
    taken = stage.duet("take", "executer", "--json")
    assert taken.code == 0, taken.err
    who = taken.json["keyboard"]["who"]
    sending = stage.begin("send", "tidy up")
    retry_until_blocking(
        lambda: any(event.type == "plan" for event in stage.happened("PLANNER", "said"))
    )
    sending.send_signal(signal.SIGKILL)
    sending.wait()
    status = stage.status()
    assert [
        side["keyboard"] and side["keyboard"]["who"] for side in status["pairs"][0]["sides"]
    ] == [
        None,
        who,
    ]
    assert who in stage.duet("status").out
    resuming = stage.start("resume", status["tasks"][0]["run_id"])
    assert stage.duet("keys", "executer", "m", "i", "n", "e").code == 0
    retry_until_blocking(lambda: "mine" in stage.duet("screen", "executer").out)
    assert len(stage.happened("EXECUTER", "took")) == 1, "the plan went in beside a person's words"
    assert stage.duet("keys", "executer", "BSpace", "BSpace", "BSpace", "BSpace").code == 0
    given = stage.duet("give", "executer")
    assert given.code == 0, given.err
    assert resuming.wait(120) == 0
    assert len(stage.happened("EXECUTER", "took")) == 2, "primer and plan"
    assert len(stage.happened("PLANNER", "took")) == 3, "primer, task and result"
    log = stage.duet("log", "--json").json["events"]
    returned = [item for item in log if item["type"] == "keyboard_returned"]
    assert [(item["side"], item["by"]) for item in returned] == [("EXECUTER", who)]


@pytest.mark.soak
def test_whoever_did_not_take_it_returns_nothing(stage: Terminals) -> None:
    assert stage.duet("up", "--grant").code == 0
    assert "nobody has taken the keyboard of PLANNER" in stage.duet("give", "planner").err
    bob = {**stage.variables, "PODIUM_USER": "bob"}
    other = stage.cli.spawn("duet", "take", "planner", env=bob)
    assert other.code == 0, other.err
    assert "'bob' has the keyboard" in stage.duet("take", "planner").err
    assert "'bob' has the keyboard" in stage.duet("give", "planner").err
    assert stage.duet("give", "planner", "--force").code == 0
