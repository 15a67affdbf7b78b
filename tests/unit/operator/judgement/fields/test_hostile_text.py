"""Whatever is written, reading it ends, raises nothing and keeps its own order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from podium.core.packs import PackTool
from podium.jobs.operator.judgement.fields import entities
from podium.jobs.operator.models import Message
from tests.linear_cost import assert_linear_cost
from tests.unit.operator.judgement.fields.bike_workshop import (
    EXTRACTOR,
    NOW,
    PACK,
    VOCABULARY,
    read,
)

LONG = 3_000
TOOLS = PACK.registry.tools

FRAGMENTS = st.sampled_from(
    ["0400 123 456", "+61", "$1,250", "1.2k", "two hundred", "tomorrow", "3/4", "31 February", "at 3", "half past", "in Clayton", "glen", "12 Smith St", "unit 3/", "Sarah", "O'", "van der", "for", "to", "saying", "that", ":", ",", "'", '"', "repair", "R-12", "#", "rider_", "because", "a@b.co", "@", "no.", "İ", "ß", "\u202e", "\x00", "\ud800", "🚲", "\n", "٣", "ﬁ", "e\u0301", "½", "²"]
)  # fmt: skip
OUTPUT = st.one_of(st.text(), st.lists(FRAGMENTS).map(" ".join), st.lists(FRAGMENTS).map("".join))


@given(OUTPUT)
def test_finds_lie_in_the_text_in_order_and_never_overlap(text: str) -> None:
    end = 0
    for entity in entities(text, NOW, VOCABULARY):
        assert end <= entity.start < entity.end <= len(text)
        assert text[entity.start : entity.end] == entity.text
        end = entity.end


@given(OUTPUT, st.sampled_from(TOOLS))
def test_what_is_read_is_always_what_the_schema_takes(text: str, tool: PackTool) -> None:
    arguments = EXTRACTOR.arguments(text, tool, Message(text=text, now=NOW))
    for name, value in arguments.items():
        assert Draft202012Validator(tool.properties[name]).is_valid(value)


@given(OUTPUT)
def test_the_same_words_always_give_the_same_finds(text: str) -> None:
    assert entities(text, NOW, VOCABULARY) == entities(text, NOW, VOCABULARY)


@pytest.mark.sample(18)
@pytest.mark.parametrize(
    "piece",
    ["1", "0 ", "1/", "@", "a@", "a.", "a", "A ", "Ab ", "$1,", '"', "' ", "'a", "repair ", "repair 1 ", "in ", "in Xyzzy ", "two ", "hundred and ", "1 a b c d ", "unit 1 ", "+1 ", "+61 ", "04 ", "a-", "a1-", "a_", "#1", ":", "a, ", " dot at ", "next mon ", "👩‍👩‍👧 ", "\u202e\u200f0400", "to ", "for ", "saying ", "1 to ", "at 1 ", "in zzzzzzzzzzzz ", "0a1b2c3d-", "\n", "e\u0301", "in claytn ", "because ", "Sarah 0400123456 ", "a at b dot c ", "two-", "1,", "1.", "aud ", "lot 1 ", "a-1", "half past "],
)  # fmt: skip
def test_no_pattern_runs_away_on_a_long_text(piece: str) -> None:
    def read(size: int) -> None:
        text = (piece * (size // len(piece) + 1))[:size]
        for tool in TOOLS:
            if tool.name in {"riders.add", "repair.add_part", "desk.errand", "desk.mail"}:
                EXTRACTOR.arguments(text, tool, Message(text=text, now=NOW))

    assert_linear_cost(read, LONG)


def test_hidden_characters_neither_hide_a_field_nor_reach_a_value() -> None:
    arguments = read(
        "riders.add",
        "new rider:\u200f Sarah\u202e Jones \x07 0400\u200b123 456 in\u00a0Clayton\x00",
    )
    assert arguments == {"name": "Sarah Jones", "phone": "+61400123456", "suburb": "Clayton"}


def test_a_text_is_kept_as_written_but_for_what_nobody_sees() -> None:
    arguments = read("desk.sms", "text 0400 123 456: Grüße, naïve 👩‍🔧 —\u202e don’t\x07 worry!")
    assert arguments["text"] == "Grüße, naïve 👩‍🔧 — don’t worry!"
