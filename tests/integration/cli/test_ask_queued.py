"""Plans for workers: handed over, waited for, approved meanwhile, cancelled."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

from podium.testing import retry_until_blocking
from tests.integration.cli.ask_harness import NEW_LEAD, done, five_blocks, object_of
from tests.integration.cli.command_runner import AS_OS_USER, CommandRunner
from tests.integration.cli.test_run_command import a_worker, stored

pytestmark = pytest.mark.usefixtures("roofing")

UNSERVED = "queues: {default: {labels: [nowhere]}}\n"


def put(cli: CommandRunner, message: str, mode: str) -> dict[str, Any]:
    """In a process of its own, which leaves the worker that it starts behind."""
    return object_of(cli.spawn("ask", message, "-M", mode, "--json"))


def status_of(cli: CommandRunner, answer: dict[str, Any]) -> str:
    status: str = cli.run("show", answer["run_id"], "--json").json["run"]["status"]
    return status


def until(cli: CommandRunner, answer: dict[str, Any], status: str) -> None:
    retry_until_blocking(lambda: stored(cli, answer["run_id"]).status == status)


@pytest.mark.soak
def test_one_can_wait_for_it_and_sees_how_it_goes(cli: CommandRunner) -> None:
    with a_worker(cli):
        result = cli.spawn("ask", NEW_LEAD, "-M", "enqueue_and_wait")
    assert result.code == 0, result.err
    assert "1. leads.create: completed (receipt 1, verified)" in five_blocks(result)["RESULT"]
    first, last = result.err.splitlines()
    assert 'OPERATOR: leads.create {"name":"Sarah"' in first
    assert "OPERATOR: leads.create done in" in last


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["enqueue", "enqueue_and_wait"])
def test_call_needing_approval_is_reported_at_once_and_a_worker_continues_it(
    cli: CommandRunner, mode: str
) -> None:
    lead = done(cli, NEW_LEAD)["lead_id"]
    with a_worker(cli):
        answer = put(cli, f"create a quote for {lead}", mode)
        assert (answer["status"], answer["exit_code"]) == ("awaiting_approval", 3)
        assert cli.run("approve", answer["action_id"]).code == 0
        until(cli, answer, "succeeded")
    receipts = cli.run("receipts", "list", answer["run_id"], "--json").json["receipts"]
    assert [receipt["approved_by"] for receipt in receipts] == [["ann"]]


@pytest.mark.soak
def test_what_is_handed_over_is_done_by_a_worker_that_is_started_for_it_and_so_is_what_a_yes_releases(
    cli: CommandRunner,
) -> None:
    lead = done(cli, "new lead: Tom 0400123457 in Clayton")["lead_id"]
    answer = put(cli, NEW_LEAD, "enqueue")
    assert (answer["status"], answer["exit_code"]) == ("enqueued", 0)
    assert "Handed to a worker" in answer["text"]
    until(cli, answer, "succeeded")
    receipts = cli.run("receipts", "list", answer["run_id"], "--json").json["receipts"]
    assert [receipt["tool"] for receipt in receipts] == ["leads.create"]
    answer = put(cli, f"create a quote for {lead}", "enqueue")
    until(cli, answer, "waiting")
    result = cli.spawn("ask", f"APPROVE: {answer['action_id']}", env=AS_OS_USER)
    assert result.code == 0, result.out + result.err
    assert "1. quote.create: completed" in five_blocks(result)["RESULT"]


def test_a_plan_that_was_cancelled_is_not_done_whoever_says_yes(cli: CommandRunner) -> None:
    cli.says(UNSERVED)
    lead = done(cli, NEW_LEAD)["lead_id"]
    answer = object_of(cli.run("ask", f"create a quote for {lead}", "-M", "enqueue", "--json"))
    assert cli.run("cancel", answer["run_id"]).code == 0
    result = cli.run("ask", f"APPROVE: {answer['action_id']}")
    assert result.code in (1, 4)
    five_blocks(result)
    assert status_of(cli, answer) == "cancelled"
    assert cli.run("receipts", "list", answer["run_id"], "--json").json["receipts"] == []


def test_whoever_stops_waiting_is_shown_the_current_state(cli: CommandRunner) -> None:
    cli.says(UNSERVED)
    waiting = subprocess.Popen(
        cli.command("ask", NEW_LEAD, "-M", "enqueue_and_wait"),
        cwd=cli.project,
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    output = waiting.stderr.readline()
    assert "no worker serves queue 'default'" in output
    assert "podium worker --queue default --label nowhere" in output
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=120)
    assert (waiting.returncode, out) == (130, "")
    (run,) = cli.run("runs", "--json").json["runs"]
    assert f"podium: interrupted; run {run['id']} continues in queue 'default'" in err
    assert "`podium cancel " in err
    assert run["status"] == "queued"
