"""`ask_human`: a question waits as an approval, and the words of the yes are the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.app.approvals import MAX_ANSWER, QUESTION, approve, reject
from podium.core.decisions import Approval, CallOutcome, Effect, Permit, Refusal
from podium.core.errors import BadInput
from podium.core.events import ApprovalGranted
from podium.core.model import Json
from podium.testing import SteadyIds
from podium.tools.builtin.turn_tools import ASK_HUMAN
from tests.unit.gate.gate_harness import gate_of
from tests.unit.tools.toolbox_harness import SECRET, Harness, always, make_harness

WHICH = "Which database shall I use?"


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return make_harness(tmp_path, gate=gate_of(default=True))


async def asked(harness: Harness, **arguments: Json) -> str:
    """The id of the approval that the question waits for."""
    answer = await harness.toolbox.perform(
        harness.call("ask_human", 0, **{"question": WHICH, **arguments})
    )
    assert isinstance(answer, Refusal), answer
    assert answer.approval_id is not None
    return answer.approval_id


async def say(harness: Harness, approval: str, text: str) -> Approval:
    return await approve(
        harness.store, harness.clock, SteadyIds(), approval, by="ann", comment=text
    )


async def test_a_question_waits_and_the_same_call_brings_the_answer(harness: Harness) -> None:
    approval = await asked(harness)
    await say(harness, approval, "  the small one\n")

    outcome = await harness.use("ask_human", question=WHICH)

    assert outcome.result == {"answer": "the small one"}
    (receipt,) = await harness.receipts()
    assert (receipt.fields, receipt.approved_by) == ({"answer": "the small one"}, ("ann",))
    (granted,) = [event for event in await harness.events() if isinstance(event, ApprovalGranted)]
    assert granted.said == "the small one"


async def test_an_answer_is_used_once_and_the_next_question_is_asked_anew(harness: Harness) -> None:
    approval = await asked(harness)
    await say(harness, approval, "a")
    assert (await harness.use("ask_human", question=WHICH)).ok

    again = await harness.toolbox.perform(harness.call("ask_human", 1, question=WHICH))

    assert isinstance(again, Refusal)
    assert again.approval_id != approval


async def test_rejected_question_is_reported_with_the_reason(harness: Harness) -> None:
    approval = await asked(harness)
    await reject(
        harness.store, harness.clock, SteadyIds(), approval, by="ann", why="find out yourself"
    )

    answer = await harness.toolbox.perform(harness.call("ask_human", question=WHICH))

    assert isinstance(answer, Refusal)
    assert "ann rejected this call: find out yourself" in answer.say


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("SMALL", "small"),
        ("2", "large"),
        (" large ", "large"),
        ("large, but only on Linux", "large, but only on Linux"),
    ],
)
async def test_a_choice_is_named_by_its_words_or_its_number_and_other_words_are_an_answer(
    harness: Harness, text: str, answer: str
) -> None:
    approval = await asked(harness, choices=["small", "large"])

    assert (await say(harness, approval, text)).said == answer

    outcome = await harness.use("ask_human", question=WHICH, choices=["small", "large"])
    assert outcome.result == {"answer": answer}


@pytest.mark.parametrize(
    ("choices", "text", "why"),
    [
        (None, " \n", "is a question; answer it"),
        (["small", "large"], "3", "one of 1 'small', 2 'large', or in your own words"),
        (None, "x" * (MAX_ANSWER + 1), "shorten it"),
        (None, "\u200b\x1b", "is a question; answer it"),
    ],
)
async def test_what_is_no_answer_is_refused_and_the_question_stays_open(
    harness: Harness, choices: list[str] | None, text: str, why: str
) -> None:
    given: dict[str, Json] = {"choices": choices} if choices else {}
    approval = await asked(harness, **given)

    with pytest.raises(BadInput, match=why):
        await say(harness, approval, text)

    assert await asked(harness, **given) == approval


async def test_after_a_crash_behind_the_answer_it_is_reported_all_the_same(
    harness: Harness,
) -> None:
    await say(harness, await asked(harness), "the small one")
    call = harness.call("ask_human", question=WHICH)
    assert isinstance(await harness.door.request(call), Permit)  # and then Podium dies

    outcome = await harness.toolbox.perform(call)

    assert isinstance(outcome, CallOutcome)
    assert outcome.result == {"answer": "the small one"}


async def test_a_policy_that_lets_it_pass_gives_no_answer_and_says_why(tmp_path: Path) -> None:
    harness = make_harness(tmp_path, gate=always(Effect.ALLOW))

    outcome = await harness.use("ask_human", question=WHICH)

    assert not outcome.ok
    assert "no person was asked" in outcome.error


async def test_the_whole_question_is_shown_to_the_person(harness: Harness) -> None:
    question = "Why? " * 390

    approval_id = await asked(harness, question=question)

    shown = await harness.store.read(lambda view: view.approval(approval_id))
    assert shown is not None
    assert question.strip() in shown.summary


async def test_a_secret_in_an_answer_does_not_reach_the_agent(harness: Harness) -> None:
    await say(harness, await asked(harness), f"use {SECRET}")

    outcome = await harness.use("ask_human", question=WHICH)

    assert outcome.result == {"answer": "use [redacted:DOOR_KEY]"}


def test_approvals_know_the_tool_by_its_name() -> None:
    assert ASK_HUMAN.spec.name == QUESTION
