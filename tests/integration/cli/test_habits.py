"""`podium habits`: what the operator remembers can be seen and erased, and approves nothing."""

from __future__ import annotations

import pytest

from tests.integration.cli.ask_harness import NEW_LEAD, done, nothing_was_made, object_of
from tests.integration.cli.command_runner import CommandRunner

pytestmark = pytest.mark.usefixtures("roofing")


def test_where_nothing_was_done_nothing_is_remembered_and_nothing_made(cli: CommandRunner) -> None:
    assert cli.run("ask", NEW_LEAD).code == 0
    assert cli.run("habits", "list", "--json").json == {"habits": []}
    assert cli.run("habits", "forget", "--all", "--json").json == {"forgotten": 0}
    assert nothing_was_made(cli)


def test_what_was_asked_is_listed_with_what_became_of_it(cli: CommandRunner) -> None:
    done(cli, NEW_LEAD)
    cli.run("ask", "finalize quote abc123", "-M", "execute", "--approve")
    first, second = cli.run("habits", "list", "--json").json["habits"]
    assert (first["said"], first["tools"], first["status"]) == (
        NEW_LEAD, ["leads.create"], "succeeded",
    )  # fmt: skip
    assert (second["status"], second["approved_by"]) == ("failed", ["ann"])
    listed = cli.run("habits", "list").out
    assert listed.splitlines()[0].split() == ["WHEN", "ASKED", "TOOLS", "BECAME", "APPROVED", "BY"]


def test_habits_suggest_and_never_approve(cli: CommandRunner) -> None:
    lead = done(cli, NEW_LEAD)["lead_id"]
    for _ in range(3):
        done(cli, f"create a quote for {lead}", "--approve")
    answer = object_of(cli.run("ask", f"create a quote for {lead}", "-M", "execute", "--json"))
    assert answer["status"] == "awaiting_approval"
    looked = object_of(cli.run("ask", f"create a quote for {lead}", "--json"))
    assert looked["suggestions"] == ["quote.create (asked 4 times before)"]
    assert "Similar request before" not in looked["text"], "it is the plan anyway"


def test_one_can_forget_some_or_all(cli: CommandRunner) -> None:
    done(cli, NEW_LEAD)
    done(cli, "system status")
    assert cli.run("habits", "forget", "sarah", "--json").json == {"forgotten": 1}
    (left,) = cli.run("habits", "list", "--json").json["habits"]
    assert left["said"] == "system status"
    assert cli.run("habits", "forget", "--all").out == "forgot 1 message\n"
    assert cli.run("habits", "list", "--json").json == {"habits": []}


def test_text_to_forget_must_be_given(cli: CommandRunner) -> None:
    for arguments in ((), ("sarah", "--all")):
        result = cli.run("habits", "forget", *arguments)
        assert (result.code, "pass the text of the messages to forget, or --all" in result.err) == (
            2,
            True,
        )
