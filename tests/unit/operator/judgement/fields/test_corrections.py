"""Corrections within one sentence, and other turns of speech, with a registry of bicycles."""

from __future__ import annotations

import pytest

from tests.unit.operator.judgement.fields.bike_workshop import found, read


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("date", "on Monday — no sorry, Tuesday — at 9", ["2026-11-17"]),
        ("money", "he paid $300, no wait, $350 cash", [350]),
        ("phone", "0400 111 222, I mean 0400 111 333", ["+61400111333"]),
        ("date", "on Friday, or rather on Saturday", ["2026-11-21"]),
        ("date", "on Monday and on Tuesday", ["2026-11-23", "2026-11-17"]),
        ("money", "$300, sorry for the delay, and $350", [300, 350]),
    ],
)
def test_the_last_word_counts(kind: str, text: str, values: list[object]) -> None:
    assert found(kind, text) == values


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Jarrod Pike wants it looked at. 0411 223 344.", ["Jarrod Pike"]),
        ("give it to Ahmed Said", ["Ahmed Said"]),
        ("I want Lachlan looking after it", ["Lachlan"]),
        ("wants Colorbond", []),
    ],
)
def test_a_name_ends_where_the_person_does(text: str, names: list[str]) -> None:
    assert found("name", text) == names


@pytest.mark.parametrize(
    ("text", "value"),
    [("8 in the morning", "08:00"), ("3 in the arvo", "15:00"), ("ten at night", "22:00")],
)
def test_a_part_of_the_day_makes_an_hour_of_a_number(text: str, value: str) -> None:
    assert found("time", text) == [value]


def test_a_short_weekday_is_a_day_before_a_time() -> None:
    assert found("date", "rider K-7 fri 9am") == ["2026-11-20"]
    assert found("date", "sat on the fence") == []


def test_what_is_not_meant_is_not_chosen() -> None:
    assert read("repair.list", "not the waiting ones, those that are ready")["stage"] == "ready"


def test_id_has_the_kind_its_prefix_belongs_to() -> None:
    assert read("repair.pickup", "rider RP-12 tomorrow at 3pm").get("repair_id") == "RP-12"
