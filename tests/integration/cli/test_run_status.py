"""Actual status of a run, whatever its dead process left in the record."""

from __future__ import annotations

import re
import signal
from datetime import UTC, datetime

from podium.app.app import Podium
from podium.app.run_list import INTERRUPTED, ShownStatus
from podium.core.events import RunStarted, StepCompleted, StepStarted
from podium.core.ids import short_id
from podium.core.work import Run, RunStatus
from podium.ports import Transaction
from podium.testing import retry_until_blocking
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.test_foreground_runs import (
    ended,
    go,
    one_more_flow,
    started,
    waiting_run,
)

__all__ = ["one_more_flow"]


def left_behind(cli: CommandRunner) -> Run:
    """A run whose process was killed in its second step."""
    made = Run(
        id=cli.ids.new("run"),
        flow="demo-of-the-test",
        status=RunStatus.RUNNING,
        owner="wrk_gone",
        fence=1,
        created_at=datetime.now(UTC),
    )

    def write(tx: Transaction) -> Run:
        run = tx.add_run(made)
        tx.append(run.id, RunStarted(owner="wrk_gone", fence=1))
        tx.append(run.id, StepStarted(step="look"))
        tx.append(run.id, StepCompleted(step="look"))
        tx.append(run.id, StepStarted(step="change"))
        return run

    async def work(podium: Podium) -> Run:
        return await (await podium.store()).write(write)

    return cli.within(work)


def test_a_run_whose_process_is_dead_is_interrupted_and_not_running(cli: CommandRunner) -> None:
    run = left_behind(cli)
    name = short_id(run.id)
    listed = cli.run("runs")
    assert f"{name}  interrupted" in listed.out
    assert f"continue with `podium resume {name}`" in listed.err
    shown = cli.run("show", run.id)
    assert "status     interrupted\n" in shown.out
    assert "owner      wrk_gone (gone)\n" in shown.out
    assert "in flight  change\n" in shown.out
    assert f"continue with `podium resume {name}`" in shown.err
    logged = cli.run("logs", run.id)
    assert f"run {name} is interrupted; continue with `podium resume {name}`" in logged.err
    for record in (
        cli.run("runs", "--json").json["runs"][0],
        cli.run("show", run.id, "--json").json["run"],
        cli.run("logs", run.id, "--json").json,
    ):
        assert (record["shown_status"], record["hosted"]) == ("interrupted", False)
    assert cli.run("show", run.id, "--json").json["in_flight"] == ["change"]


def test_runs_are_listed_by_how_they_stand_and_not_by_what_is_stored(cli: CommandRunner) -> None:
    left = left_behind(cli)
    cli.add_run(status=RunStatus.WAITING)

    def listed(*arguments: str) -> list[str]:
        return [run["id"] for run in cli.run("runs", "--json", *arguments).json["runs"]]

    assert listed("--status", "interrupted", "--limit", "1") == [left.id]
    assert listed("--status", "running") == []
    assert len(listed("--status", "interrupted", "--status", "waiting")) == 2
    assert {item.value for item in ShownStatus} == {item.value for item in RunStatus} | {
        INTERRUPTED
    }


def test_a_run_that_was_let_go_of_is_interrupted_with_how_to_go_on(cli: CommandRunner) -> None:
    run = waiting_run(cli)
    go(cli, run)
    (cli.project / "lost").touch()
    result = cli.run("resume", run.id)
    assert (result.code, result.out) == (1, f"run {run.id} interrupted\n")
    assert f"continue with `podium resume {run.id}`" in result.err
    (cli.project / "lost").unlink()
    assert cli.run("resume", run.id).code == 0


def test_resume_without_a_run_takes_the_only_one_that_can_go_on(cli: CommandRunner) -> None:
    nothing = cli.run("resume")
    assert (nothing.code, "no run can be resumed here" in nothing.err) == (2, True)
    assert list(cli.project.iterdir()) == []
    run = waiting_run(cli)
    still = cli.run("resume")
    assert (still.code, still.out) == (3, f"run {run.id} waiting\n")
    go(cli, run)
    (cli.project / "lost").touch()
    assert cli.run("resume", run.id).code == 1
    (cli.project / "lost").unlink()
    cli.add_run(status=RunStatus.WAITING)  # a person is to answer first
    cli.add_run(status=RunStatus.FAILED)
    assert cli.run("resume", "--json").json["run"]["id"] == run.id


def test_resume_without_a_run_lists_several_with_their_commands(cli: CommandRunner) -> None:
    first = left_behind(cli)
    second = cli.add_run(status=RunStatus.NEEDS_HUMAN, task="add a toggle")
    result = cli.run("resume")
    assert result.code == 2
    lines = result.err.splitlines()
    assert lines[0].endswith("2 runs can be resumed; name one:")
    assert lines[1:] == [
        f"  podium resume {short_id(second.id)}  # add a toggle",
        f"  podium resume {short_id(first.id)}  # demo-of-the-test",
    ]


def test_ctrl_c_is_answered_at_once_and_a_second_one_leaves_quietly(cli: CommandRunner) -> None:
    run = waiting_run(cli)
    go(cli, run)
    (cli.project / "hang").touch()
    (cli.project / "stubborn").touch()
    process = started(cli, "resume", run.id)
    retry_until_blocking(lambda: (cli.project / "in-slow").exists())
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    line = ""
    while "stopping" not in line:
        line = process.stderr.readline()
        assert line, "it ended without a word"
    assert f"run {short_id(run.id)} stays at its checkpoint" in line
    process.send_signal(signal.SIGINT)
    result = ended(process)
    assert result.code == 130
    # Events that were on their way may still be shown; no more words of its own.
    assert [
        line for line in result.err.splitlines() if not re.match(r"\d\d:\d\d:\d\d ", line)
    ] == []


def test_only_the_last_events_are_printed_when_asked_for(cli: CommandRunner) -> None:
    run = left_behind(cli)
    assert len(cli.run("logs", run.id).out.splitlines()) == 4
    tail = cli.run("logs", run.id, "--tail", "1").out.splitlines()
    assert len(tail) == 1
    assert "step_started" in tail[0]


def test_events_name_things_by_their_short_ids_and_in_json_by_whole_ones(
    cli: CommandRunner,
) -> None:
    run = waiting_run(cli)
    words, record = cli.run("logs", run.id).out, cli.run("logs", run.id, "--json").out
    owner = cli.run("logs", run.id, "--json").json["events"][1]["owner"]
    assert owner not in words
    assert f"owner={short_id(owner)}" in words
    assert owner in record
