"""`podium undo`: what a receipt proves is taken back by its inverse, gated and linked, once."""

from __future__ import annotations

import pytest

from podium.core.ids import short_id
from tests.integration.cli.asking import NEW_LEAD, done, five_blocks, nothing_was_made, object_of
from tests.integration.cli.desk import Desk

pytestmark = pytest.mark.usefixtures("roofing")


def a_lead(desk: Desk) -> tuple[str, str]:
    """Its id, and the name of the receipt."""
    answer = object_of(desk.run("ask", NEW_LEAD, "-M", "execute", "--json"))
    return answer["results"][0]["fields"]["lead_id"], f"{answer['run_id']}#1"


def test_it_is_planned_first_and_then_done_and_linked(desk: Desk) -> None:
    lead, receipt = a_lead(desk)
    plan = five_blocks(desk.run("undo", receipt, "-M", "plan"))
    short = short_id(receipt[:-2])
    assert f"Reverses receipt 1 of run {short}" in plan["INTENT"]
    assert f"leads.archive (T1) lead_id={lead}" in plan["PLAN"]
    assert f"podium undo '{short}#1'" in plan["NEXT ACTIONS"]
    answer = object_of(desk.run("undo", receipt, "--json"))
    assert (answer["status"], answer["exit_code"]) == ("succeeded", 0)
    assert answer["results"][0]["fields"]["undoes"] == receipt
    assert "leads.list_by_stage: completed (receipt 1) stage=archived, count=1" in (
        desk.run("ask", "list archived leads", "-M", "execute").out
    )


def test_nothing_is_taken_back_twice(desk: Desk) -> None:
    _, receipt = a_lead(desk)
    assert desk.run("undo", receipt).code == 0
    said = desk.run("undo", receipt)
    assert said.code == 4
    assert "was undone already, by receipt 1 of run" in five_blocks(said)["INTENT"]


@pytest.mark.soak
def test_what_it_takes_to_do_is_what_it_takes_to_take_back(desk: Desk) -> None:
    lead, _ = a_lead(desk)
    done(desk, f"create a quote for {lead}", "--approve")
    run = desk.run("runs", "--json").json["runs"][0]["id"]
    said = desk.run("undo", f"{run}#1")
    assert said.code == 3
    assert "Approval required: apr_" in five_blocks(said)["RISKS / GATES"]
    said = desk.run("undo", f"{run}#1", "--approve")
    assert said.code == 0, said.out
    assert "quote.decline: completed (receipt 1, verified)" in five_blocks(said)["RESULT"]


@pytest.mark.parametrize("receipt", ["abcd1234#1", "", "#", "abcd1234", "abcd1234#x", "x#1"])
def test_without_a_record_no_receipt_is_found_and_nothing_is_made(desk: Desk, receipt: str) -> None:
    said = desk.run("undo", receipt)
    assert said.code == 4
    assert "no run" in five_blocks(said)["INTENT"]
    assert nothing_was_made(desk)


def test_a_name_that_fits_no_receipt_is_told(desk: Desk) -> None:
    _, receipt = a_lead(desk)
    for name, words in (
        (receipt.replace("#1", "#7"), "has no receipt 7"),
        (receipt.replace("#1", ""), "is not a receipt"),
        ("ffffffff#1", "no run 'ffffffff'"),
    ):
        said = desk.run("undo", name)
        assert (said.code, words in five_blocks(said)["INTENT"]) == (4, True), said.out


def test_what_was_only_read_or_never_happened_cannot_be_undone(desk: Desk) -> None:
    looked = object_of(desk.run("ask", "list new leads", "-M", "execute", "--json"))
    said = desk.run("undo", f"{looked['run_id']}#1")
    assert (said.code, "no inverse is recorded" in said.out) == (4, True)
    failed = object_of(desk.run("ask", "finalize quote q1", "-M", "execute", "--approve", "--json"))
    said = desk.run("undo", f"{failed['run_id']}#1")
    assert (said.code, "is failed, so there is nothing to undo" in said.out) == (4, True)
