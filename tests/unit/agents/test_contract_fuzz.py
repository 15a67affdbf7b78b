"""Whatever stands around a payload: it is found, or refused, and never mistaken for another."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from podium.agents.contract import NotAnAnswer, read_block, read_payload
from podium.agents.contract.json_objects import find_objects
from podium.agents.contract.repair import says_the_same
from podium.testing.replies import CONTRACTS

VERDICT, PLAN, NOTE = CONTRACTS["verdict"], CONTRACTS["plan"], CONTRACTS["note"]

pieces = st.sampled_from(
    (
        '{', '}', '"', "'", "\\", "[", "]", ":", ",", "\n", " ", "```", "```json\n", "<think>", "</think>",
        '{"verdict"', '"APPROVE"', "verdict", "// x", "/*", "…", "...", "True", "null", "\x1b[0m", "\x1b]", "\x00",
        '{"verdict": "REJECT"}', "{}", '{"a": 1}', "> ", "- ", "=", "(", ")", "é", "\ud800", "\ufeff", "“", "”",
    )
)  # fmt: skip
damaged = st.lists(pieces | st.text(max_size=6), max_size=14).map("".join)
prose = st.text(
    st.characters(exclude_characters="{}[]()<>\"'`~=:,\\", exclude_categories=["Cs", "Cc"]),
    max_size=60,
)
feedback = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=80)
verdicts = st.builds(
    lambda word, text: {"verdict": word, "feedback": text},
    st.sampled_from(["APPROVE", "REJECT", "ESCALATE"]),
    feedback | damaged.filter(lambda text: text.isprintable()),
)
written = st.builds(
    lambda value, indent, ascii_: json.dumps(value, indent=indent, ensure_ascii=ascii_),
    verdicts,
    st.sampled_from([None, 1, 2, 4]),
    st.booleans(),
)


def read(text: str, nonce: str | None = None) -> dict[str, object] | None:
    """The payload, or None. Anything else that is raised fails the test."""
    try:
        return read_payload(text, VERDICT, nonce=nonce).payload.model_dump()
    except NotAnAnswer:
        return None


@given(damaged)
def test_nothing_but_a_refusal_comes_out_of_damaged_text(text: str) -> None:
    for model in CONTRACTS.values():
        with suppress(NotAnAnswer):
            assert isinstance(read_payload(text, model).payload, model)
    for tag in ("POLI:MSG", "<PLAN>"):
        with suppress(NotAnAnswer):
            assert isinstance(read_block(text, tag).body, str)


@given(prose, written, prose)
def test_a_payload_between_lines_of_prose_is_found_as_it_was_written(
    before: str, payload: str, after: str
) -> None:
    assert read(f"{before}\n\n{payload}\n\n{after}") == json.loads(payload)


@given(damaged, written, damaged)
def test_what_is_accepted_amid_damaged_text_occurs_in_it(
    before: str, payload: str, after: str
) -> None:
    found = read(f"{before}\n{payload}\n{after}")
    planted = [json.loads(payload), {"verdict": "REJECT", "feedback": ""}]
    assert found is None or found in planted or "verdict" in before + after


@given(damaged, verdicts, damaged)
def test_with_a_nonce_only_the_object_that_carries_it_is_ever_accepted(
    before: str, value: dict[str, str], after: str
) -> None:
    payload = json.dumps({**value, "podium_nonce": "n1"})
    assert read(f"{before}\n{payload}\n{after}", nonce="n1") in (None, value)


@given(prose, written, st.integers(min_value=0, max_value=400))
def test_a_reply_that_is_cut_anywhere_is_refused_or_still_whole(
    before: str, payload: str, cut: int
) -> None:
    text = f"{before}\n{payload}"
    kept = text[: max(0, len(text) - cut)]
    found = read(kept)
    assert found is None or (found == json.loads(payload) and payload in kept)


@given(st.recursive(st.none() | st.booleans() | st.integers() | feedback, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["title", "tags", "x"]), inner, max_size=3), max_leaves=8), st.integers(1, 60))  # fmt: skip
def test_no_inner_object_of_a_cut_one_is_taken_for_the_answer(value: object, cut: int) -> None:
    whole = json.dumps({"outer": value, "title": "t"}, indent=1)
    assume(cut < len(whole))
    try:
        found = read_payload(whole[:-cut], NOTE)
    except NotAnAnswer:
        return
    raise AssertionError(f"took {found.payload!r} from {whole[:-cut]!r}")


@given(verdicts)
def test_a_python_dict_is_mended_into_the_same_value_or_refused(value: dict[str, str]) -> None:
    assert read(repr(value)) in (None, value)


@given(written, st.data())
def test_one_lost_character_never_changes_a_mended_value_unseen(
    payload: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(payload) - 1))
    text = payload[:at] + payload[at + 1 :]
    try:
        found = read_payload(text, VERDICT)
    except NotAnAnswer:
        return
    if found.how == "repaired":
        value = {key: item for key, item in found.payload if key in found.payload.model_fields_set}
        assert says_the_same(text[text.index("{") :].rstrip(), value) or text.count("}") > 1


@given(damaged)
def test_outermost_objects_do_not_overlap_and_begin_and_end_with_braces(text: str) -> None:
    spans = find_objects(text).spans
    assert all(text[span.start] == "{" and text[span.end - 1] == "}" for span in spans)
    assert all(later.start >= earlier.end for later, earlier in pairwise(spans))


bodies = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=80).filter(
    lambda text: "POLI" not in text
)


@given(prose, st.lists(bodies, min_size=1, max_size=4), prose, st.sampled_from(["", "  ", "\t"]))
def test_a_block_comes_out_as_it_went_in_whatever_its_indent(
    before: str, lines: list[str], after: str, indent: str
) -> None:
    body = "\n".join(lines)
    tagged = ['[[POLI:MSG {"id": "n1"}]]', *lines, "[[/POLI:MSG]]"]
    shown = "\n".join(indent + line for line in tagged)
    block = read_block(f"{before}\n{shown}\n{after}", "POLI:MSG", nonce="n1")
    assert (block.header, block.body) == ({"id": "n1"}, body)


@given(st.lists(bodies, min_size=1, max_size=4), st.integers(1, 80))
def test_a_block_that_is_cut_is_refused(lines: list[str], cut: int) -> None:
    text = "\n".join(['[[POLI:MSG {"id": "n1"}]]', *lines, "[[/POLI:MSG]]"])
    try:
        block = read_block(text[: max(0, len(text) - cut)], "POLI:MSG")
    except NotAnAnswer:
        return
    raise AssertionError(block)
