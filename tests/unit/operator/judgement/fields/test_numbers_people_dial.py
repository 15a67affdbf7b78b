"""Telephone numbers and e-mail addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.jobs.operator.judgement.fields import entities
from tests.unit.operator.judgement.fields.bike_workshop import NOW, found


@pytest.mark.parametrize(
    ("text", "phone"),
    [
        ("0400 123 456", "+61400123456"),
        ("0400123456", "+61400123456"),
        ("0400-123-456", "+61400123456"),
        ("0400.123.456", "+61400123456"),
        ("call (03) 9555 1234 today", "+61395551234"),
        ("(03)95551234", "+61395551234"),
        ("03 9555 1234", "+61395551234"),
        ("+61 400 123 456", "+61400123456"),
        ("+61400123456", "+61400123456"),
        ("+61 (0)400 123 456", "+61400123456"),
        ("+61 3 9555 1234", "+61395551234"),
        ("0061 400 123 456", "+61400123456"),
        ("0011 61 400 123 456", "+61400123456"),
        ("61400123456", "+61400123456"),
        ("61 400 123 456", "+61400123456"),
        ("400 123 456", "+61400123456"),
        ("1300 555 555", "1300555555"),
        ("1800 123 456", "1800123456"),
        ("1300555555", "1300555555"),
        ("13 11 14", "131114"),
        ("ring 131114", "131114"),
        ("0 4 0 0 1 2 3 4 5 6", "+61400123456"),
        ("０４００ １２３ ４５６", "+61400123456"),
        ("0400\u00a0123\u00a0456", "+61400123456"),
        ("0400\u200b123\u200b456", "+61400123456"),
        ("\u202b0400 123 456\u202c", "+61400123456"),
        ("ph:0400123456.", "+61400123456"),
        ("Sarah,0400123456,Clayton", "+61400123456"),
        ("+1 415 555 2671", "+14155552671"),
        ("+64 21 123 456", "+6421123456"),
        ("+44 (20) 7946 0958", "+442079460958"),
        ("9555 1234 area code 03", "+61395551234"),
        ("07 3123 4567 unit 2", "+61731234567"),
        ("0400 123 456 3 bikes", "+61400123456"),
        ("2 bikes 0400 123 456", "+61400123456"),
    ],
)
def test_a_number_is_read_in_every_form_people_write(text: str, phone: str) -> None:
    assert found("phone", text) == [phone]


@pytest.mark.parametrize(
    "text",
    [
        "$0400123456",
        "#0400123456",
        "ABN 61 412 345 678",
        "account no 0400123456",
        "0400 123 4567",
        "040012345",
        "2026-11-16",
        "16/11/2026 09:00",
        "03.04.2026 12:30",
        "131114",
        "9555 1234",
        "1,250.50",
        "0400123456.50",
        "0a040012-3456-4000-8000-000400123456",
        "order 61400123456789",
        "quote_0400123456",
        "x0400123456",
        "0400123456@example.com",
    ],
)
def test_an_amount_a_date_an_id_or_half_a_number_is_no_phone(text: str) -> None:
    assert found("phone", text) == []


def test_two_adjacent_numbers_are_two() -> None:
    assert found("phone", "0400 123 456 0411 222 333") == ["+61400123456", "+61411222333"]


def test_a_pack_may_name_the_area_of_local_numbers() -> None:
    (phone,) = entities("ring 9555 1234", NOW, {"area_code": ("03",)})
    assert (phone.kind, phone.value) == ("phone", "+61395551234")


GAPS = st.sampled_from(["", " ", "-", ".", "  "])


@st.composite
def australian_numbers(draw: st.DrawFn) -> tuple[str, str]:
    """A number as somebody may write it, and as E.164."""
    area = draw(st.sampled_from("23478"))
    rest = draw(st.text("0123456789", min_size=8, max_size=8))
    groups = draw(st.sampled_from([(2, 3, 3), (4, 4), (8,), (3, 3, 2), (1, 3, 4)]))
    parts, at = [], 0
    for size in groups:
        parts.append(rest[at : at + size])
        at += size
    gap = draw(GAPS)
    lead = draw(st.sampled_from(["0", "+61", "+61 ", "61", "0061 ", "+61 (0)"]))
    inner = draw(st.sampled_from(["", gap]))
    return f"{lead}{area}{inner}{gap.join(parts)}", f"+61{area}{rest}"


@given(
    australian_numbers(),
    st.sampled_from(["{}", "call {} now", "Sarah {}", "({})", "ph: {}, Clayton", "{}\n", "“{}”"]),
)
def test_any_number_in_any_form_is_found_again(number: tuple[str, str], around: str) -> None:
    written, dialled = number
    assert found("phone", around.format(written)) == [dialled]


@pytest.mark.parametrize(
    ("text", "email"),
    [
        ("sarah@example.com", "sarah@example.com"),
        ("mail sarah@example.com.", "sarah@example.com"),
        ("(sarah@example.com)", "sarah@example.com"),
        ("<sarah@example.com>,", "sarah@example.com"),
        ("mailto:sarah@example.com?subject=x", "sarah@example.com"),
        ("Sarah.O'Brien+bikes@Example.COM.au!", "sarah.o'brien+bikes@example.com.au"),
        ("sarah dot jones at example dot com", "sarah.jones@example.com"),
        ("sarah at example dot com dot au", "sarah@example.com.au"),
        ("a_b-c@sub.example.org", "a_b-c@sub.example.org"),
    ],
)
def test_address_is_read_without_its_surroundings(text: str, email: str) -> None:
    assert found("email", text) == [email]


@pytest.mark.parametrize(
    "text",
    ["@example.com", "sarah@", "sarah@example", "a@b@c", "meet at ten dot", "a..b@x.com", "@@@"],
)
def test_half_an_address_is_none(text: str) -> None:
    assert found("email", text) == []
