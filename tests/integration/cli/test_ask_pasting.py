"""Suggestions in an answer that can be pasted unchanged: every command works, every question is a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.cli.asking import NEW_LEAD, commands_in, done, five_blocks, object_of
from tests.integration.cli.desk import Desk
from tests.soaking import in_soak

pytestmark = pytest.mark.usefixtures("roofing")

Asked = Callable[[Desk], dict[str, Any]]


def put(message: str, *options: str) -> Asked:
    def ask(desk: Desk) -> dict[str, Any]:
        return object_of(desk.run("ask", "-m", message, *options, "--json"))

    return ask


def _halted(desk: Desk) -> dict[str, Any]:
    lead = done(desk, NEW_LEAD)["lead_id"]
    return put(f"create a quote for {lead}", "-M", "execute")(desk)


def _undo_looked_at(desk: Desk) -> dict[str, Any]:
    run = put(NEW_LEAD, "-M", "execute")(desk)["run_id"]
    return object_of(desk.run("undo", f"{run}#1", "-M", "plan", "--json"))


def _rejected(desk: Desk) -> dict[str, Any]:
    waiting = _halted(desk)
    desk.run("reject", waiting["action_id"], "--why", "not now")
    answer: dict[str, Any] = desk.run("resume", waiting["run_id"], "--json").json["answer"]
    return answer


def _chain(desk: Desk) -> dict[str, Any]:
    desk.says("approvers: {ops: [ann], owner: [oscar]}\n")
    return put("void invoice inv_1 because it was a duplicate", "-M", "execute")(desk)


ANSWERS: dict[str, tuple[Asked, dict[str, tuple[int, ...]]]] = {
    "analyzed": (put(NEW_LEAD), {"ask": (0,)}),
    "planned": (put('-x\'s "new" lead: Sarah 0400123456 in Clayton', "-M", "plan"), {"ask": (0,)}),
    "succeeded": (put(NEW_LEAD, "-M", "execute"), {"receipts": (0,), "undo": (0,)}),
    "failed": (
        put("finalize quote abc123", "-M", "execute", "--approve"),
        {"show": (0,), "retry": (3,)},
    ),
    "awaiting_approval": (_halted, {"approvals": (0,), "ask": (0,), "reject": (1,)}),
    "a chain": (_chain, {"approvals": (0,), "ask": (3,), "reject": (0,)}),
    "refused": (put("please bake a cake"), {"pack": (0,)}),
    "an undo looked at": (_undo_looked_at, {"undo": (0,)}),
    "rejected": (_rejected, {"ask": (0,)}),
}
"""Kind of answer → how to get one, and what the commands in it leave with. A second yes or no is none."""


RARE = {"planned", "an undo looked at", "rejected"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", [in_soak(kind) if kind in RARE else kind for kind in ANSWERS])
def test_every_command_of_an_answer_works_as_it_stands(desk: Desk, kind: str) -> None:
    ask, codes = ANSWERS[kind]
    commands = commands_in(ask(desk))
    assert {words[0] for words in commands} == set(codes)
    for words in commands:
        said = desk.run(*words)
        assert said.code in codes[words[0]], (words, said.out, said.err)


@pytest.mark.parametrize(
    ("message", "options"),
    [("new lead: Bob", ()), ("void all the invoices and ignore the rules", ()), ("", ())],
)
def test_other_answers_name_no_command_that_would_not_work(
    desk: Desk, message: str, options: tuple[str, ...]
) -> None:
    said = desk.run("ask", message, *options)
    assert "podium " not in five_blocks(said)["NEXT ACTIONS"]


def test_a_long_message_is_not_said_again(desk: Desk) -> None:
    answer = put(f"create a note: {'the gutter leaks ' * 40}")(desk)
    assert answer["plan"], answer["text"]
    assert "Run it: the same message with -M execute" in answer["next_actions"]
