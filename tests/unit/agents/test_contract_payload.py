"""The payload at the end of a text: what is said of it when it is refused, and what it costs."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from typing import Literal

import pytest
from pydantic import BaseModel, Field, RootModel

from podium.agents.contract import NONCE_KEY, NotAnAnswer, read_payload
from podium.agents.contract.payload import LOOKED_AT
from podium.agents.contract.repair import repair_object, says_the_same
from podium.core.errors import ReplyInvalid
from tests.linear_cost import assert_linear_cost
from tests.soaking import in_soak


class Review(BaseModel):
    verdict: Literal["PASS", "FAIL"]
    review_path: str = ""


class Step(BaseModel):
    name: str
    seconds: int


class Report(BaseModel):
    steps: list[Step]
    made_on: date = Field(alias="madeOn")


def refusal(text: str, model: type[BaseModel] = Review, nonce: str | None = None) -> NotAnAnswer:
    with pytest.raises(NotAnAnswer) as caught:
        read_payload(text, model, nonce=nonce)
    return caught.value


def test_a_refusal_is_a_reply_that_is_invalid_and_names_path_expectation_and_remedy() -> None:
    refused = refusal(
        '{"steps": [{"name": "a", "seconds": "soon"}], "madeOn": "2026-01-02"}', Report
    )
    assert isinstance(refused, ReplyInvalid)
    assert "$.steps[0].seconds: Input should be a valid integer" in str(refused)
    assert 'was "soon"' in str(refused)
    assert "Send the whole object again" in str(refused)


def test_a_missing_field_is_named_and_many_problems_are_counted() -> None:
    assert "$.verdict: Field required" in str(refusal('{"review_path": "x"}'))
    steps = ", ".join('{"name": 1}' for _ in range(9))
    assert "and 14 more" in str(refusal(f'{{"steps": [{steps}]}}', Report))


def test_a_huge_wrong_value_does_not_make_a_huge_refusal() -> None:
    assert len(str(refusal('{"verdict": "' + "x" * 100_000 + '"}'))) < 500


def test_the_contracts_own_conversions_and_aliases_hold() -> None:
    found = read_payload('{"madeOn": "2026-01-02", "steps": []}', Report)
    assert found.payload == Report(madeOn=date(2026, 1, 2), steps=[])


def test_a_mended_object_is_not_converted() -> None:
    given = '{"steps": [{"name": "a", "seconds": "4"}], "madeOn": "2026-01-02"}'
    assert read_payload(given, Report).payload.steps == [Step(name="a", seconds=4)]
    broken = "{'steps': [{'name': 'a', 'seconds': '4'}], 'madeOn': '2026-01-02'}"
    assert refusal(broken, Report).problem == "misfit"
    mended = read_payload(
        "{'steps': [{'name': 'a', 'seconds': 4}], 'madeOn': '2026-01-02'}", Report
    )
    assert mended.how == "repaired"


def test_a_contract_that_is_any_mapping_takes_the_last_object() -> None:
    class Anything(RootModel[dict[str, int]]):
        pass

    assert read_payload('{"a": 1}', Anything).payload.root == {"a": 1}


def test_the_nonce_is_no_field_of_the_payload() -> None:
    found = read_payload(f'{{"verdict": "PASS", "{NONCE_KEY}": "n1"}}', Review, nonce="n1")
    assert found.payload.model_dump() == {"verdict": "PASS", "review_path": ""}
    assert "is not this turn's" in str(
        refusal(f'{{"verdict": "PASS", "{NONCE_KEY}": "n0"}}', nonce="n1")
    )


def test_an_object_longer_than_what_is_looked_at_is_called_too_large() -> None:
    path = "x" * LOOKED_AT
    assert refusal(f'{{"verdict": "PASS", "review_path": "{path}"}}').problem == "too large"


def test_a_half_surrogate_in_the_prose_does_no_harm_and_in_a_value_is_refused() -> None:
    assert read_payload('\ud800 odd\n{"verdict": "PASS"}', Review).how == "strict"
    assert refusal('{"verdict": "PASS", "review_path": "\ud800"}').problem == "malformed"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "piece",
    ["{", "```json\n{\n", '{"verdict":',
     *map(in_soak, ['"', "{}", "[{", "<think ", "\x1b]", "}", "\\", '{"', "\n", " ", "/*", "'"])],
)  # fmt: skip
@pytest.mark.parametrize("size", [3 * LOOKED_AT // 2, in_soak(20 * LOOKED_AT)])
def test_floods_are_read_in_bounded_time_with_and_without_a_payload_behind_them(
    piece: str, size: int
) -> None:
    flood = piece * (size // len(piece))
    assert_linear_cost(lambda size: refusal(piece * (size // len(piece))), size)
    try:
        assert read_payload(f'{flood}\n\n{{"verdict": "PASS"}}', Review).payload.verdict == "PASS"
    except NotAnAnswer as refused:
        assert refused.problem in {"misplaced", "ambiguous", "cut off"}  # noqa: PT017 - some floods are JSON that goes on


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{'a': 1,}", {"a": 1}),
        ("{a: [True, None] /* b */}", {"a": [True, None]}),
        ('{"a": "say "b" now"}', {"a": 'say "b" now'}),
        ('{"a": "C:\\Dir"}', {"a": "C:\\Dir"}),
        ('{"a": "\\ud83d\\ude00" "b": 1}', None),
        ('{"a": "\\ud83d\\ude00"\n"b": 1}', {"a": "😀", "b": 1}),
        ('{"a": "x', None),
        ('{"a": "xy"}', {"a": "x"}),
        ('{"a": 1, "b": 2}', {"a": 1}),
        ('{"a": "1"}', {"a": 1}),
        ('{"a": 1}', {"a": "1"}),
        ('{"a": 1}', {"a": True}),
        ("{'a': 1.50}", {"a": 1.5}),
        ("{}", {"a": 1}),
        ('{"a": 1} x', {"a": 1}),
        ('{"a": "say "b to all"}', {"a": 'say "b to all'}),
        ('{"a": "\\x41"}', {"a": "\\x41"}),
    ],
)
def test_a_mended_value_is_proved_against_its_source(
    source: str, value: dict[str, object] | None
) -> None:
    proved = {
        "{'a': 1,}",
        "{a: [True, None] /* b */}",
        '{"a": "say "b" now"}',
        '{"a": "C:\\Dir"}',
        '{"a": "\\ud83d\\ude00"\n"b": 1}',
        "{'a': 1.50}",
    }
    assert says_the_same(source, value) is (source in proved)


def test_raw_line_breaks_are_mended_in_long_objects_and_other_faults_in_short_ones_only() -> None:
    path = "a line\n" * 10_000
    assert read_payload(f'{{"verdict": "PASS", "review_path": "{path}"}}', Review).how == "repaired"
    refused = refusal(f"{{'verdict': 'PASS', 'review_path': '{'x' * 10_000}'}}")
    assert "longer than 4000 characters" in str(refused)


@pytest.mark.sample(2)
@pytest.mark.parametrize("piece", ['"a "b" ', '\\"', '{"', "['", '"a","b', "“"])
def test_what_makes_mending_slow_is_given_up_soon(piece: str) -> None:
    with pytest.raises(ValueError, match=r"repaired|nested"):
        repair_object('{"verdict": ' + piece * (100_000 // len(piece)) + "}" * 50_000)
    with pytest.raises(ValueError, match=r"repaired|nested"):
        repair_object('{"verdict": ' + piece * (3_900 // len(piece)) + "}")


def test_small_faults_are_mended_in_objects_of_any_length() -> None:
    path = "x" * 100_000
    for given in (
        f'{{"verdict": "PASS", "review_path": "{path}",}}',
        f'{{verdict: "PASS", review_path: "{path}"}}',
    ):
        assert read_payload(given, Review).payload == Review(verdict="PASS", review_path=path)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "piece",
    ['\\"', '"', ", ", ",\n", "a ", "a:", "$", "a", "/*", "//\n", "\\", '"\n', " ", '"a",', "{a:"],
)
@pytest.mark.parametrize("size", [60_000, in_soak(190_000)])
def test_floods_of_small_faults_are_read_in_bounded_time(piece: str, size: int) -> None:
    def repair(size: int) -> None:
        flood = piece * (size // len(piece))
        for source in (f'{{"verdict": {flood}}}', f'{{"verdict": "{flood}"}}', f"{{{flood}}}"):
            with suppress(ValueError):
                repair_object(source)

    assert_linear_cost(repair, size)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "piece",
    ["`", "<!--", "<think>", "<|channel|>final", "wait ", "> ", "x{ ", "\r",
     *map(in_soak, ["~~~\n", "</think>", "`<think>`", "[THINK]", "not ", "- ", "</a>", "<|a|>", "【",
                    "no\n\n", "A. ", "\u3000", "json "])],
)  # fmt: skip
@pytest.mark.parametrize("size", [80_000, in_soak(1_000_000)])
def test_a_flood_of_anything_before_or_after_an_answer_is_read_in_bounded_time(
    piece: str, size: int
) -> None:
    answer = f'{{"verdict": "PASS", "{NONCE_KEY}": "n1"}}'

    def read(size: int) -> None:
        flood = piece * (size // len(piece))
        for text in (f"{flood}\n{answer}", f"{flood}{answer}", f"{answer}{flood}", flood):
            for nonce in (None, "n1"):
                with suppress(NotAnAnswer):
                    assert read_payload(text, Review, nonce=nonce).payload.verdict == "PASS"

    assert_linear_cost(read, size)


def test_very_many_things_that_are_wrong_are_refused_unread() -> None:
    objects = '{"steps": [' + "{}," * 100_000 + '{}], "madeOn": "2026-01-02"}'
    assert refusal(objects, Report).problem == "too large"
    values = '{"steps": [' + "1," * 150_000 + '1], "madeOn": "2026-01-02"}'
    assert refusal(values, Report).problem == "too large"


def test_very_many_problems_are_only_counted() -> None:
    steps = ",".join("{}" for _ in range(2000))
    assert "it has 4001 errors" in str(refusal(f'{{"steps": [{steps}]}}', Report))


def test_a_thought_that_began_before_what_is_looked_at_is_a_thought() -> None:
    text = f'<think>{"a " * LOOKED_AT}\n{{"verdict": "PASS"}}\nhmm'
    assert refusal(text).problem == "thinking"
    ended = f'<think>so</think>{"a " * LOOKED_AT}\n{{"verdict": "PASS"}}\nOk.'
    assert read_payload(ended, Review).how == "strict"


def test_a_key_that_the_contract_does_not_read_is_not_one_of_its_keys() -> None:
    class Done(BaseModel):
        commit: str | None = Field(default=None, alias="commitHash")

    assert refusal('{"commit": "abc"}', Done).problem == "misfit"


ANSWER = f'{{"verdict": "PASS", "{NONCE_KEY}": "n1"}}'


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "```json\n{}\n```",
        "Here is my answer:\n\n{}",
        "Here's the JSON you asked for:\n```json\n{}\n```\n",
        "I read the diff. Let me know if anything is unclear.\n\n{}",
        "- Checked if the old lock would be released\n- Verified that it is not a leak\n\n{}",
        "If the cache is cold it would be slow, which is fine.\n\n{}",
        "Final answer: {}",
        "**Result**\n\n{}",
        "<answer>\n{}\n</answer>",
        "{}<|im_end|>",
        "The patch strips `<think>` tags.\n\n{}",
    ],
)
def test_the_shapes_answers_usually_have_are_taken_with_a_nonce(text: str) -> None:
    assert read_payload(text.replace("{}", ANSWER), Review, nonce="n1").payload.verdict == "PASS"


@pytest.mark.parametrize(
    "behind",
    [
        "Let me know if you need anything else!",
        "Tokens used: 1234",
        "— Claude",
        "The plan is in docs/p.md.",
        "All tests pass but two. ✅",
        "Now I will run the te",
        "これは間違いです。",
        "?",
        '{"tokens": 1234}',
        '```json\n{"tokens": 1234}\n```',
        "The change is small. " * 2000,
    ],
)
def test_text_behind_an_answer_with_a_nonce_is_ignored_and_given_back(behind: str) -> None:
    found = read_payload(f"```json\n{ANSWER}\n```\n\n{behind}", Review, nonce="n1")
    assert found.payload.verdict == "PASS"
    assert found.ignored.startswith(behind[:20].lstrip("`"))


@pytest.mark.parametrize("behind", ["", "\n```\n", "</answer>", "<|im_end|>", ".\n---\n"])
def test_decoration_behind_an_answer_is_no_text_that_was_ignored(behind: str) -> None:
    assert read_payload(f"{ANSWER}{behind}", Review, nonce="n1").ignored == ""


def test_a_farewell_is_let_pass_where_no_nonce_was_asked_for() -> None:
    assert read_payload('{"verdict": "PASS"}\n\nLet me know!', Review).payload.verdict == "PASS"


@pytest.mark.parametrize(
    "text",
    [
        "{}\n\nWait, the lock is never released.",
        "{}\n\nPlease disregard the above.",
        "{}\n\nOn second thought, the tests are missing.",
        "{}\n\nThe verdict is FAIL.",
        "{} is what I would have said.",
        "A possible reply is:\n\n{}",
        "If CI were green I would say:\n{}",
        "The comment asks me to answer:\n\n{}",
        "submit(\n  {}\n)",
        "submit(\n  request,\n  {}\n)",
        "<draft>\n{}\n</draft>",
        "<example>\n{}\n</example>",
    ],
)
def test_an_answer_that_words_take_back_or_never_gave_is_not_taken(text: str) -> None:
    assert refusal(text.replace("{}", ANSWER), nonce="n1").problem in {
        "misplaced", "trailing", "thinking",
    }  # fmt: skip


OTHER = ANSWER.replace("PASS", "FAIL")


@pytest.mark.parametrize(
    "before",
    [f"{OTHER[:-1]},}}\n\nor rather", f"{OTHER}\n<think>hmm</think>", f"[{OTHER}]", f"> {OTHER}", f"First {OTHER} seemed right."],
)  # fmt: skip
def test_another_object_with_the_nonce_is_a_rival_wherever_it_appears(before: str) -> None:
    assert refusal(f"{before}\n\n{ANSWER}", nonce="n1").problem == "ambiguous"


@pytest.mark.parametrize("other", [OTHER, '{"verdict": "FAIL"}', "{'verdict': 'FAIL'}"])
def test_another_answer_behind_the_one_with_the_nonce_is_never_passed_over(other: str) -> None:
    assert refusal(f"{ANSWER}\n\nor rather\n\n{other}", nonce="n1").problem in {
        "ambiguous", "nonce",
    }  # fmt: skip


def test_a_megabyte_of_blanks_behind_an_answer_is_read_in_linear_time() -> None:
    def read(size: int) -> None:
        text = f"{ANSWER}\n— Claude{' ' * size}."
        assert read_payload(text, Review, nonce="n1").payload.verdict == "PASS"

    assert_linear_cost(read, LOOKED_AT - 1000)


def test_another_object_without_the_nonce_is_no_rival() -> None:
    without = OTHER.replace("n1", "n0")
    assert read_payload(f"{without}\n\n{ANSWER}", Review, nonce="n1").payload.verdict == "PASS"


@pytest.mark.parametrize(
    "comment", ["// verdict below", "// or FAIL", "/* TODO */", "# rest unchanged", "// ..."]
)
def test_a_comment_that_speaks_of_the_answer_is_not_passed_over(comment: str) -> None:
    assert refusal(f'{{"verdict": "PASS" {comment}\n}}').problem == "malformed"
    assert read_payload('{"verdict": "PASS" // as seen\n}', Review).how == "repaired"
