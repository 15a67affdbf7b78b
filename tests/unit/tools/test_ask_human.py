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
from tests.unit.gate.rig import gate_of
from tests.unit.tools.rig import SECRET, Rig, always, make_rig

WHICH = "Which database shall I use?"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return make_rig(tmp_path, gate=gate_of(default=True))


async def asked(rig: Rig, **arguments: Json) -> str:
    """The id of the approval that the question waits for."""
    answer = await rig.toolbox.perform(rig.call("ask_human", 0, **{"question": WHICH, **arguments}))
    assert isinstance(answer, Refusal), answer
    assert answer.approval_id is not None
    return answer.approval_id


async def say(rig: Rig, approval: str, said: str) -> Approval:
    return await approve(rig.store, rig.clock, SteadyIds(), approval, by="ann", comment=said)


async def test_a_question_waits_and_the_same_call_brings_the_answer(rig: Rig) -> None:
    approval = await asked(rig)
    await say(rig, approval, "  the small one\n")

    outcome = await rig.use("ask_human", question=WHICH)

    assert outcome.result == {"answer": "the small one"}
    (receipt,) = await rig.receipts()
    assert (receipt.fields, receipt.approved_by) == ({"answer": "the small one"}, ("ann",))
    (granted,) = [each for each in await rig.events() if isinstance(each, ApprovalGranted)]
    assert granted.said == "the small one"


async def test_an_answer_is_used_once_and_the_next_question_is_asked_anew(rig: Rig) -> None:
    approval = await asked(rig)
    await say(rig, approval, "a")
    assert (await rig.use("ask_human", question=WHICH)).ok

    again = await rig.toolbox.perform(rig.call("ask_human", 1, question=WHICH))

    assert isinstance(again, Refusal)
    assert again.approval_id != approval


async def test_a_rejected_question_is_told_with_the_reason(rig: Rig) -> None:
    approval = await asked(rig)
    await reject(rig.store, rig.clock, SteadyIds(), approval, by="ann", why="find out yourself")

    answer = await rig.toolbox.perform(rig.call("ask_human", question=WHICH))

    assert isinstance(answer, Refusal)
    assert "ann rejected this call: find out yourself" in answer.say


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("SMALL", "small"),
        ("2", "large"),
        (" large ", "large"),
        ("large, but only on Linux", "large, but only on Linux"),
    ],
)
async def test_a_choice_is_named_by_its_words_or_its_number_and_other_words_are_an_answer(
    rig: Rig, said: str, answer: str
) -> None:
    approval = await asked(rig, choices=["small", "large"])

    assert (await say(rig, approval, said)).said == answer

    outcome = await rig.use("ask_human", question=WHICH, choices=["small", "large"])
    assert outcome.result == {"answer": answer}


@pytest.mark.parametrize(
    ("choices", "said", "why"),
    [
        (None, " \n", "is a question; answer it"),
        (["small", "large"], "3", "one of 1 'small', 2 'large', or in your own words"),
        (None, "x" * (MAX_ANSWER + 1), "shorten it"),
        (None, "\u200b\x1b", "is a question; answer it"),
    ],
)
async def test_what_is_no_answer_is_refused_and_the_question_stays_open(
    rig: Rig, choices: list[str] | None, said: str, why: str
) -> None:
    given: dict[str, Json] = {"choices": choices} if choices else {}
    approval = await asked(rig, **given)

    with pytest.raises(BadInput, match=why):
        await say(rig, approval, said)

    assert await asked(rig, **given) == approval


async def test_after_a_crash_behind_the_answer_it_is_told_all_the_same(rig: Rig) -> None:
    await say(rig, await asked(rig), "the small one")
    call = rig.call("ask_human", question=WHICH)
    assert isinstance(await rig.door.request(call), Permit)  # and then Podium dies

    outcome = await rig.toolbox.perform(call)

    assert isinstance(outcome, CallOutcome)
    assert outcome.result == {"answer": "the small one"}


async def test_a_policy_that_lets_it_pass_gives_no_answer_and_says_why(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, gate=always(Effect.ALLOW))

    outcome = await rig.use("ask_human", question=WHICH)

    assert not outcome.ok
    assert "no person was asked" in outcome.error


async def test_the_whole_question_is_shown_to_the_person(rig: Rig) -> None:
    question = "Why? " * 390

    approval_id = await asked(rig, question=question)

    shown = await rig.store.read(lambda view: view.approval(approval_id))
    assert shown is not None
    assert question.strip() in shown.summary


async def test_a_secret_in_an_answer_does_not_reach_the_agent(rig: Rig) -> None:
    await say(rig, await asked(rig), f"use {SECRET}")

    outcome = await rig.use("ask_human", question=WHICH)

    assert outcome.result == {"answer": "use [redacted:DOOR_KEY]"}


def test_approvals_know_the_tool_by_its_name() -> None:
    assert ASK_HUMAN.spec.name == QUESTION
