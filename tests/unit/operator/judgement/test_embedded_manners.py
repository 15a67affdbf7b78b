"""Speech in an office: short, polite, with detours. Read against a registry that has nothing to do with roofs."""

from __future__ import annotations

import pytest

from podium.jobs.operator.judgement.embedded.moods import without_courtesy
from podium.jobs.operator.judgement.embedded.tokens import Speller, stem
from podium.jobs.operator.models import Intent
from tests.unit.operator.judgement.dental_clinic import read, tools


@pytest.mark.parametrize(
    ("short", "meant"),
    [("appt", "appointment"), ("appts", "appointments"), ("insp", "inspection"), ("qte", "quote"), ("pat", "pat")],
)  # fmt: skip
def test_an_abbreviation_is_the_thing_it_begins_or_is_the_consonants_of(
    short: str, meant: str
) -> None:
    things = ("appointment", "inspection", "quote", "payment")
    assert Speller((), (), things).written_out(short) == meant


def test_what_could_be_short_for_two_things_is_short_for_none() -> None:
    assert Speller((), (), ("invoice", "inventory")).written_out("inv") == "inv"


@pytest.mark.parametrize(
    ("message_of", "meant"),
    [
        ("cancel V-3", "visit.cancel"),
        ("VS-3 is finished", "visit.complete"),
        ("show bill_0a1b2c3d", "bill.show"),
    ],
)
def test_prefix_of_an_id_shows_its_kind(message_of: str, meant: str) -> None:
    assert tools(message_of) == [meant]


@pytest.mark.parametrize(
    "message_of",
    [
        "bill B-9 is a mess",
        "visit V-3 needs attention",
        "work on bill B-9",
        "the bill",
        "do the bill",
        "patient P-12 again",
        "keep visit V-3 as it is",
        "back in ten minutes",
        "I'm at visit V-3",
        "visit V-3 is giving me grief",
        "bill B-9 looks odd",
        "add me to the roster on Friday",
    ],
)
def test_remark_on_a_thing_is_no_request(message_of: str) -> None:
    assert read(message_of).intent is not Intent.EXECUTE


@pytest.mark.parametrize(
    "message_of",
    [
        "Thanks for all your help! One last thing, can you cancel visit V-3?",
        "Hi there, hope you're well. Could someone please cancel visit V-3?",
        "I would be very grateful if you'd cancel visit V-3, thank you so much",
        "Apologies for the short notice, could you cancel visit V-3",
        "Could visit V-3 be cancelled please?",
        "be a champ and cancel visit V-3. Kind regards, Tim",
        "could we possibly get visit V-3 cancelled?",
        "any chance you could cancel visit V-3?",
    ],
)
def test_courtesy_around_a_request_is_no_part_of_it(message_of: str) -> None:
    reading = read(message_of)
    assert [tool_intent.tool for tool_intent in reading.calls] == ["visit.cancel"]
    assert reading.calls[0].arguments == {"visit_id": "V-3"}


def test_courtesy_is_removed_without_moving_a_character() -> None:
    message_of = "Good morning team, could someone bill it? Cheers"
    plain = without_courtesy(message_of, lambda word: word == stem("bill"))
    assert len(plain) == len(message_of)
    assert plain.split() == ["please", "bill", "it?"]


@pytest.mark.parametrize(
    "message_of", ["Bill nine is wrong, please void it", "Stop, please void it", "Cancel that, please void it"]
)  # fmt: skip
def test_words_before_a_request_stay_when_they_may_matter(message_of: str) -> None:
    assert without_courtesy(message_of, lambda word: word == "bill") == message_of


@pytest.mark.parametrize(
    "message_of", ["no texting 0400 111 222 please", "please refrain from cancelling visit V-3", "wait with cancelling visit V-3"]
)  # fmt: skip
def test_an_act_that_is_to_be_left_is_not_done(message_of: str) -> None:
    assert read(message_of).intent is not Intent.EXECUTE


def test_every_id_has_the_values_next_to_it() -> None:
    behind = read("book patient P-1 for 3 December and patient P-2 for 4 December").calls
    assert [tool_intent.arguments for tool_intent in behind] == [
        {"patient_id": "P-1", "date": "2026-12-03"},
        {"patient_id": "P-2", "date": "2026-12-04"},
    ]
    before = read("charge $50 for visit V-1 and $80 for visit V-2").calls
    assert [tool_intent.arguments for tool_intent in before] == [
        {"visit_id": "V-1", "amount": 50},
        {"visit_id": "V-2", "amount": 80},
    ]


def test_id_that_is_not_in_the_list_is_no_second_request() -> None:
    assert tools("cancel visit V-3, her card is X-9") in ([], ["visit.cancel"])


def test_leading_reason_is_no_request() -> None:
    assert tools("because she moved away, cancel visit V-3") == ["visit.cancel"]


def test_what_is_undone_in_the_same_breath_was_only_reported() -> None:
    assert "visit.complete" not in tools("visit V-3 is finished, call it off")


def test_get_it_done_asks_for_the_deed() -> None:
    assert tools("get visit V-3 cancelled") == ["visit.cancel"]


def test_the_name_of_many_things_asks_to_see_them() -> None:
    assert tools("visits missed") == ["visit.list"]


def test_second_characters_of_short_words_stay() -> None:
    assert stem("called") == stem("call")
    assert stem("billing") == stem("bill")
    assert stem("cancelled") == stem("cancel")
    assert stem("takings") != stem("take")
