"""A pair on a live tmux, by the command line and by the shims: what was asked of the first prototype, and more."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.testing import retry_until_blocking
from podium.testing.fake_tuis import ScriptedAnswers
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.duet.terminals import Terminals, duet_terminals
from tests.soaking import in_soak


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminals]:
    with duet_terminals(CommandRunner(tmp_path, capsys)) as stage:
        yield stage


def test_missing_tmux_is_reported_with_the_alternatives(stage: Terminals) -> None:
    (stage.short / "bin").mkdir()
    for name in ("git", "python3"):
        (stage.short / "bin" / name).symlink_to(shutil.which(name) or name)
    stage.variables["PATH"] = str(stage.short / "bin")

    up = stage.duet("up", "--grant")

    assert up.code == 1
    assert "install tmux 3.2 or newer" in up.err
    assert "`podium duet up --transport headless`" in up.err
    assert "--transport headless" in stage.duet("send", "tidy up").err
    for command in ("status", "down"):
        assert stage.duet(command).code == 0, "nothing is up, so nothing needs tmux"
    assert stage.duet("up", "--transport", "headless").code == 0


@pytest.mark.soak  # test_shims.py sees the same loop
def test_a_missing_program_is_named_with_its_side_before_anything_is_asked(
    stage: Terminals,
) -> None:
    stage.variables["EXECUTER_CMD"] = "no-such-program"
    up = stage.duet("up", "--grant")
    assert up.code == 1
    assert "'executer' (generic): program 'no-such-program' not found on PATH" in up.err
    assert "`podium duet up --executer claude`" in up.err
    assert not stage.happened("PLANNER", "message")
    assert stage.status()["pairs"][0]["up"] is False


def test_the_shims_make_one_whole_loop(stage: Terminals) -> None:
    output = stage.script("tests/smoke_loop.sh", "tidy up")
    assert output.code == 0, output.err
    assert output.out.splitlines()[-2:] == ["DONE: True", "pair main is down"]
    assert len(stage.happened("PLANNER", "took")) == 3, "primer, task and result"
    assert len(stage.happened("EXECUTER", "took")) == 2, "primer and plan"


def test_two_programs_run_in_their_folders_planner_left_and_keep_their_conversation(
    stage: Terminals,
) -> None:
    left, right = stage.short / "left", stage.short / "right"
    left.mkdir()
    right.mkdir()
    folders = ("--planner-cwd", str(left), "--executer-cwd", str(right))
    up = stage.duet("up", "--grant", *folders, "--json")
    assert up.code == 0, up.err
    sides = up.json["sides"]
    assert [(side["side"], side["status"], side["cwd"]) for side in sides] == [
        ("PLANNER", "ready", str(left)),
        ("EXECUTER", "ready", str(right)),
    ]
    before = stage.pids()
    for task in ("first", "second"):
        result = stage.duet("send", task)
        assert result.code == 0, result.err
    assert stage.duet("up", *folders, "--json").json["sides"] == sides, "a second `up` changed it"
    assert "is up with other programs or folders" in stage.duet("up", "--grant").err
    assert stage.pids() == before, "a program was started again between tasks"


@pytest.mark.soak
def test_a_planner_that_rests_without_a_word_is_reminded_before_its_time_is_over(
    stage: Terminals,
) -> None:
    stage.cast(ways=("silent", "plain"))
    stage.variables["POLI_PLAN_TIMEOUT"] = "8"
    assert stage.duet("up", "--grant").code == 0
    result = stage.duet("send", "tidy up")
    assert result.code == 0, result.err
    assert "reminded planner to answer" in result.err


@pytest.mark.soak
def test_planner_that_never_answers_is_reported_as_a_timeout(stage: Terminals) -> None:
    stage.cast(ways=("stuck",))
    stage.variables["POLI_PLAN_TIMEOUT"] = "3"
    assert stage.duet("up", "--grant").code == 0
    result = stage.duet("send", "tidy up")
    assert result.code == 6
    assert result.out.splitlines()[-1] == "DONE: False"
    assert "PLANNER sent no `plan` or `report` block" in result.err
    assert "within 3 s" in result.err
    assert "podium duet retry" in result.err
    assert "sent no `plan`" in stage.duet("log").out.splitlines()[-1]


@pytest.mark.soak
def test_an_executer_that_hangs_is_interrupted_and_its_leg_can_be_retried(stage: Terminals) -> None:
    stage.cast(executer=ScriptedAnswers(ways=("stuck", "plain")))
    stage.variables["POLI_EXEC_TIMEOUT"] = "3"
    assert stage.duet("up", "--grant").code == 0
    stuck = stage.duet("send", "tidy up")
    assert stuck.code == 6, stuck.err
    assert "EXECUTER sent no `result` block" in stuck.err
    again = stage.duet("retry")
    assert again.code == 0, again.err
    assert len(stage.happened("EXECUTER", "interrupted")) == 1
    assert len([event for event in stage.happened("PLANNER", "said") if event.type == "plan"]) == 1


@pytest.mark.soak
@pytest.mark.parametrize(
    "ways", [("partial", "recap"), in_soak(("strays", "quoting"))], ids="+".join
)
def test_what_only_looks_like_a_block_is_passed_over(
    stage: Terminals, ways: tuple[str, ...]
) -> None:
    stage.cast(ways=ways, executer=ScriptedAnswers(ways=("malformed",)))
    assert stage.duet("up", "--grant").code == 0
    result = stage.duet("send", "tidy up")
    assert result.code == 0, result.err
    [plan] = [event for event in stage.happened("PLANNER", "said") if event.type == "plan"]
    log = stage.duet("log", "--json").json["events"]
    routed = [item for item in log if item.get("routed_to") == "EXECUTER"]
    assert [item["message"]["body"] for item in routed] == [plan.body]


@pytest.mark.soak  # test_killed_duets.py kills both sides and the supervisor
def test_a_killed_supervisor_is_gone_on_with_and_nothing_is_sent_twice(stage: Terminals) -> None:
    stage.cast(think_seconds=1.0, executer=ScriptedAnswers(think_seconds=1.0))
    assert stage.duet("up", "--grant").code == 0
    sending = stage.begin("send", "tidy up")
    retry_until_blocking(lambda: len(stage.happened("EXECUTER", "took")) == 2)
    sending.send_signal(signal.SIGKILL)
    sending.wait()
    [task] = stage.status()["tasks"]
    assert task["leg"]["expected_from"] == "EXECUTER"
    done = stage.cli.spawn("resume", task["run_id"], env=stage.variables)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "DONE: True"
    assert len(stage.happened("PLANNER", "took")) == 3
    assert len(stage.happened("EXECUTER", "took")) == 2


@pytest.mark.soak
def test_an_aborted_task_leaves_its_programs_up_and_free(stage: Terminals) -> None:
    stage.cast(ways=("stuck", "plain", "plain"))
    assert stage.duet("up", "--grant").code == 0
    sending = stage.begin("send", "tidy up")
    retry_until_blocking(lambda: len(stage.happened("PLANNER", "took")) == 2)
    aborted = stage.duet("abort", "--why", "changed my mind", "--json")
    assert aborted.json["status"] == "cancelled", aborted.err
    assert sending.wait(60) == 1
    assert len(stage.happened("PLANNER", "interrupted")) == 1
    assert stage.duet("send", "another").code == 0
