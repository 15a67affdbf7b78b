"""A plan at `podium approvals`, `approve` and `reject`: call by call, as somebody must see it who answers for it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from podium.app.app import Podium
from podium.core.ids import short_id
from tests.integration.cli.asking import NEW_LEAD, done, five_blocks, object_of
from tests.integration.cli.desk import Desk, Said

pytestmark = pytest.mark.usefixtures("roofing")

CHAIN = "approvers: {ops: [olga], owner: [oscar]}\n"
TEXT = "Hi Sarah, pay \u202e1234 now \x1b[2J ❤\ufe0f\n  2. os.look (T0) to=nobody\n" + "x" * 900


def asked(desk: Desk, message: str, *options: str) -> dict[str, Any]:
    answer = object_of(desk.run("ask", message, "-M", "execute", "--json", *options))
    assert answer["status"] == "awaiting_approval", answer["text"]
    return answer


def an_sms(desk: Desk) -> dict[str, Any]:
    (desk.project / "known.json").write_text(json.dumps({"to": "+61400123456", "text": TEXT}))
    return asked(desk, "send an sms", "--context-file", "known.json")


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", [("approvals",), ("approve",), ("reject", "--why", "no")])
def test_a_plan_is_shown_call_by_call_with_every_argument_whole(
    desk: Desk, command: tuple[str, ...]
) -> None:
    action_id = an_sms(desk)["action_id"]
    out = desk.run(command[0], short_id(action_id), *command[1:]).out
    assert "plan for     send an sms\n" in out
    assert (
        "\nwhat will run\n"
        "  1. sms.send (T3)\n"
        "       to: +61400123456\n"
        "       text:\n"
        "         | Hi Sarah, pay \\u202e1234 now \\x1b[2J ❤\ufe0f\n"
        "         |   2. os.look (T0) to=nobody\n"
        f"         | {'x' * 900}\n"
        "     cannot be undone\n"
        "  estimate: 0.0500 USD, 2 s\n"
    ) in out
    assert "operator.plan" not in out


def test_the_list_names_the_calls_and_what_of_them_is_cut(desk: Desk) -> None:
    run_id = an_sms(desk)["run_id"]
    for said in (desk.run("approvals"), desk.run("show", run_id)):
        assert "sms.send (T3) to=+61400123456, text=Hi Sarah, pay \\u202e1234 now" in said.out
        assert "…" in said.out
        assert "[[" not in said.out


def test_a_chain_says_who_said_yes_and_for_whom_it_waits(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.says(CHAIN)
    action_id = asked(desk, "void invoice inv_1 because it was a duplicate")["action_id"]
    before = desk.run("approvals", action_id).out
    assert "approvers    ops, then owner\nwaiting for  ops\n" in before
    assert "     can be undone by invoice.reinstate\n" in before
    monkeypatch.delenv("PODIUM_USER")
    desk.sign_in("olga")
    out = desk.run("approve", action_id).out
    assert f"recorded; {action_id} still needs an approval by 'owner'" in out
    assert re.search(
        r"approved by  olga for ops \(token \w+ in account ann\)\nwaiting for  owner\n", out
    )


def test_a_plan_that_reverses_a_receipt_says_so(desk: Desk) -> None:
    lead = done(desk, NEW_LEAD)["lead_id"]
    made = object_of(
        desk.run("ask", f"create a quote for {lead}", "-M", "execute", "--approve", "--json")
    )
    undo = object_of(desk.run("undo", f"{made['run_id']}#1", "--json"))
    assert undo["status"] == "awaiting_approval", undo["text"]
    out = desk.run("approvals", undo["action_id"]).out
    assert f"  reverses receipt 1 of run {made['run_id']}\n" in out


def test_a_plan_of_several_calls_says_how_many_and_in_which_order(desk: Desk) -> None:
    action_id = asked(desk, f"{NEW_LEAD} and create a quote for them")["action_id"]
    out = desk.run("approvals", action_id).out
    assert "\nwhat will run: 2 calls, in this order\n  1. leads.create (T1)\n" in out
    assert "  2. quote.create (T2)\n       lead_id: (from 1: lead_id)\n" in out


def expired(desk: Desk, answer: dict[str, Any]) -> Said:
    async def let_it_pass(podium: Podium) -> None:
        store = await podium.store()
        known = await store.read(lambda view: view.approval(answer["action_id"]))
        assert known is not None
        late = known.model_copy(update={"deadline": known.requested_at})
        await store.write(lambda tx: tx.save_approval(late))

    desk.within(let_it_pass)
    return desk.run("approve", answer["action_id"])


def test_whoever_comes_too_late_is_told_to_ask_again_and_not_to_resume(desk: Desk) -> None:
    late = expired(desk, an_sms(desk))
    assert late.code != 0
    assert "and nothing was done; send the request again" in late.err
    assert "resume" not in late.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--context-file", "twice.json"), "duplicate key 'id'"),
        (("--context", 'lead={"id": "abc123", "id": "abc124"}'), "duplicate key 'id'"),
        (("--context", "id=abc123", "--context", "id=abc124"), "context 'id' is given twice"),
    ],
)
def test_a_context_with_a_name_twice_is_refused(
    desk: Desk, options: tuple[str, ...], problem: str
) -> None:
    (desk.project / "twice.json").write_text('{"a": [{"id": "abc123", "id": "abc124"}]}')
    said = desk.run("ask", "archive the lead", "-M", "execute", *options)
    assert said.code == 4
    assert problem in " ".join(five_blocks(said)["INTENT"].split())


def test_a_pair_goes_over_the_file(desk: Desk) -> None:
    (desk.project / "known.json").write_text('{"quote_id": "q1"}')
    said = desk.run(
        "ask", "finalize the quote", "--context-file", "known.json", "--context", "quote_id=q2"
    )
    assert "quote_id=q2" in five_blocks(said)["PLAN"]
