"""`podium habits`: what the operator remembers can be seen and erased, and approves nothing."""

from __future__ import annotations

import pytest

from tests.integration.cli.asking import NEW_LEAD, done, nothing_was_made, object_of
from tests.integration.cli.desk import Desk

pytestmark = pytest.mark.usefixtures("roofing")


def test_where_nothing_was_done_nothing_is_remembered_and_nothing_made(desk: Desk) -> None:
    assert desk.run("ask", NEW_LEAD).code == 0
    assert desk.run("habits", "list", "--json").json == {"habits": []}
    assert desk.run("habits", "forget", "--all", "--json").json == {"forgotten": 0}
    assert nothing_was_made(desk)


def test_what_was_asked_is_listed_with_what_became_of_it(desk: Desk) -> None:
    done(desk, NEW_LEAD)
    desk.run("ask", "finalize quote abc123", "-M", "execute", "--approve")
    first, second = desk.run("habits", "list", "--json").json["habits"]
    assert (first["said"], first["tools"], first["status"]) == (
        NEW_LEAD, ["leads.create"], "succeeded",
    )  # fmt: skip
    assert (second["status"], second["approved_by"]) == ("failed", ["ann"])
    listed = desk.run("habits", "list").out
    assert listed.splitlines()[0].split() == ["WHEN", "ASKED", "TOOLS", "BECAME", "APPROVED", "BY"]


def test_habits_suggest_and_never_approve(desk: Desk) -> None:
    lead = done(desk, NEW_LEAD)["lead_id"]
    for _ in range(3):
        done(desk, f"create a quote for {lead}", "--approve")
    answer = object_of(desk.run("ask", f"create a quote for {lead}", "-M", "execute", "--json"))
    assert answer["status"] == "awaiting_approval"
    looked = object_of(desk.run("ask", f"create a quote for {lead}", "--json"))
    assert looked["suggestions"] == ["quote.create (asked 4 times before)"]
    assert "Similar request before" not in looked["text"], "it is the plan anyway"


def test_one_can_forget_some_or_all(desk: Desk) -> None:
    done(desk, NEW_LEAD)
    done(desk, "system status")
    assert desk.run("habits", "forget", "sarah", "--json").json == {"forgotten": 1}
    (left,) = desk.run("habits", "list", "--json").json["habits"]
    assert left["said"] == "system status"
    assert desk.run("habits", "forget", "--all").out == "forgot 1 message\n"
    assert desk.run("habits", "list", "--json").json == {"habits": []}


def test_what_to_forget_must_be_said(desk: Desk) -> None:
    for arguments in ((), ("sarah", "--all")):
        said = desk.run("habits", "forget", *arguments)
        assert (said.code, "pass the text of the messages to forget, or --all" in said.err) == (
            2,
            True,
        )
