"""Plans for workers: handed over, waited for, approved meanwhile, cancelled."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

from podium.testing import retry_until_blocking
from tests.integration.cli.asking import NEW_LEAD, done, five_blocks, object_of
from tests.integration.cli.desk import AS_OS_USER, Desk
from tests.integration.cli.test_run_command import a_worker, stored

pytestmark = pytest.mark.usefixtures("roofing")

UNSERVED = "queues: {default: {labels: [nowhere]}}\n"


def put(desk: Desk, message: str, mode: str) -> dict[str, Any]:
    """In a process of its own, which leaves the worker that it starts behind."""
    return object_of(desk.spawn("ask", message, "-M", mode, "--json"))


def status_of(desk: Desk, answer: dict[str, Any]) -> str:
    status: str = desk.run("show", answer["run_id"], "--json").json["run"]["status"]
    return status


def until(desk: Desk, answer: dict[str, Any], status: str) -> None:
    retry_until_blocking(lambda: stored(desk, answer["run_id"]).status == status)


@pytest.mark.soak
def test_one_can_wait_for_it_and_sees_how_it_goes(desk: Desk) -> None:
    with a_worker(desk):
        said = desk.spawn("ask", NEW_LEAD, "-M", "enqueue_and_wait")
    assert said.code == 0, said.err
    assert "1. leads.create: completed (receipt 1, verified)" in five_blocks(said)["RESULT"]
    first, last = said.err.splitlines()
    assert 'OPERATOR: leads.create {"name":"Sarah"' in first
    assert "OPERATOR: leads.create done in" in last


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["enqueue", "enqueue_and_wait"])
def test_what_needs_a_yes_is_told_at_once_and_a_worker_goes_on_with_it(
    desk: Desk, mode: str
) -> None:
    lead = done(desk, NEW_LEAD)["lead_id"]
    with a_worker(desk):
        answer = put(desk, f"create a quote for {lead}", mode)
        assert (answer["status"], answer["exit_code"]) == ("awaiting_approval", 3)
        assert desk.run("approve", answer["action_id"]).code == 0
        until(desk, answer, "succeeded")
    receipts = desk.run("receipts", "list", answer["run_id"], "--json").json["receipts"]
    assert [receipt["approved_by"] for receipt in receipts] == [["ann"]]


@pytest.mark.soak
def test_what_is_handed_over_is_done_by_a_worker_that_is_started_for_it_and_so_is_what_a_yes_releases(
    desk: Desk,
) -> None:
    lead = done(desk, "new lead: Tom 0400123457 in Clayton")["lead_id"]
    answer = put(desk, NEW_LEAD, "enqueue")
    assert (answer["status"], answer["exit_code"]) == ("enqueued", 0)
    assert "Handed to a worker" in answer["text"]
    until(desk, answer, "succeeded")
    receipts = desk.run("receipts", "list", answer["run_id"], "--json").json["receipts"]
    assert [receipt["tool"] for receipt in receipts] == ["leads.create"]
    answer = put(desk, f"create a quote for {lead}", "enqueue")
    until(desk, answer, "waiting")
    said = desk.spawn("ask", f"APPROVE: {answer['action_id']}", env=AS_OS_USER)
    assert said.code == 0, said.out + said.err
    assert "1. quote.create: completed" in five_blocks(said)["RESULT"]


def test_a_plan_that_was_cancelled_is_not_done_whoever_says_yes(desk: Desk) -> None:
    desk.says(UNSERVED)
    lead = done(desk, NEW_LEAD)["lead_id"]
    answer = object_of(desk.run("ask", f"create a quote for {lead}", "-M", "enqueue", "--json"))
    assert desk.run("cancel", answer["run_id"]).code == 0
    said = desk.run("ask", f"APPROVE: {answer['action_id']}")
    assert said.code in (1, 4)
    five_blocks(said)
    assert status_of(desk, answer) == "cancelled"
    assert desk.run("receipts", "list", answer["run_id"], "--json").json["receipts"] == []


def test_who_stops_waiting_is_told_where_it_stands(desk: Desk) -> None:
    desk.says(UNSERVED)
    waiting = subprocess.Popen(
        desk.command("ask", NEW_LEAD, "-M", "enqueue_and_wait"),
        cwd=desk.project,
        env=desk.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    told = waiting.stderr.readline()
    assert "no worker serves queue 'default'" in told
    assert "podium worker --queue default --label nowhere" in told
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=120)
    assert (waiting.returncode, out) == (130, "")
    (run,) = desk.run("runs", "--json").json["runs"]
    assert f"podium: interrupted; run {run['id']} continues in queue 'default'" in err
    assert "`podium cancel " in err
    assert run["status"] == "queued"
