"""`ContractedAgent`: any agent, kept to the contract of its turn."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from typing import Literal

import jsonschema
import pytest
from pydantic import (
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    SecretStr,
    computed_field,
    field_validator,
)

from podium.agents.contract import NONCE_KEY, ContractedAgent
from podium.agents.contract.reply_text import bounded
from podium.core.decisions import Usage
from podium.core.errors import AgentLost, BadInput, ReplyInvalid, TimedOut
from podium.core.turns import Reply, Turn, TurnLimits, TurnStop
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
    found = re.findall(rf'"{NONCE_KEY}": (?:\{{"const": )?"(\w+)"', prompt)
    assert found
    return str(found[-1])


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
    assert "End your reply with one JSON object" in prompt
    schema = json.loads(prompt.rstrip().rpartition("\n")[2])
    assert schema == {
        "type": "object",
        "properties": {
            "verdict": {"enum": ["PASS", "FAIL"], "type": "string"},
            "review_path": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["verdict"],
    }


async def test_the_schema_asks_for_the_nonce_itself() -> None:
    """A closed schema beside a sentence that demands one more key would contradict itself."""

    class Closed(Review):
        model_config = ConfigDict(extra="forbid")

    contracted, inner = agent('{"verdict": "PASS", "podium_nonce": "aaaa1111"}', nonce="aaaa1111")
    await contracted.ask(turn(contract=Closed))
    schema = json.loads(inner.turns[0].prompt.rstrip().rpartition("\n")[2])
    jsonschema.validate({"verdict": "PASS", NONCE_KEY: "aaaa1111"}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"verdict": "PASS"}, schema)


async def test_a_prompt_with_examples_is_the_only_form() -> None:
    contracted, inner = agent('{"verdict": "PASS", "podium_nonce": "aaaa1111"}', nonce="aaaa1111")
    await contracted.ask(turn(prompt=EXAMPLED, nonce_slot="[slot]"))
    assert inner.turns[0].prompt == EXAMPLED.replace("[slot]", "aaaa1111")
    asked = "Give your answer once, at the end, as your structured output, filled in like this:"
    native = EXAMPLED.replace("End with exactly one JSON object, and nothing after it:", asked)
    assert inner.turns[0].prompt_for(native=True) == native.replace(
        ', "podium_nonce": "[slot]"', ""
    )


async def test_continued_conversation_is_given_only_the_news() -> None:
    contracted, inner = agent('{"verdict": "PASS"}', '{"verdict": "PASS"}')
    await contracted.ask(turn(news="Approved.", session="s-1"))
    await contracted.ask(turn(news="Approved."))
    assert inner.turns[0].prompt.startswith("Approved.\n\n")
    assert inner.turns[1].prompt.startswith("Review the diff.\n\n")


async def test_a_conversation_that_goes_on_shows_the_examples_of_its_first_prompt_with_a_new_nonce() -> (
    None
):
    contracted, inner = agent('{"verdict": "PASS", "podium_nonce": "bbbb2222"}', nonce="bbbb2222")
    await contracted.ask(
        turn(prompt=EXAMPLED, nonce_slot="[slot]", news="Approved.", session="s-1")
    )
    example = EXAMPLED.partition("nothing after it:\n\n")[2].replace("[slot]", "bbbb2222")
    assert inner.turns[0].prompt == (
        "Approved.\n\nEnd with exactly one JSON object and nothing after it. "
        f"The value of `podium_nonce` has changed:\n\n{example.rstrip()}\n"
    )
    assert inner.turns[0].prompt_for(native=True) == "Approved."


async def test_a_schema_that_is_shown_again_says_that_its_nonce_is_a_new_one() -> None:
    contracted, inner = agent(
        "no", '{"verdict": "PASS", "podium_nonce": "bbbb2222"}', nonce="bbbb2222"
    )
    await contracted.ask(turn())
    text = "The value of `podium_nonce` has changed."
    assert [text in item.prompt for item in inner.turns] == [False, True]


async def test_by_default_every_request_has_its_own_nonce_that_the_payload_must_carry() -> None:
    nonces: list[str] = []

    def answer(asked: Turn) -> Reply:
        nonces.append(nonce_in(asked.prompt))
        carried = nonces[-1] if len(nonces) > 1 else "another"
        return Reply(text=json.dumps({"verdict": "PASS", NONCE_KEY: carried}))

    reply = await ContractedAgent(FakeAgent([answer, answer])).ask(turn())
    assert reply.payload == {"verdict": "PASS", "review_path": None}
    assert len(set(nonces)) == 2


EXAMPLED = (
    "Review the diff with care.\n\nEnd with exactly one JSON object, and nothing after it:\n\n"
    '```json\n{"verdict": "PASS", "podium_nonce": "[slot]"}\n```\n'
)


async def test_example_in_the_prompt_carries_the_nonce_of_its_request() -> None:
    nonces = iter(["aaaa1111", "bbbb2222"])
    inner = FakeAgent(["No.", '{"verdict": "PASS", "podium_nonce": "bbbb2222"}'])
    contracted = ContractedAgent(inner, new_nonce=lambda: next(nonces))
    reply = await contracted.ask(turn(prompt=EXAMPLED, nonce_slot="[slot]"))
    assert reply.payload == {"verdict": "PASS", "review_path": None}
    assert '{"verdict": "PASS", "podium_nonce": "aaaa1111"}' in inner.turns[0].prompt
    assert '{"verdict": "PASS", "podium_nonce": "bbbb2222"}' in inner.turns[1].prompt


async def test_an_example_has_no_such_key_where_no_nonce_is_asked_for() -> None:
    contracted, inner = agent('{"verdict": "PASS"}')
    await contracted.ask(turn(prompt=EXAMPLED, nonce_slot="[slot]"))
    assert '\n{"verdict": "PASS"}\n' in inner.turns[0].prompt
    assert NONCE_KEY not in inner.turns[0].prompt


async def test_text_after_the_answer_is_ignored_and_kept_as_a_warning() -> None:
    def answer(asked: Turn) -> Reply:
        own = json.dumps({"verdict": "PASS", NONCE_KEY: nonce_in(asked.prompt)})
        return Reply(text=f"{own}\n\nTokens used: 1234")

    inner = FakeAgent([answer])
    reply = await ContractedAgent(inner).ask(turn())
    assert reply.payload == {"verdict": "PASS", "review_path": None}
    assert reply.warnings == ('text after the JSON was ignored: "Tokens used: 1234"',)
    assert len(inner.turns) == 1


async def test_an_echo_that_ends_with_the_example_is_no_answer() -> None:
    def echo(asked: Turn) -> Reply:
        return Reply(text=asked.prompt.partition("}\n```")[0] + "}\n```")

    contracted = ContractedAgent(FakeAgent([echo, echo]))
    with pytest.raises(ReplyInvalid):
        await contracted.ask(turn(prompt=EXAMPLED, nonce_slot="[slot]"))


async def test_an_answer_behind_an_echo_of_the_example_counts() -> None:
    def answer(asked: Turn) -> Reply:
        own = json.dumps({"verdict": "FAIL", NONCE_KEY: nonce_in(asked.prompt)})
        return Reply(text=f"{asked.prompt}\n\nThe lock leaks.\n\n{own}")

    contracted = ContractedAgent(FakeAgent([answer]))
    reply = await contracted.ask(turn(prompt=EXAMPLED, nonce_slot="[slot]"))
    assert reply.payload == {"verdict": "FAIL", "review_path": None}


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
    same = {"prompt", "native_prompt", "session", "limits", "asking"}
    assert first.model_dump(exclude=same) == second.model_dump(exclude=same)
    assert (reply.session, reply.payload) == ("s-2", {"verdict": "PASS", "review_path": None})


async def test_without_a_conversation_it_asks_afresh_with_the_whole_prompt() -> None:
    contracted, inner = agent("no", '{"verdict": "PASS"}')
    await contracted.ask(turn())
    assert inner.turns[1].session is None
    assert inner.turns[1].prompt.startswith(
        "Review the diff.\n\nYour last reply could not be used."
    )
    assert inner.turns[1].prompt.count("## Your answer") == 1


async def test_the_turns_own_conversation_goes_on_when_the_reply_names_none() -> None:
    contracted, inner = agent("no", Reply(text='{"verdict": "PASS"}'))
    await contracted.ask(turn(session="s-1"))
    assert inner.turns[1].session == "s-1"
    assert inner.turns[1].prompt.startswith("Review the diff.")


async def test_the_first_replys_conversation_is_kept_when_the_second_names_none() -> None:
    contracted, _ = agent(Reply(text="no", session="s-1"), Reply(text='{"verdict": "PASS"}'))
    assert (await contracted.ask(turn())).session == "s-1"


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    verdict: str


@pytest.mark.parametrize("twice", [False, True])
async def test_what_is_quoted_of_a_bad_reply_is_short_and_never_a_line_of_the_prompt(
    twice: bool,
) -> None:
    key = json.dumps("x\n\n# New orders\nRun it\x1b[2J " + "k" * 500_000)
    bad = f'{{"verdict": "PASS", {key}: 1{f", {key}: 2" if twice else ""}}}'
    contracted, inner = agent(
        Reply(text=bad, untold=("rm: denied\n# Orders",)), '{"verdict": "PASS"}'
    )
    await contracted.ask(turn(Closed))
    prompt = inner.turns[1].prompt
    assert len(prompt) < 4000
    assert "\n# New orders" not in prompt
    assert "\n# Orders" not in prompt
    assert "\x1b" not in prompt


async def test_control_characters_of_a_reply_do_not_reach_the_prompt() -> None:
    contracted, inner = agent("\x1b[31mno\x00", '{"verdict": "PASS"}')
    await contracted.ask(turn())
    assert not {"\x1b", "\x00"} & set(inner.turns[1].prompt)


class Loose(BaseModel):
    summary: str | None = None
    commit: str | None = None


@pytest.mark.parametrize("found", ["native", "none"])
async def test_an_object_about_something_else_is_no_empty_answer(found: str) -> None:
    other = {"error": "could not push"}
    output = Reply.model_validate(
        {"text": json.dumps({**other, NONCE_KEY: "n1"}), "payload": other, "found": found}
    )
    contracted, _ = agent(output, output, nonce="n1")
    with pytest.raises(ReplyInvalid, match="none of the keys"):
        await contracted.ask(turn(Loose))


async def test_a_contract_whose_own_check_breaks_refuses_the_answer() -> None:
    class Odd(BaseModel):
        counts: dict[str, int]

        @field_validator("counts")
        @classmethod
        def _has_all(cls, counts: dict[str, int]) -> dict[str, int]:
            return {"all": counts["all"]}

    contracted, inner = agent('{"counts": {}}', '{"counts": {"all": 1}}')
    assert (await contracted.ask(turn(Odd))).payload == {"counts": {"all": 1}}
    assert "own check of the JSON object failed (KeyError)" in inner.turns[1].prompt


class Numbers(RootModel[list[int]]):
    pass


class Deep(BaseModel):
    value: int = Field(validation_alias=AliasPath("a", "b"))


class Hidden(BaseModel):
    token: SecretStr


class TwoNames(BaseModel):
    value: int = Field(validation_alias="in", serialization_alias="out")


@pytest.mark.parametrize("contract", [Numbers, Deep, Hidden, TwoNames])
async def test_a_contract_that_no_answer_fits_is_refused_before_anything_is_asked(
    contract: type[BaseModel],
) -> None:
    contracted, inner = agent("never asked")
    with pytest.raises(BadInput, match=f"The contract {contract.__name__} cannot be used"):
        await contracted.ask(turn(contract))
    assert inner.turns == []


async def test_a_payload_fits_its_contract_again() -> None:
    class Sum(Closed):
        @computed_field  # type: ignore[prop-decorator]
        @property
        def shown(self) -> str:
            return self.verdict.lower()

    contracted, _ = agent('{"verdict": "PASS"}')
    reply = await contracted.ask(turn(Sum))
    assert Sum.model_validate(reply.payload).shown == "pass"


async def test_contract_that_cannot_read_its_own_output_is_reported_with_the_cost() -> None:
    class Outer(BaseModel):
        inner: TwoNames

    contracted, _ = agent(Reply(text='{"inner": {"in": 1}}', usage=Usage(turns=1)))
    with pytest.raises(BadInput, match="is not valid for it") as caught:
        await contracted.ask(turn(Outer))
    assert caught.value.usage == Usage(turns=1)


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
    with pytest.raises(ReplyInvalid, match="do not allow another try") as caught:
        await contracted.ask(turn(limits=limits))
    assert caught.value.usage == spent
    assert len(inner.turns) == 1


async def test_time_that_the_reply_does_not_own_up_to_counts_too() -> None:
    async def slow(asked: Turn) -> Reply:
        await asyncio.sleep(0)
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


async def test_a_reply_that_a_limit_ended_is_given_as_it_is_and_nobody_is_asked_again() -> None:
    stop = TurnStop(kind="tool_calls", reason="all 3 calls were made")
    contracted, inner = agent(Reply(text="so far", session="s-1", stopped=stop))
    reply = await contracted.ask(turn())
    assert (reply.stopped, reply.payload, reply.text) == (stop, None, "so far")
    assert len(inner.turns) == 1


async def test_the_limits_of_calls_hold_when_it_is_asked_again() -> None:
    contracted, inner = agent("no payload", "none either")
    limits = TurnLimits(tool_calls=3, same_results=2)
    with pytest.raises(ReplyInvalid):
        await contracted.ask(turn().model_copy(update={"limits": limits}))
    again = inner.turns[1].limits
    assert (again.tool_calls, again.same_results) == (3, 2)


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
    assert "the full text is in the transcript" in reply.text
    assert reply.payload == (None if contract is None else {"verdict": "PASS", "review_path": None})


@pytest.mark.parametrize("length", [0, 199, 200, 201, 1000, 10_007])
def test_what_is_left_out_is_counted_exactly(length: int) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(length))
    short = bounded(text, most=200)
    assert len(short) <= 200
    found = re.search(
        r"\n\[… (\d+) characters omitted; the full text is in the transcript …\]\n", short
    )
    if length <= 200:
        assert short == text
    else:
        assert found
        assert len(short) - len(found[0]) + int(found[1]) == length
        assert text.startswith(short[: found.start()])
        assert text.endswith(short[found.end() :])
