"""Sums of money and plain numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.operator.judgement.fields.bike_workshop import found


@pytest.mark.parametrize(
    ("text", "dollars"),
    [
        ("$1,250.50", 1250.5),
        ("$1250", 1250),
        ("$ 99", 99),
        ("$0.50", 0.5),
        ("$12k", 12000),
        ("$1.5 million", 1500000),
        ("A$30", 30),
        ("AUD 45", 45),
        ("45 AUD", 45),
        ("1250 dollars", 1250),
        ("1,250 dollars", 1250),
        ("20 bucks", 20),
        ("12 dollars 50 cents", 12.5),
        ("1.2k", 1200),
        ("12k", 12000),
        ("two thousand dollars", 2000),
        ("two thousand five hundred dollars", 2500),
        ("twenty-five dollars", 25),
        ("a hundred bucks", 100),
        ("one hundred and twenty dollars", 120),
        ("five grand", 5000),
        ("-$50", -50),
        ("＄75", 75),
        ("pay $500.", 500),
        ("$1,200,", 1200),
    ],
)
def test_a_sum_is_a_number_of_dollars(text: str, dollars: float) -> None:
    assert found("money", text) == [dollars]


@pytest.mark.parametrize(
    "text", ["$", "$ ", "dollars", "$1,2,3", "12km", "5 kids", "1250", "k", "12kg", "grandma"]
)
def test_what_is_no_sum_is_left_alone(text: str) -> None:
    assert found("money", text) == []


@given(
    st.decimals(0, 9_999_999, places=2),
    st.sampled_from(["${:,.2f}", "${:.2f}", "{:,.2f} dollars", "AUD {:.2f}", "$ {:,.2f}"]),
)
def test_a_sum_in_any_form_is_the_same_sum(amount: float, form: str) -> None:
    (read,) = found("money", f"paid {form.format(amount)} today")
    assert round(read, 2) == round(float(amount), 2)


@pytest.mark.parametrize(
    ("text", "number"),
    [("the last 10", 10), ("twelve tubes", 12), ("3x tubes", 3), ("2.5 m", 2.5), ("1,000 km", 1000), ("40mm", 40), ("twenty one spokes", 21)],
)  # fmt: skip
def test_a_number_is_read_in_digits_and_in_words(text: str, number: float) -> None:
    assert found("number", text) == [number]
