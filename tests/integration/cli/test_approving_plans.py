"""A plan at `podium approvals`, `approve` and `reject`: call by call, as somebody must see it who answers for it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from podium.app.app import Podium
from podium.core.ids import short_id
from tests.integration.cli.ask_harness import NEW_LEAD, done, five_blocks, object_of
from tests.integration.cli.command_runner import CommandResult, CommandRunner

pytestmark = pytest.mark.usefixtures("roofing")

CHAIN = "approvers: {ops: [olga], owner: [oscar]}\n"
TEXT = "Hi Sarah, pay \u202e1234 now \x1b[2J ❤\ufe0f\n  2. os.look (T0) to=nobody\n" + "x" * 900


def asked(cli: CommandRunner, message: str, *options: str) -> dict[str, Any]:
    answer = object_of(cli.run("ask", message, "-M", "execute", "--json", *options))
    assert answer["status"] == "awaiting_approval", answer["text"]
    return answer


def an_sms(cli: CommandRunner) -> dict[str, Any]:
    (cli.project / "known.json").write_text(json.dumps({"to": "+61400123456", "text": TEXT}))
    return asked(cli, "send an sms", "--context-file", "known.json")


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", [("approvals",), ("approve",), ("reject", "--why", "no")])
def test_a_plan_is_shown_call_by_call_with_every_argument_whole(
    cli: CommandRunner, command: tuple[str, ...]
) -> None:
    action_id = an_sms(cli)["action_id"]
    out = cli.run(command[0], short_id(action_id), *command[1:]).out
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


def test_the_list_names_the_calls_and_what_of_them_is_cut(cli: CommandRunner) -> None:
    run_id = an_sms(cli)["run_id"]
    for item in (cli.run("approvals"), cli.run("show", run_id)):
        assert "sms.send (T3) to=+61400123456, text=Hi Sarah, pay \\u202e1234 now" in item.out
        assert "…" in item.out
        assert "[[" not in item.out


def test_chain_shows_who_approved_and_whom_it_waits_for(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.says(CHAIN)
    action_id = asked(cli, "void invoice inv_1 because it was a duplicate")["action_id"]
    before = cli.run("approvals", action_id).out
    assert "approvers    ops, then owner\nwaiting for  ops\n" in before
    assert "     can be undone by invoice.reinstate\n" in before
    monkeypatch.delenv("PODIUM_USER")
    cli.sign_in("olga")
    out = cli.run("approve", action_id).out
    assert f"recorded; {action_id} still needs an approval by 'owner'" in out
    assert re.search(
        r"approved by  olga for ops \(token \w+ in account ann\)\nwaiting for  owner\n", out
    )


def test_a_plan_that_reverses_a_receipt_says_so(cli: CommandRunner) -> None:
    lead = done(cli, NEW_LEAD)["lead_id"]
    made = object_of(
        cli.run("ask", f"create a quote for {lead}", "-M", "execute", "--approve", "--json")
    )
    undo = object_of(cli.run("undo", f"{made['run_id']}#1", "--json"))
    assert undo["status"] == "awaiting_approval", undo["text"]
    out = cli.run("approvals", undo["action_id"]).out
    assert f"  reverses receipt 1 of run {made['run_id']}\n" in out


def test_a_plan_of_several_calls_says_how_many_and_in_which_order(cli: CommandRunner) -> None:
    action_id = asked(cli, f"{NEW_LEAD} and create a quote for them")["action_id"]
    out = cli.run("approvals", action_id).out
    assert "\nwhat will run: 2 calls, in this order\n  1. leads.create (T1)\n" in out
    assert "  2. quote.create (T2)\n       lead_id: (from 1: lead_id)\n" in out


def expired(cli: CommandRunner, answer: dict[str, Any]) -> CommandResult:
    async def let_it_pass(podium: Podium) -> None:
        store = await podium.store()
        known = await store.read(lambda view: view.approval(answer["action_id"]))
        assert known is not None
        late = known.model_copy(update={"deadline": known.requested_at})
        await store.write(lambda tx: tx.save_approval(late))

    cli.within(let_it_pass)
    return cli.run("approve", answer["action_id"])


def test_late_approver_is_advised_to_ask_again_and_not_to_resume(cli: CommandRunner) -> None:
    late = expired(cli, an_sms(cli))
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
    cli: CommandRunner, options: tuple[str, ...], problem: str
) -> None:
    (cli.project / "twice.json").write_text('{"a": [{"id": "abc123", "id": "abc124"}]}')
    result = cli.run("ask", "archive the lead", "-M", "execute", *options)
    assert result.code == 4
    assert problem in " ".join(five_blocks(result)["INTENT"].split())


def test_a_pair_goes_over_the_file(cli: CommandRunner) -> None:
    (cli.project / "known.json").write_text('{"quote_id": "q1"}')
    result = cli.run(
        "ask", "finalize the quote", "--context-file", "known.json", "--context", "quote_id=q2"
    )
    assert "quote_id=q2" in five_blocks(result)["PLAN"]
