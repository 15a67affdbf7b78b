"""A plan that needs people halts, and goes on at exactly their yes: once, in order, in time."""

from __future__ import annotations

from typing import Any

import pytest

from podium.app.app import Podium
from podium.core.ids import short_id
from tests.integration.cli.asking import NEW_LEAD, done, five_blocks, object_of
from tests.integration.cli.desk import Desk, Said

pytestmark = pytest.mark.usefixtures("roofing")

CHAIN = "approvers: {ops: [olga], owner: [oscar]}\n"
DO = ("-M", "execute", "--json")


def halted(desk: Desk, message: str, *options: str) -> dict[str, Any]:
    answer = object_of(desk.run("ask", message, *DO, *options))
    assert (answer["status"], answer["exit_code"]) == ("awaiting_approval", 3), answer["text"]
    assert f"APPROVE: {answer['action_id']}" in answer["next_actions"]
    return answer


def a_quote(desk: Desk) -> dict[str, Any]:
    """Halted before a quote is made for a lead that is there."""
    return halted(desk, f"create a quote for {done(desk, NEW_LEAD)['lead_id']}")


def as_person(desk: Desk, name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Said:
    monkeypatch.delenv("PODIUM_USER", raising=False)
    desk.sign_in(name)
    return desk.run(*arguments)


@pytest.mark.soak
def test_the_words_that_the_answer_names_release_the_plan(desk: Desk) -> None:
    waiting = a_quote(desk)
    said = desk.run("ask", f"APPROVE: {waiting['action_id']}")
    blocks = five_blocks(said)
    assert said.code == 0, said.out
    assert "Reasoning: The plan shown before" in blocks["INTENT"]
    assert f"Status: succeeded\nRun: {waiting['run_id']}" in blocks["RESULT"]
    assert "Approved by: ann" in blocks["RISKS / GATES"]
    again = desk.run("ask", f"APPROVE: {waiting['action_id']}")
    assert again.code == 4
    assert "consumed" in five_blocks(again)["INTENT"]
    assert len(desk.run("receipts", "list", waiting["run_id"], "--json").json["receipts"]) == 1


def test_a_yes_elsewhere_lets_the_run_be_resumed_with_the_same_five_blocks(desk: Desk) -> None:
    waiting = a_quote(desk)
    early = desk.run("resume", waiting["run_id"])
    assert (early.code, "Status: awaiting_approval" in early.out) == (3, True)
    assert desk.run("approve", short_id(waiting["action_id"])).code == 0
    said = desk.run("resume", short_id(waiting["run_id"]))
    assert said.code == 0, said.err
    assert "1. quote.create: completed (receipt 1, verified)" in five_blocks(said)["RESULT"]
    assert "OPERATOR: quote.create done in" in said.err


def test_a_resumed_plan_is_an_object_too(desk: Desk) -> None:
    waiting = a_quote(desk)
    desk.run("approve", waiting["action_id"])
    said = desk.run("resume", waiting["run_id"], "--json").json
    assert said["run"]["status"] == "succeeded"
    assert said["answer"]["results"][0]["approved_by"] == ["ann"]


def test_a_yes_beforehand_is_for_this_plan_alone(desk: Desk) -> None:
    lead = done(desk, NEW_LEAD)["lead_id"]
    done(desk, f"create a quote for {lead}", "--approve")
    halted(desk, f"create a quote for {lead}")


@pytest.mark.soak
def test_a_chain_asks_its_people_in_order_and_no_yes_beforehand_replaces_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.says(CHAIN)
    waiting = halted(desk, "void invoice inv_1 because it was a duplicate", "--approve")
    assert ", by ops, then owner (so far: nobody; next: ops)" in waiting["text"]
    word = f"APPROVE: {waiting['action_id']}"
    for person, words in (("ann", "waits for a member of 'ops'"), ("oscar", "of 'ops'")):
        said = as_person(desk, person, monkeypatch, "ask", word)
        assert (said.code, words in said.out) == (4, True), said.out
    said = as_person(desk, "olga", monkeypatch, "ask", word)
    assert said.code == 3
    assert "(so far: olga; next: owner)" in five_blocks(said)["RISKS / GATES"]
    said = as_person(desk, "olga", monkeypatch, "ask", word)
    assert (said.code, "has already approved" in said.out) == (4, True)
    said = as_person(desk, "oscar", monkeypatch, "ask", word)
    assert "Approved by: olga, oscar" in five_blocks(said)["RISKS / GATES"]
    assert "there is no invoice 'inv_1'" in said.out
    receipts = desk.run("receipts", "list", waiting["run_id"], "--json").json["receipts"]
    assert [receipt["approved_by"] for receipt in receipts] == [["olga", "oscar"]]


def test_a_no_ends_the_plan(desk: Desk) -> None:
    waiting = a_quote(desk)
    assert desk.run("reject", waiting["action_id"], "--why", "too early").code == 0
    said = desk.run("resume", waiting["run_id"])
    assert said.code == 4
    blocks = five_blocks(said)
    assert "Reason: ann rejected the plan: too early" in blocks["RESULT"]
    assert "Executed: none" in blocks["TOOL IMPACT"]
    late = desk.run("ask", f"APPROVE: {waiting['action_id']}")
    assert (late.code, "rejected" in late.out) == (4, True)


def test_after_its_deadline_nobody_can_say_yes(desk: Desk) -> None:
    waiting = a_quote(desk)

    async def let_it_pass(podium: Podium) -> None:
        store = await podium.store()
        asked = await store.read(lambda view: view.approval(waiting["action_id"]))
        assert asked is not None
        late = asked.model_copy(update={"deadline": asked.requested_at})
        await store.write(lambda tx: tx.save_approval(late))

    desk.within(let_it_pass)
    said = desk.run("ask", f"APPROVE: {waiting['action_id']}")
    assert said.code == 4
    assert "expired" in five_blocks(said)["INTENT"]
    assert desk.run("receipts", "list", waiting["run_id"], "--json").json["receipts"] == []
