"""Words, typing errors and moods, each by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.jobs.operator.judgement.embedded.clauses import clauses_of
from podium.jobs.operator.judgement.embedded.moods import mood_of
from podium.jobs.operator.judgement.embedded.tokens import (
    Speller,
    agreement,
    clean,
    distance,
    kinds_of,
    stem,
    tokenize,
)
from podium.jobs.operator.judgement.embedded.tool_index import build
from tests.unit.operator.judgement.dental_clinic import PACK

INDEX = build(PACK.registry)


@pytest.mark.parametrize(
    "family",
    [
        "cancel cancels cancelled canceled cancelling canceling",
        "schedule schedules scheduled scheduling",
        "finalize finalise finalized finalising finalization",
        "inspect inspects inspection inspections",
        "note notes noted noting",
        "query queries",
        "box boxes",
        "send sends sent sending",
        "pay pays paid payment payments",
        "move moves moved moving",
    ],
)
def test_forms_of_one_word_have_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(
    "pair", ["note not", "quote quite", "bill ball", "lead led", "status state"]
)
def test_different_words_have_different_stems(pair: str) -> None:
    first, second = pair.split()
    assert stem(first) != stem(second)


def test_what_cannot_be_seen_is_taken_out_and_signs_are_made_one() -> None:
    assert clean("vo\u200bid\u202e “bill” ｘ\x00\x07 don’t") == 'void "bill" x don\'t'
    assert clean("one\r\ntwo\tthree\u00a0four") == "one\n\ntwo three four"


def test_words_keep_their_places_and_references_stay_whole() -> None:
    text = "E-mail Bob's to-do list for INV-9, lead_7f3a and check-ups"
    words = tokenize(text)
    assert [word.text for word in words][:4] == ["email", "bob", "todo", "list"]
    assert {"inv-9", "lead_7f3a", "check", "ups"} <= {word.text for word in words}
    assert [text[word.start : word.end] for word in words][6] == "lead_7f3a"


@given(st.text(max_size=300))
def test_every_word_lies_inside_the_text(text: str) -> None:
    text = clean(text)
    for word in tokenize(text):
        assert 0 <= word.start < word.end <= len(text)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("appiontment", "appointment"),
        ("shedule", "schedule"),
        ("nivoice", "invoice"),
        ("taks", "task"),
        ("vist", "visit"),
    ],
)
def test_an_error_in_typing_is_mended(typed: str, meant: str) -> None:
    speller = Speller(["appointment", "schedule", "invoice", "take", "visit"], likely=["task"])
    assert speller.correct(typed)[0] == meant


@pytest.mark.parametrize("word", ["vis", "x12", "zzzz", "visitor", "appliance", "saying"])
def test_a_word_that_is_short_or_far_from_all_others_stays_as_it_is(word: str) -> None:
    assert Speller(["visit", "appointment", "assign"]).correct(word) == (word, 0)


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_the_distance_is_the_same_in_both_directions_and_stops_at_the_limit(
    one: str, other: str
) -> None:
    assert distance(one, other, 2) == distance(other, one, 2) <= 3
    assert (distance(one, other, 2) == 0) == (one == other)


def test_reading_and_changing_are_contraries_and_undoing_is_the_contrary_of_doing() -> None:
    show, void, restore, create = (
        kinds_of(stem(word)) for word in ("show", "void", "restore", "create")
    )
    assert agreement(show, void) == agreement(void, show) == -1
    assert agreement(restore, void) == agreement(create, void) == -1
    assert agreement(void, kinds_of(stem("cancel"))) == 1
    assert agreement(void, kinds_of("frobnicate")) == 0
    assert kinds_of(stem("undelete")) == {"restore"}


@pytest.mark.parametrize(
    ("message_of", "mood"),
    [
        ("cancel visit", ""),
        ("please can you cancel visit", ""),
        ("dont cancel visit", "banned"),
        ("cancel visit not bill", "limited"),
        ("how do i cancel visit", "how_to"),
        ("please explain how to cancel", "how_to"),
        ("which visit is open", "question"),
        ("cancel visit if she calls", "supposed"),
        ("ask him if he comes", ""),
        ("she told me to cancel visit", "reported"),
        ("she said yes to visit", ""),
    ],
)
def test_a_clause_has_the_mood_its_words_give_it(message_of: str, mood: str) -> None:
    found = mood_of(message_of.split(), asked=False, verbs=INDEX.openers)
    flags = ("banned", "how_to", "question", "supposed", "reported", "limited")
    assert next((flag for flag in flags if getattr(found, flag)), "") == mood


@pytest.mark.parametrize(
    ("message_of", "parts"),
    [
        ("cancel visit one and void bill two", ["cancel visit one", "and void bill two"]),
        ("cancel visit one; then void bill two.", ["cancel visit one", "then void bill two."]),
        ("for visit one, cancel please", ["for visit one, cancel please"]),
        ("show visits and bills", ["show visits", "and bills"]),
        ("call Mr. Smith and Co. today", ["call Mr. Smith and Co. today"]),
        ("charge $5.50 to visit one", ["charge $5.50 to visit one"]),
        ("he says:\nvoid bill two", ["he says:\nvoid bill two"]),
    ],
)
def test_a_message_is_cut_where_the_next_command_begins(message_of: str, parts: list[str]) -> None:
    found = clauses_of(message_of, tokenize(message_of), INDEX)
    assert [message_of[clause.start : clause.end] for clause in found] == parts
