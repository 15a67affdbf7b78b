"""`ContractedAgent`: any agent, kept to the contract of its turn."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from podium.agents.contract import NONCE_KEY, ContractedAgent
from podium.agents.contract.bounding import bounded
from podium.domain.asking import Reply, Turn, TurnLimits
from podium.domain.errors import AgentLost, ReplyInvalid, TimedOut
from podium.domain.gating import Usage
from podium.testing import FakeAgent

Prepared = Reply | str | Exception | Callable[[Turn], Reply]


class Review(BaseModel):
    verdict: Literal["PASS", "FAIL"]
    review_path: str | None = None


class Aliased(BaseModel):
    commit: str = Field(alias="commitHash")


def turn(contract: type[BaseModel] | None = Review, **more: object) -> Turn:
    given: dict[str, object] = {
        "run_id": "run_1", "step_key": "review", "role": "auditor", "prompt": "Review the diff.",
        "workspace": "/w", "contract": contract, **more,
    }  # fmt: skip
    return Turn.model_validate(given)


def agent(*replies: Prepared, nonce: str | None = None) -> tuple[ContractedAgent, FakeAgent]:
    inner = FakeAgent(replies)
    return ContractedAgent(inner, new_nonce=(lambda: nonce) if nonce else None), inner


def nonce_in(prompt: str) -> str:
    found = re.search(rf'"{NONCE_KEY}" with the value "(\w+)"', prompt)
    assert found
    return found[1]


async def test_a_turn_without_a_contract_passes_through() -> None:
    contracted, inner = agent(Reply(text="Words.", payload=["kept"]))
    plain = turn(contract=None)
    reply = await contracted.ask(plain)
    assert inner.turns == [plain]
    assert (reply.text, reply.payload, reply.found) == ("Words.", ["kept"], "none")
    assert contracted.name == "fake"


async def test_the_prompt_says_what_form_the_answer_has_and_the_payload_is_read() -> None:
    contracted, inner = agent('Looks right.\n\n{"verdict": "PASS"}')
    reply = await contracted.ask(turn())
    assert reply.payload == {"verdict": "PASS", "review_path": None}
    assert reply.found == "strict"
    prompt = inner.turns[0].prompt
    assert prompt.startswith("Review the diff.\n\n")
    assert json.dumps(Review.model_json_schema()) in prompt
    assert "End your reply with one JSON object" in prompt
    assert NONCE_KEY not in prompt


async def test_by_default_each_asking_has_a_nonce_of_its_own_that_the_payload_must_carry() -> None:
    nonces: list[str] = []

    def answer(asked: Turn) -> Reply:
        nonces.append(nonce_in(asked.prompt))
        carried = nonces[-1] if len(nonces) > 1 else "another"
        return Reply(text=json.dumps({"verdict": "PASS", NONCE_KEY: carried}))

    reply = await ContractedAgent(FakeAgent([answer, answer])).ask(turn())
    assert reply.payload == {"verdict": "PASS", "review_path": None}
    assert len(set(nonces)) == 2


async def test_the_echo_of_the_whole_prompt_is_never_taken_for_an_answer() -> None:
    def echo(asked: Turn) -> Reply:
        return Reply(text=asked.prompt)

    example = 'Answer with {"verdict": "PASS"} or\n{"verdict": "PASS"}\n'
    contracted = ContractedAgent(FakeAgent([echo, echo]))
    with pytest.raises(ReplyInvalid):
        await contracted.ask(turn(prompt=example))


async def test_a_mended_payload_is_marked_so() -> None:
    contracted, _ = agent("{'verdict': 'FAIL',}")
    assert (await contracted.ask(turn())).found == "repaired"


async def test_a_payload_is_given_by_the_names_its_contract_reads_it_by() -> None:
    contracted, _ = agent('{"commitHash": "abc"}')
    assert (await contracted.ask(turn(Aliased))).payload == {"commitHash": "abc"}


async def test_a_native_payload_is_validated_and_needs_no_nonce() -> None:
    contracted, inner = agent(
        Reply(text="whatever", payload={"verdict": "PASS"}, found="native"), nonce="n1"
    )
    reply = await contracted.ask(turn())
    assert (reply.payload, reply.found) == ({"verdict": "PASS", "review_path": None}, "native")
    assert len(inner.turns) == 1


@pytest.mark.parametrize("payload", [{"verdict": "MAYBE"}, {}, None, [1], {"verdict": "\x00"}])
async def test_a_native_payload_that_does_not_fit_is_asked_for_again(payload: object) -> None:
    contracted, inner = agent(
        Reply(text="", payload=payload, found="native"),
        Reply(text="", payload={"verdict": "FAIL"}, found="native"),
    )
    assert (await contracted.ask(turn())).payload["verdict"] == "FAIL"
    assert len(inner.turns) == 2


async def test_a_native_payload_that_fits_but_cannot_be_kept_is_refused() -> None:
    odd = Reply(text="", payload={"verdict": "PASS", "review_path": "a\x00b"}, found="native")
    contracted, _ = agent(odd, odd)
    with pytest.raises(ReplyInvalid, match="NUL"):
        await contracted.ask(turn())


async def test_it_asks_once_more_in_the_same_conversation_quoting_what_was_wrong() -> None:
    contracted, inner = agent(
        Reply(text='Done.\n{"verdict": "GOOD"}', session="s-1", untold=("git push: not allowed",)),
        Reply(text='{"verdict": "PASS"}', session="s-2"),
    )
    reply = await contracted.ask(turn(allowed_tools=("read_file",)))
    first, second = inner.turns
    assert second.session == "s-1"
    assert second.prompt.startswith("Your last reply could not be used.")
    assert "$.verdict: Input should be 'PASS' or 'FAIL' (was \"GOOD\")" in second.prompt
    assert '> {"verdict": "GOOD"}' in second.prompt
    assert "git push: not allowed" in second.prompt
    assert "End your reply with one JSON object" in second.prompt
    same = {"prompt", "session", "limits"}
    assert first.model_dump(exclude=same) == second.model_dump(exclude=same)
    assert (reply.session, reply.payload) == ("s-2", {"verdict": "PASS", "review_path": None})


async def test_without_a_conversation_it_asks_afresh_with_the_whole_prompt() -> None:
    contracted, inner = agent("no", '{"verdict": "PASS"}')
    await contracted.ask(turn())
    assert inner.turns[1].session is None
    assert inner.turns[1].prompt.startswith(
        "Review the diff.\n\nYour last reply could not be used."
    )
    assert inner.turns[1].prompt.count("# The form of your answer") == 1


async def test_a_long_bad_reply_is_quoted_cut_short() -> None:
    contracted, inner = agent("blah " * 50_000, '{"verdict": "PASS"}')
    await contracted.ask(turn())
    assert len(inner.turns[1].prompt) < 3000
    assert "characters before]" in inner.turns[1].prompt


async def test_secrets_are_taken_out_of_the_prompt_and_of_what_is_quoted_back() -> None:
    inner = FakeAgent(["the key is hunter2", '{"verdict": "PASS"}'])
    redacting = ContractedAgent(
        inner, new_nonce=None, redact=lambda text: text.replace("hunter2", "[secret]")
    )
    await redacting.ask(turn(prompt="Use hunter2."))
    assert [asked.prompt.count("hunter2") for asked in inner.turns] == [0, 0]
    assert "> the key is [secret]" in inner.turns[1].prompt


async def test_usage_and_seconds_of_both_turns_are_added_up() -> None:
    contracted, _ = agent(
        Reply(
            text="no", usage=Usage(input_tokens=10, usd=0.1, turns=1), seconds=2.0, warnings=("a",)
        ),
        Reply(text='{"verdict": "PASS"}', usage=Usage(output_tokens=5, turns=1), seconds=1.0),
    )
    reply = await contracted.ask(turn())
    assert reply.usage == Usage(input_tokens=10, output_tokens=5, usd=0.1, turns=2)
    assert (reply.seconds, reply.warnings) == (3.0, ("a",))


async def test_after_two_bad_replies_it_gives_up_with_the_usage_of_both() -> None:
    contracted, inner = agent(
        Reply(text="no", usage=Usage(turns=1)), Reply(text="still no", usage=Usage(turns=1))
    )
    with pytest.raises(ReplyInvalid, match="no JSON object") as caught:
        await contracted.ask(turn())
    assert caught.value.usage == Usage(turns=2)
    assert len(inner.turns) == 2


async def test_when_the_second_asking_fails_otherwise_the_first_ones_usage_is_not_lost() -> None:
    lost = AgentLost("gone")
    lost.usage = Usage(input_tokens=1)
    contracted, _ = agent(Reply(text="no", usage=Usage(turns=1)), lost)
    with pytest.raises(AgentLost) as caught:
        await contracted.ask(turn())
    assert caught.value.usage == Usage(input_tokens=1, turns=1)


async def test_the_limits_are_for_both_askings_together() -> None:
    spent = Usage(input_tokens=30, output_tokens=10, usd=0.25, turns=1)
    contracted, inner = agent(Reply(text="no", seconds=40.0, usage=spent), '{"verdict": "PASS"}')
    await contracted.ask(turn(limits=TurnLimits(seconds=60, tokens=100, usd=1.0, turns=3)))
    left = inner.turns[1].limits
    assert left.seconds is not None
    assert left.seconds <= 20.0
    assert (left.tokens, left.usd, left.turns) == (60, 0.75, 2)


@pytest.mark.parametrize(
    "limits",
    [TurnLimits(seconds=40.5), TurnLimits(turns=1), TurnLimits(tokens=40), TurnLimits(usd=0.25)],
)
async def test_with_nothing_left_it_does_not_ask_again(limits: TurnLimits) -> None:
    spent = Usage(input_tokens=30, output_tokens=10, usd=0.25, turns=1)
    contracted, inner = agent(Reply(text="no", seconds=40.0, usage=spent), "never asked")
    with pytest.raises(ReplyInvalid, match="leave nothing for asking again") as caught:
        await contracted.ask(turn(limits=limits))
    assert caught.value.usage == spent
    assert len(inner.turns) == 1


async def test_time_that_the_reply_does_not_own_up_to_counts_too() -> None:
    async def slow(asked: Turn) -> Reply:
        await asyncio.sleep(0.05)
        return Reply(text="no", seconds=0.0)

    inner = FakeAgent([slow, '{"verdict": "PASS"}'])
    await ContractedAgent(inner, new_nonce=None).ask(turn(limits=TurnLimits(seconds=30)))
    assert (inner.turns[1].limits.seconds or 0) < 30


@pytest.mark.parametrize("first", [(), ("no",)])
async def test_a_reply_that_waits_for_an_approval_is_given_as_it_is(first: Sequence[str]) -> None:
    waiting = Reply(text="waiting", session="s-1", waiting_approvals=("apr_1",))
    contracted, inner = agent(*first, waiting)
    reply = await contracted.ask(turn())
    assert (reply.waiting_approvals, reply.payload, reply.found) == (("apr_1",), None, "none")
    assert len(inner.turns) == len(first) + 1


async def test_errors_of_the_inner_agent_pass_through() -> None:
    contracted, _ = agent(TimedOut("too slow"))
    with pytest.raises(TimedOut):
        await contracted.ask(turn())


@pytest.mark.parametrize("contract", [None, Review])
async def test_long_text_is_kept_short_and_says_so(contract: type[BaseModel] | None) -> None:
    text = "head " + "x" * 1_000_000 + ' tail\n{"verdict": "PASS"}'
    contracted, _ = agent(text)
    reply = await contracted.ask(turn(contract))
    assert len(reply.text) <= 200_000
    assert reply.text.startswith("head ")
    assert reply.text.endswith('tail\n{"verdict": "PASS"}')
    assert "the transcript has all" in reply.text
    assert reply.payload == (None if contract is None else {"verdict": "PASS", "review_path": None})


@pytest.mark.parametrize("length", [0, 199, 200, 201, 1000, 10_007])
def test_what_is_left_out_is_counted_exactly(length: int) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(length))
    short = bounded(text, most=200)
    assert len(short) <= 200
    found = re.search(r"\n\[… (\d+) characters left out here; the transcript has all …\]\n", short)
    if length <= 200:
        assert short == text
    else:
        assert found
        assert len(short) - len(found[0]) + int(found[1]) == length
        assert text.startswith(short[: found.start()])
        assert text.endswith(short[found.end() :])
