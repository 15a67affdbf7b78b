"""A plan that needs people halts, and goes on at exactly their yes: once, in order, in time."""

from __future__ import annotations

from typing import Any

import pytest

from podium.app.app import Podium
from podium.core.ids import short_id
from tests.integration.cli.ask_harness import NEW_LEAD, done, five_blocks, object_of
from tests.integration.cli.command_runner import CommandResult, CommandRunner

pytestmark = pytest.mark.usefixtures("roofing")

CHAIN = "approvers: {ops: [olga], owner: [oscar]}\n"
DO = ("-M", "execute", "--json")


def halted(cli: CommandRunner, message: str, *options: str) -> dict[str, Any]:
    answer = object_of(cli.run("ask", message, *DO, *options))
    assert (answer["status"], answer["exit_code"]) == ("awaiting_approval", 3), answer["text"]
    assert f"APPROVE: {answer['action_id']}" in answer["next_actions"]
    return answer


def a_quote(cli: CommandRunner) -> dict[str, Any]:
    """Halted before a quote is made for a lead that is there."""
    return halted(cli, f"create a quote for {done(cli, NEW_LEAD)['lead_id']}")


def as_person(
    cli: CommandRunner, name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> CommandResult:
    monkeypatch.delenv("PODIUM_USER", raising=False)
    cli.sign_in(name)
    return cli.run(*arguments)


@pytest.mark.soak
def test_the_words_that_the_answer_names_release_the_plan(cli: CommandRunner) -> None:
    waiting = a_quote(cli)
    result = cli.run("ask", f"APPROVE: {waiting['action_id']}")
    blocks = five_blocks(result)
    assert result.code == 0, result.out
    assert "Reasoning: The plan shown before" in blocks["INTENT"]
    assert f"Status: succeeded\nRun: {waiting['run_id']}" in blocks["RESULT"]
    assert "Approved by: ann" in blocks["RISKS / GATES"]
    again = cli.run("ask", f"APPROVE: {waiting['action_id']}")
    assert again.code == 4
    assert "consumed" in five_blocks(again)["INTENT"]
    assert len(cli.run("receipts", "list", waiting["run_id"], "--json").json["receipts"]) == 1


def test_a_yes_elsewhere_lets_the_run_be_resumed_with_the_same_five_blocks(
    cli: CommandRunner,
) -> None:
    waiting = a_quote(cli)
    early = cli.run("resume", waiting["run_id"])
    assert (early.code, "Status: awaiting_approval" in early.out) == (3, True)
    assert cli.run("approve", short_id(waiting["action_id"])).code == 0
    result = cli.run("resume", short_id(waiting["run_id"]))
    assert result.code == 0, result.err
    assert "1. quote.create: completed (receipt 1, verified)" in five_blocks(result)["RESULT"]
    assert "OPERATOR: quote.create done in" in result.err


def test_a_resumed_plan_is_an_object_too(cli: CommandRunner) -> None:
    waiting = a_quote(cli)
    cli.run("approve", waiting["action_id"])
    response = cli.run("resume", waiting["run_id"], "--json").json
    assert response["run"]["status"] == "succeeded"
    assert response["answer"]["results"][0]["approved_by"] == ["ann"]


def test_a_yes_beforehand_is_for_this_plan_alone(cli: CommandRunner) -> None:
    lead = done(cli, NEW_LEAD)["lead_id"]
    done(cli, f"create a quote for {lead}", "--approve")
    halted(cli, f"create a quote for {lead}")


@pytest.mark.soak
def test_a_chain_asks_its_people_in_order_and_no_yes_beforehand_replaces_them(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.says(CHAIN)
    waiting = halted(cli, "void invoice inv_1 because it was a duplicate", "--approve")
    assert ", by ops, then owner (so far: nobody; next: ops)" in waiting["text"]
    word = f"APPROVE: {waiting['action_id']}"
    for person, words in (("ann", "waits for a member of 'ops'"), ("oscar", "of 'ops'")):
        result = as_person(cli, person, monkeypatch, "ask", word)
        assert (result.code, words in result.out) == (4, True), result.out
    result = as_person(cli, "olga", monkeypatch, "ask", word)
    assert result.code == 3
    assert "(so far: olga; next: owner)" in five_blocks(result)["RISKS / GATES"]
    result = as_person(cli, "olga", monkeypatch, "ask", word)
    assert (result.code, "has already approved" in result.out) == (4, True)
    result = as_person(cli, "oscar", monkeypatch, "ask", word)
    assert "Approved by: olga, oscar" in five_blocks(result)["RISKS / GATES"]
    assert "there is no invoice 'inv_1'" in result.out
    receipts = cli.run("receipts", "list", waiting["run_id"], "--json").json["receipts"]
    assert [receipt["approved_by"] for receipt in receipts] == [["olga", "oscar"]]


def test_a_no_ends_the_plan(cli: CommandRunner) -> None:
    waiting = a_quote(cli)
    assert cli.run("reject", waiting["action_id"], "--why", "too early").code == 0
    result = cli.run("resume", waiting["run_id"])
    assert result.code == 4
    blocks = five_blocks(result)
    assert "Reason: ann rejected the plan: too early" in blocks["RESULT"]
    assert "Executed: none" in blocks["TOOL IMPACT"]
    late = cli.run("ask", f"APPROVE: {waiting['action_id']}")
    assert (late.code, "rejected" in late.out) == (4, True)


def test_after_its_deadline_nobody_can_say_yes(cli: CommandRunner) -> None:
    waiting = a_quote(cli)

    async def let_it_pass(podium: Podium) -> None:
        store = await podium.store()
        asked = await store.read(lambda view: view.approval(waiting["action_id"]))
        assert asked is not None
        late = asked.model_copy(update={"deadline": asked.requested_at})
        await store.write(lambda tx: tx.save_approval(late))

    cli.within(let_it_pass)
    result = cli.run("ask", f"APPROVE: {waiting['action_id']}")
    assert result.code == 4
    assert "expired" in five_blocks(result)["INTENT"]
    assert cli.run("receipts", "list", waiting["run_id"], "--json").json["receipts"] == []
