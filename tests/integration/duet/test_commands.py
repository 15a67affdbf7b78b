"""`podium duet` as a person uses it, with two programs that are asked once a turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.duet.duet_harness import BRAIN, Hall


def test_a_task_is_planned_carried_out_and_reported(hall: Hall) -> None:
    assert hall.duet("up", "--grant").code == 0
    result = hall.duet("send", "tidy up")
    assert result.code == 0, result.err
    assert result.out.splitlines() == ["It is all done.", "DONE: True"]
    assert "plan from PLANNER to EXECUTER: 1. look" in result.err
    assert "result from EXECUTER to PLANNER" in result.err


def test_with_json_every_line_is_an_object_and_the_last_has_the_result(hall: Hall) -> None:
    hall.duet("up", "--grant")
    result = hall.duet("send", "tidy up", "--json")
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert (lines[0]["type"], lines[-1]["type"]) == ("launch", "result")
    assert lines[-1]["result"]["report"] == "It is all done."
    assert [line["leg"]["expected_from"] for line in lines if line["type"] == "leg_opened"] == [
        "PLANNER",
        "EXECUTER",
        "PLANNER",
    ]


def test_a_folder_that_nobody_granted_is_not_worked_in(hall: Hall) -> None:
    refused = hall.duet("send", "tidy up")
    assert refused.code == 4
    assert "is not granted" in refused.err
    assert "podium duet up --grant" in refused.err
    assert not (hall.cli.project / ".podium").exists(), "a refused task left something behind"


def test_a_task_without_words_is_refused(hall: Hall) -> None:
    hall.duet("up", "--grant")
    assert hall.duet("send", "  \n").code == 2


def test_a_planner_that_brings_no_block_fails_with_what_to_do_and_can_be_retried(
    hall: Hall,
) -> None:
    hall.duet("up", "--grant")
    hall.brain("brain", "print('I think it is fine.')")
    result = hall.duet("send", "tidy up")
    assert result.code == 1
    assert result.out.splitlines()[-1] == "DONE: False"
    assert "PLANNER ended its turn without the `plan`" in result.err
    hall.brain("brain", BRAIN)
    again = hall.duet("retry")
    assert again.code == 0, again.err
    assert again.out.splitlines()[-1] == "DONE: True"


def test_log_reports_all_prompts_replies_and_routing_decisions_of_both_sides(
    hall: Hall,
) -> None:
    hall.duet("up", "--grant")
    hall.duet("send", "tidy up")
    short = hall.duet("log")
    leg = ["leg opened", "agent asked", "agent replied", "message heard"]
    assert _kinds(short.out) == ["pair seated", *leg * 3]
    assert "2. mend" not in short.out
    assert "agent replied: planner (ann): It is all done." in short.out
    assert "2. mend" in hall.duet("log", "--full").out
    assert len(hall.duet("log", "--json").json["events"]) == 13


def test_log_of_a_failed_task_reports_what_was_exchanged_and_what_broke(hall: Hall) -> None:
    hall.duet("up", "--grant")
    hall.brain("brain", "print('I think\\nthat it is fine.')")
    hall.duet("send", "tidy up")
    result = hall.duet("log")
    assert "agent replied: planner (ann): I think" in result.out
    assert "that it is fine." not in result.out
    assert "that it is fine." in hall.duet("log", "--full").out
    assert _kinds(result.out)[-1] == "run failed"
    assert "side nudged" in _kinds(result.out)
    assert hall.duet("log", "--json").json["events"][-1]["type"] == "run_failed"


def test_status_says_that_nothing_goes_on(hall: Hall) -> None:
    result = hall.duet("status")
    assert result.code == 0
    assert "no open tasks" in result.out
    assert hall.duet("status", "--json").json["tasks"] == []


def test_abort_and_nudge_say_when_there_is_nothing_to_do(hall: Hall) -> None:
    hall.duet("up", "--grant")
    hall.duet("send", "tidy up")
    for name in ("abort", "nudge"):
        result = hall.duet(name)
        assert result.code == 1
        assert "there is no open duet task" in result.err


def test_unknown_pair_is_reported_with_the_known_ones(hall: Hall) -> None:
    result = hall.duet("up", "--pair", "third", "--grant")
    assert result.code == 2
    assert "there is no pair 'third'; pairs: main" in result.err


def test_what_was_brought_up_is_used_by_later_commands(hall: Hall, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    hall.brain("../elsewhere/brain")
    hall.duet("up", "--cwd", str(elsewhere), "--executer", "ann", "--grant")
    result = hall.duet("send", "tidy up", "--json")
    first = json.loads(result.out.splitlines()[0])
    seated = [json.loads(line) for line in result.out.splitlines() if '"pair_seated"' in line]
    assert first["type"] == "launch"
    assert (seated[0]["planner"], seated[0]["executer"]) == ("ann", "ann")
    assert hall.duet("down").code == 0


@pytest.mark.soak
def test_queued_tasks_are_done_by_a_worker_and_can_be_taken_out_before(hall: Hall) -> None:
    hall.duet("up", "--grant")
    # Not served here: a worker of its own is started for it, and does both.
    added = hall.cli.spawn("duet", "queue", "add", "first", "second", "--json")
    assert added.code == 0, added.err
    assert len(added.json["tasks"]) == 2
    worked = hall.cli.run("worker", "--queue", "duet", "--once")
    assert worked.code == 0, worked.err
    tasks = hall.duet("queue", "list", "--all", "--json").json["tasks"]
    assert [(task["text"], task["status"]) for task in tasks] == [
        ("first", "succeeded"),
        ("second", "succeeded"),
    ]
    refused = hall.duet("queue", "remove", tasks[0]["task_id"])
    assert refused.code == 1
    assert "is succeeded, not queued" in refused.err


def _kinds(log: str) -> list[str]:
    return [line.split("] ")[1].partition(":")[0] for line in log.splitlines()]
