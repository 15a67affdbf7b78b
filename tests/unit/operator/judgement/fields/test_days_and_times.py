"""Days, times and stretches, counted from Monday, 16 November 2026, nine in the morning."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.jobs.operator.judgement.fields import entities
from tests.unit.operator.judgement.fields.bike_workshop import found


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-12-03", "2026-12-03"),
        ("2026/12/3", "2026-12-03"),
        ("3/4/2026", "2026-04-03"),
        ("3/4/27", "2027-04-03"),
        ("03.04.2027", "2027-04-03"),
        ("3-4-2027", "2027-04-03"),
        ("on 24/11", "2026-11-24"),
        ("3/4", "2027-04-03"),
        ("3 April", "2027-04-03"),
        ("3rd of April 2028", "2028-04-03"),
        ("the third of April", "2027-04-03"),
        ("the twenty-first of December", "2026-12-21"),
        ("April 3", "2027-04-03"),
        ("April 3rd, 2029", "2029-04-03"),
        ("20 Nov", "2026-11-20"),
        ("Fri 20 Nov 2026", "2026-11-20"),
        ("Friday, 20 November", "2026-11-20"),
        ("29 February", "2028-02-29"),
        ("today", "2026-11-16"),
        ("tonight", "2026-11-16"),
        ("this arvo", "2026-11-16"),
        ("tomorrow", "2026-11-17"),
        ("tommorow", "2026-11-17"),
        ("tmrw", "2026-11-17"),
        ("the day after tomorrow", "2026-11-18"),
        ("yesterday", "2026-11-15"),
        ("the day before yesterday", "2026-11-14"),
        ("Tuesday", "2026-11-17"),
        ("this Friday", "2026-11-20"),
        ("on Monday", "2026-11-23"),
        ("next Tuesday", "2026-11-24"),
        ("next Monday", "2026-11-23"),
        ("last Friday", "2026-11-13"),
        ("wensday", "2026-11-18"),
        ("by fri", "2026-11-20"),
        ("Monday week", "2026-11-30"),
        ("Friday week", "2026-11-27"),
        ("a week on Tuesday", "2026-11-24"),
        ("Tuesday fortnight", "2026-12-01"),
        ("in two weeks", "2026-11-30"),
        ("in 3 days", "2026-11-19"),
        ("in a fortnight", "2026-11-30"),
        ("in a month", "2026-12-16"),
        ("in two weeks' time", "2026-11-30"),
        ("a week from today", "2026-11-23"),
        ("two weeks from Friday", "2026-12-04"),
        ("three days ago", "2026-11-13"),
        ("end of month", "2026-11-30"),
        ("the end of the month", "2026-11-30"),
        ("end of next month", "2026-12-31"),
        ("EOM", "2026-11-30"),
        ("end of the week", "2026-11-20"),
        ("start of next month", "2026-12-01"),
        ("end of February", "2027-02-28"),
        ("the 20th", "2026-11-20"),
        ("the 3rd", "2026-12-03"),
    ],
)
def test_a_day_is_the_one_a_colleague_would_write_down(text: str, day: str) -> None:
    assert found("date", text) == [day]


@pytest.mark.parametrize(
    "text",
    ["31/2/2027", "32/1", "13/13", "31 April", "3/4 inch ply", "version 1.2.3", "10.0.0.1", "sun damage", "he sat down", "we may go", "march in", "0/0", "99/99/9999", "next week"],
)  # fmt: skip
def test_what_is_no_day_is_left_alone(text: str) -> None:
    assert found("date", text) == []


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("3pm", "15:00"),
        ("3 p.m.", "15:00"),
        ("12am", "00:00"),
        ("12pm", "12:00"),
        ("8:15am", "08:15"),
        ("3.30pm", "15:30"),
        ("at 3.30", "15:30"),
        ("15:30", "15:30"),
        ("03:30", "03:30"),
        ("9:15", "09:15"),
        ("noon", "12:00"),
        ("midday", "12:00"),
        ("midnight", "00:00"),
        ("half past two", "14:30"),
        ("half past nine", "09:30"),
        ("quarter to three", "14:45"),
        ("quarter past 10", "10:15"),
        ("9 o'clock", "09:00"),
        ("two o'clock in the morning", "02:00"),
        ("seven o'clock in the evening", "19:00"),
        ("at 9 tomorrow", "09:00"),
        ("be there at 2.", "14:00"),
        ("1530 hrs", "15:30"),
    ],
)
def test_time_is_within_the_working_day_unless_stated_otherwise(text: str, time: str) -> None:
    assert found("time", text) == [time]


@pytest.mark.parametrize(
    "text", ["25:00", "13pm", "at 12 Smith St", "at 40 dollars", "3.30", "1:2:3", "ratio 4:99"]
)
def test_what_is_no_time_is_left_alone(text: str) -> None:
    assert found("time", text) == []


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("last month", "2026-10-01", "2026-10-31"),
        ("this month", "2026-11-01", "2026-11-30"),
        ("last week", "2026-11-09", "2026-11-15"),
        ("last quarter", "2026-07-01", "2026-09-30"),
        ("this year", "2026-01-01", "2026-12-31"),
        ("last financial year", "2025-07-01", "2026-06-30"),
        ("in October", "2026-10-01", "2026-10-31"),
        ("for December", "2025-12-01", "2025-12-31"),
        ("in March 2025", "2025-03-01", "2025-03-31"),
        ("1-15 October", "2026-10-01", "2026-10-15"),
        ("between 1 and 15 October 2025", "2025-10-01", "2025-10-15"),
        ("the last 7 days", "2026-11-09", "2026-11-16"),
        ("year to date", "2026-01-01", "2026-11-16"),
    ],
)
def test_a_stretch_has_a_first_and_a_last_day(text: str, first: str, last: str) -> None:
    assert found("period", text) == [{"from": first, "to": last}]


def test_date_and_time_in_one_piece_keeps_its_offset_and_is_local_without_one() -> None:
    assert found("datetime", "2026-12-01T09:30") == ["2026-12-01T09:30:00+11:00"]
    assert found("datetime", "at 2026-12-01T09:30:00Z") == ["2026-12-01T09:30:00+00:00"]
    assert found("datetime", "2026-13-01T09:30") == []


@given(
    st.dates(date(2000, 1, 1), date(2099, 12, 31)),
    st.datetimes(datetime(2000, 1, 1), datetime(2099, 1, 1)),
)
def test_day_with_its_year_means_the_same_whenever_it_is_mentioned(
    day: date, now: datetime
) -> None:
    for written in (
        day.isoformat(),
        f"{day.day}/{day.month}/{day.year}",
        f"{day.day} {day:%B %Y}",
        f"{day:%B} {day.day}, {day.year}",
    ):
        assert [entity.value for entity in entities(written, now, {}) if entity.kind == "date"] == [
            day.isoformat()
        ]


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), st.sampled_from(["tomorrow", "yesterday", "in 999 years", "in 99 weeks", "next Friday", "end of next month", "last year", "29 February", "the 31st", "100 years ago", "last 900 months"]))  # fmt: skip
def test_words_for_days_never_run_off_the_calendar(now: datetime, words: str) -> None:
    days = [entity.value for entity in entities(words, now, {}) if entity.kind == "date"]
    assert all(date.fromisoformat(str(day)).isoformat() == day for day in days)
