"""Patterns of strangers: the ones that could run away are refused, the ones people write are taken."""

from __future__ import annotations

import re
from typing import Any

import pytest

from podium.core.json_schema import validator_for
from podium.core.regex_cost import MAX_STEPS, RegexTooCostly, pattern_cost


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"^(a+)+$", "a repetition inside a repetition"),
        (r"(\w+\s?)+$", "a repetition inside a repetition"),
        (r"^(.*,)+x$", "a repetition inside a repetition"),
        (r"(?i)^(k+\u212a)*!", "a repetition inside a repetition"),
        (r"^(a|a)*$", "branches that start alike"),
        (r"^(ab|a|b)+$", "branches that start alike"),
        (r"^(\d+|\w+)*$", "a repetition inside a repetition"),
        (r"(a*)*", "may be empty"),
        (r"^(a?){30}a{30}$", "may be empty"),
        (r"^(a{1,20}){1,20}$", "too many ways"),
        ("a?" * 30 + "a" * 30, "too many ways"),
        (r"^.*.*.*.*.*.*x$", "too many ways"),
        (r"^(a{1,3}){50}$", "in several ways"),
        (r"(a)\1", "has a backreference"),
        (r"(a)?(?(1)b|c)", "has a backreference"),
        (r"^(?:(?=.*x)a)*$", "unlimited lookahead"),
        (r"(?a)^(\w+\s)*$", "flag `a`"),
        (r"^(?-i:a)b$", "changes flags"),
        ("(", "not a valid regular expression"),
        ("x" * 1001, "longer than 1000"),
    ],
)
def test_a_pattern_that_could_run_away_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(RegexTooCostly, match=re.escape(words)):
        pattern_cost(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^\d{4}-\d{2}-\d{2}$",
        r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        r"^(\+[1-9][0-9]{6,14}|1[38][0-9]{4,8})$",
        r"^\w+(\s\w+)*$",
        r"^[A-Z]+(-[A-Z]+)*$",
        r"^(foo|bar)+$",
        r"^(\d{1,3}\.){3}\d{1,3}$",
        r"^https?://\S+$",
        r"^[+-]?\d+(\.\d+)?$",
        r"^[A-Za-z0-9+/]+={0,2}$",
        r"(?i)^[a-z]+$",
        r"^(?=.*\d)(?=.*[a-z]).{8,}$",
        r"\S",
        r"^x-",
        "",
    ],
)
def test_a_pattern_that_goes_one_way_is_good_for_texts_of_any_length(pattern: str) -> None:
    assert pattern_cost(pattern).longest is None


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        (r"^[^@\s]+@[^@\s]+\.[^@\s]+$", 3162),
        (r"^([A-Z]+-)*[A-Z]+$", 3162),
        (r".+$", 3162),
        (r"a{5000}b", 3162),
        (r"^a*(?=.*x)!", 3162),
        (r"([ab]{1,3}){1,3}a$", 123456),
        (r"^.*,.*,.*$", 215),
        (r"^(?=.*a.*b)x$", 3162),
    ],
)
def test_a_pattern_that_can_go_several_ways_is_good_for_short_texts(
    pattern: str, longest: int
) -> None:
    assert pattern_cost(pattern).longest == longest


def test_distinctions_beyond_ascii_are_the_same_in_python() -> None:
    """The sets that the whole check rests on: no blank is a letter, every digit is one."""
    for code in range(128, 0x110000):
        character = chr(code)
        if character.isspace():
            assert not character.isalnum()
        if character.isdecimal():
            assert character.isalnum()


def test_the_slowest_text_that_is_allowed_is_searched_to_its_end() -> None:
    pattern = r"^[^@]+@.*,.*,.*!$"
    cost = pattern_cost(pattern)
    text = "a@" + "," * ((cost.longest or 0) - 2)

    assert cost.steps(len(text)) <= 2 * MAX_STEPS
    assert not re.search(pattern, text)


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 60 + "!", "cannot be matched against '^(a+)+$'"),
        ({"pattern": ".*,.*x"}, "," * 5000, "has 5000 characters, and at most 215"),
        ({"pattern": "^a+$"}, "b", "'b' does not match '^a+$'"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}, "a!", "can"),
    ],
)
def test_a_validator_never_searches_with_what_runs_away(
    schema: dict[str, Any], value: str, words: str
) -> None:
    (fault,) = validator_for(schema).iter_errors(value)

    assert words in fault.message


def test_validator_reports_other_faults_as_usual() -> None:
    schema = {"properties": {"n": {"type": "integer"}, "s": {"$ref": "#/$defs/s"}}}
    validator = validator_for({**schema, "$defs": {"s": {"pattern": "^b"}}, "$id": "x.json"})

    found = {error.message for error in validator.iter_errors({"n": "1", "s": "a"})}

    assert found == {"'1' is not of type 'integer'", "'a' does not match '^b'"}
    assert validator.is_valid({"n": 1, "s": "b"})
