"""Ids: by shape, and by the word for the thing."""

from __future__ import annotations

import pytest

from tests.unit.operator.judgement.fields.bike_workshop import EXTRACTOR, NOW, read

UUID = "3f2b8c1e-9d4a-4f6b-8a77-0c1d2e3f4a5b"


def ids_in(text: str) -> list[tuple[str, str]]:
    return [
        (entity.kind, entity.value)
        for entity in EXTRACTOR.entities(text, NOW)
        if entity.kind.startswith("id")
    ]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("repair abc123", "id:repair", "abc123"),
        ("repair 12", "id:repair", "12"),
        ("repair no. 12", "id:repair", "12"),
        ("repair number 12", "id:repair", "12"),
        ("repair #12", "id:repair", "12"),
        ("repair id: abc", "id:repair", "abc"),
        ("repair_id=abc123", "id:repair", "abc123"),
        ("the ticket R-1042", "id:repair", "R-1042"),
        ("tickets R-1042", "id:repair", "R-1042"),
        ("repiar R-1042", "id:repair", "R-1042"),
        ("REPAIR abc123", "id:repair", "abc123"),
        ("repair J7", "id:repair", "J7"),
        ("repair XYZ", "id:repair", "XYZ"),
        ("repair 'abc123'", "id:repair", "abc123"),
        ("rider_7f3a2c91b0", "id:rider", "rider_7f3a2c91b0"),
        ("customer rider_7f3a2c91b0", "id:rider", "rider_7f3a2c91b0"),
        ("ticket rider_7f3a2c91b0", "id:rider", "rider_7f3a2c91b0"),
        (f"rider {UUID}", "id:rider", UUID),
        (UUID, "id", UUID),
        ("#1042", "id", "1042"),
        ("finish R-1042", "id", "R-1042"),
        ("finish abc123", "id", "abc123"),
        ("rider's id is abc123", "id:rider", "abc123"),
    ],
)
def test_an_id_is_known_by_its_shape_or_by_the_word_before_it(
    text: str, kind: str, value: str
) -> None:
    assert ids_in(text) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    ["repair for Sarah", "repair the bike", "the repair is ready", "repair 3 April", "repair at 3pm", "bill $500", "bill 500 dollars", "repair 12k", "rider 0400 123 456", "the 3rd repair", "repair, please", "sarah@example.com", "40mm", "24/7", "repair asap", "REPAIR FOR SARAH", "rider Sarah"],
)  # fmt: skip
def test_a_plain_word_a_sum_or_a_day_is_no_id(text: str) -> None:
    assert ids_in(text) == []


def test_an_id_of_one_thing_is_never_taken_for_another() -> None:
    assert read("repair.scrap", "scrap the repair for rider abc123, rusted through") == {
        "reason": "rusted through"
    }
    assert read("repair.book", "book repair R-12 for rider K-7 tomorrow") == {
        "rider_id": "K-7",
        "date": "2026-11-17",
    }


def test_an_id_without_a_word_is_the_one_that_is_asked_for() -> None:
    assert read("repair.move", "move abc123 to ready") == {"repair_id": "abc123", "stage": "ready"}
    assert read("repair.move", f"{UUID} is ready") == {"repair_id": UUID, "stage": "ready"}


def test_a_list_of_ids_takes_them_all() -> None:
    assert read("repair.merge", "merge repair R-1, repair R-2 and repair 77") == {
        "repair_ids": ["R-1", "R-2", "77"]
    }
