"""Approvals of calls that send something: recipient, sum, subject and text stand on them before anybody agrees."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.app.app import Podium
from podium.app.approvals import show_approval
from podium.core.ids import short_id
from podium.mcp.context import approval_line
from tests.integration.cli.ask_harness import done, five_blocks, object_of
from tests.integration.cli.command_runner import AS_OS_USER, CommandRunner

pytestmark = pytest.mark.usefixtures("roofing")

LEAD = "new lead: Sarah Tran 0400123456 in Clayton, sarah@example.com"


@pytest.fixture
def as_os_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Approvals count for whoever runs the tests."""
    for name, value in AS_OS_USER.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def quote_id(cli: CommandRunner, as_os_user: None) -> str:
    """A draft with one line over 1,850 dollars."""
    lead = done(cli, LEAD)["lead_id"]
    quote = str(done(cli, f"create a quote for lead {lead}", "--approve")["quote_id"])
    line = {"description": "Ridge capping", "unit_price": 1850}
    (cli.project / "line.json").write_text(json.dumps(line))
    done(cli, f"add a line to quote {quote}", "--context-file", "line.json", "--approve")
    return quote


def asked(cli: CommandRunner, message: str, *options: str) -> dict[str, Any]:
    answer = object_of(cli.run("ask", message, "-M", "execute", "--json", *options))
    assert answer["status"] == "awaiting_approval", answer["text"]
    return answer


def test_mail_is_shown_whole_before_it_is_approved_also_when_its_quote_is_still_a_draft(
    cli: CommandRunner, quote_id: str
) -> None:
    answer = asked(cli, f"finalise quote {quote_id} and email it to the customer")
    card = cli.run("approvals", answer["action_id"]).out
    blocks = answer["text"]

    for line in (
        "sends",
        "  to: sarah@example.com",
        "  sum: $1,850.00",
        f"  subject: Quote {quote_id}: your roof",
        "    | Hi Sarah Tran,",
        "    | - Ridge capping: 1 x $1,850.00 = $1,850.00",
    ):
        assert f"\n       {line}\n" in card, card
        assert f"\n     {line}\n" in blocks, blocks
    assert "cannot be undone" in card
    assert "     can be undone by quote.reopen\n       until it is accepted or declined\n" in card
    assert "  quote.finalize: until it is accepted or declined\n" in blocks


def test_lists_and_mcp_name_recipient_and_sum(cli: CommandRunner, quote_id: str) -> None:
    done(cli, f"finalise quote {quote_id}", "--approve")
    action_id = asked(cli, f"email quote {quote_id}")["action_id"]

    async def line(podium: Podium) -> str:
        return approval_line(
            await show_approval(await podium.store(), podium.clock, action_id)
        ).what

    for text in (cli.run("approvals").out, cli.within(line)):
        assert f"quote_id={quote_id} → sarah@example.com, $1,850.00, Quote {quote_id}" in text
    summary = cli.run("approvals", action_id, "--json").json["approval"]["summary"]
    assert "sends 'sarah@example.com', '$1,850.00', 'Quote" in summary


def test_invoice_that_names_no_sum_is_asked_about_with_it(
    cli: CommandRunner, quote_id: str
) -> None:
    for message in (f"finalise quote {quote_id}", f"accept quote {quote_id}"):
        done(cli, message, "--approve")
    job = done(cli, f"create a job from quote {quote_id}", "--approve")["job_id"]
    done(cli, f"complete job {job}", "--approve")

    card = cli.run("approvals", asked(cli, f"invoice job {job}")["action_id"]).out

    assert "       sends\n         to: Sarah Tran\n         sum: $1,850.00\n" in card
    assert "       until a payment is recorded on it\n" in card


def test_preview_that_cannot_be_made_says_why_and_keeps_nobody_from_deciding(
    cli: CommandRunner, as_os_user: None
) -> None:
    answer = asked(cli, "email quote quote_0000000000")

    assert "sends: not known yet: there is no quote 'quote_0000000000'" in answer["text"]
    rejected = cli.run("reject", short_id(answer["action_id"]), "--why", "wrong id")
    assert rejected.code == 0


def test_answer_of_a_plan_without_sending_is_as_before(cli: CommandRunner, quote_id: str) -> None:
    plan = five_blocks(cli.run("ask", f"finalise quote {quote_id}", "-M", "execute"))["PLAN"]

    assert "sends" not in plan
