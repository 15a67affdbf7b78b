"""`podium ask --session` and the prompt: what was said before is known, per person, and can be erased."""

from __future__ import annotations

import json

import pytest

from tests.integration.cli.ask_harness import nothing_was_made, object_of
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.test_ask_inputs import with_stdin

pytestmark = pytest.mark.usefixtures("roofing")


def test_conversation_goes_on_over_commands_and_is_forgotten_on_request(
    cli: CommandRunner,
) -> None:
    session = ("--session", "office", "-M", "execute", "--json")
    asked = object_of(cli.run("ask", "new lead: Sarah Chen 0400123456", *session))
    assert (asked["status"], asked["classification"]["missing_evidence"]) == ("clarify", ["suburb"])
    lead = object_of(cli.run("ask", "Clayton", *session))["results"][0]["fields"]["lead_id"]
    plan = object_of(cli.run("ask", "create a quote for her", *session))
    assert plan["plan"]["steps"][0]["arguments"] == {"lead_id": lead}
    assert f"= lead_id: lead 'Sarah Chen, Clayton, new' ({lead})" in plan["text"]
    done = object_of(cli.run("ask", "approve", *session))
    assert (done["status"], done["run_id"]) == ("succeeded", plan["run_id"])
    # Without the session nobody knows who `her` is.
    alone = object_of(cli.run("ask", "create a quote for her", "-M", "plan", "--json"))
    assert alone["status"] == "clarify"
    assert cli.run("habits", "forget", "Sarah Chen", "--json").json["sessions"] == 1
    after = object_of(cli.run("ask", "create a quote for her", *session))
    assert after["status"] == "clarify"


def test_prompt_answers_in_one_word_and_makes_nothing_where_nothing_is(cli: CommandRunner) -> None:
    lines = b"new lead: Sarah Chen 0400123456\nClayton\n:session\n"
    result = with_stdin(cli, lines, "ask", "--interactive")
    assert "leads.create (T1) name=Sarah Chen, phone=+61400123456, suburb=Clayton" in result.out
    assert "Session: prompt-" in result.out
    assert nothing_was_made(cli)


def test_name_of_a_session_must_be_one(cli: CommandRunner) -> None:
    result = cli.run("ask", "system status", "--session", "../up", "--json")
    assert result.code == 4
    assert "session name '../up' is not valid" in json.dumps(object_of(result))
    assert nothing_was_made(cli)
