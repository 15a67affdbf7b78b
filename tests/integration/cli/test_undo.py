"""`podium undo`: what a receipt proves is taken back by its inverse, gated and linked, once."""

from __future__ import annotations

import pytest

from podium.core.ids import short_id
from tests.integration.cli.ask_harness import (
    NEW_LEAD,
    done,
    five_blocks,
    nothing_was_made,
    object_of,
)
from tests.integration.cli.command_runner import CommandRunner

pytestmark = pytest.mark.usefixtures("roofing")


def a_lead(cli: CommandRunner) -> tuple[str, str]:
    """Its id, and the name of the receipt."""
    answer = object_of(cli.run("ask", NEW_LEAD, "-M", "execute", "--json"))
    return answer["results"][0]["fields"]["lead_id"], f"{answer['run_id']}#1"


def test_it_is_planned_first_and_then_done_and_linked(cli: CommandRunner) -> None:
    lead, receipt = a_lead(cli)
    plan = five_blocks(cli.run("undo", receipt, "-M", "plan"))
    short = short_id(receipt[:-2])
    assert f"Reverses receipt 1 of run {short}" in plan["INTENT"]
    assert f"leads.archive (T1) lead_id={lead}" in plan["PLAN"]
    assert f"podium undo '{short}#1'" in plan["NEXT ACTIONS"]
    answer = object_of(cli.run("undo", receipt, "--json"))
    assert (answer["status"], answer["exit_code"]) == ("succeeded", 0)
    assert answer["results"][0]["fields"]["undoes"] == receipt
    assert "leads.list_by_stage: completed (receipt 1) stage=archived, count=1" in (
        cli.run("ask", "list archived leads", "-M", "execute").out
    )


def test_nothing_is_taken_back_twice(cli: CommandRunner) -> None:
    _, receipt = a_lead(cli)
    assert cli.run("undo", receipt).code == 0
    result = cli.run("undo", receipt)
    assert result.code == 4
    assert "was undone already, by receipt 1 of run" in five_blocks(result)["INTENT"]


@pytest.mark.soak
def test_what_it_takes_to_do_is_what_it_takes_to_take_back(cli: CommandRunner) -> None:
    lead, _ = a_lead(cli)
    done(cli, f"create a quote for {lead}", "--approve")
    run = cli.run("runs", "--json").json["runs"][0]["id"]
    result = cli.run("undo", f"{run}#1")
    assert result.code == 3
    assert "Approval required: apr_" in five_blocks(result)["RISKS / GATES"]
    result = cli.run("undo", f"{run}#1", "--approve")
    assert result.code == 0, result.out
    assert "quote.decline: completed (receipt 1, verified)" in five_blocks(result)["RESULT"]


@pytest.mark.parametrize("receipt", ["abcd1234#1", "", "#", "abcd1234", "abcd1234#x", "x#1"])
def test_without_a_record_no_receipt_is_found_and_nothing_is_made(
    cli: CommandRunner, receipt: str
) -> None:
    result = cli.run("undo", receipt)
    assert result.code == 4
    assert "no run" in five_blocks(result)["INTENT"]
    assert nothing_was_made(cli)


def test_name_matching_no_receipt_is_reported(cli: CommandRunner) -> None:
    _, receipt = a_lead(cli)
    for name, words in (
        (receipt.replace("#1", "#7"), "has no receipt 7"),
        (receipt.replace("#1", ""), "is not a receipt"),
        ("ffffffff#1", "no run 'ffffffff'"),
    ):
        result = cli.run("undo", name)
        assert (result.code, words in five_blocks(result)["INTENT"]) == (4, True), result.out


def test_what_was_only_read_or_never_happened_cannot_be_undone(cli: CommandRunner) -> None:
    looked = object_of(cli.run("ask", "list new leads", "-M", "execute", "--json"))
    result = cli.run("undo", f"{looked['run_id']}#1")
    assert (result.code, "no inverse is recorded" in result.out) == (4, True)
    failed = object_of(cli.run("ask", "finalize quote q1", "-M", "execute", "--approve", "--json"))
    result = cli.run("undo", f"{failed['run_id']}#1")
    assert (result.code, "is failed, so there is nothing to undo" in result.out) == (4, True)
