"""Tests over a call's arguments.

A test answers yes, no, or None when it cannot be made, such as a number range over a text. What
cannot be tested counts against the call: a deny or ask rule takes None for yes, an allow rule
for no. Of several values, a deny or ask rule needs one that fits, an allow rule needs all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from podium.domain.model import Json
from podium.gate.facts import Facts
from podium.gate.patterns import text_glob
from podium.gate.places import PlaceGlob, check_glob
from podium.gate.policy import ArgumentMatch

_LONGEST_TEXT = 10_000
"""Longer texts are not put to regular expressions."""
_MISSING = object()
Test = Callable[[Json], bool | None]


class ArgumentTest:
    """One `arguments` entry of a rule."""

    def __init__(self, name: str, match: ArgumentMatch, *, lenient: bool) -> None:
        self._name = name
        self._present = match.present
        self._lenient = lenient
        """True for deny and ask: one value that fits, or cannot be tested, is enough."""
        self._places = _place_glob(match.glob)
        self._tests = tuple(_tests(match))
        self._text_tests = (
            (_text_glob_test(match.glob), *self._tests) if match.glob else self._tests
        )

    def fits(self, facts: Facts) -> bool:
        value = look_up(facts.call.arguments, self._name)
        if value is _MISSING or self._present is False:
            return value is _MISSING and self._present is False
        tests = self._text_tests
        if self._places is not None:
            # A path argument is compared by its real path, whatever its spelling.
            real = facts.real_paths.get(self._name)
            if real:
                tests, root = self._tests, facts.context.root
                if not self._agreed([self._places.covers(path, root) for path in real]):
                    return False
        if not tests:
            return True
        items = value if isinstance(value, (list, tuple)) and value else (value,)
        return self._agreed([_together(tests, item) for item in items])

    def _agreed(self, answers: Sequence[bool | None]) -> bool:
        if self._lenient:
            return True in answers or None in answers
        return False not in answers and None not in answers


def _tests(match: ArgumentMatch) -> Iterator[Test]:
    if "equals" in match.model_fields_set:
        yield partial(_same, match.equals)
    if match.one_of is not None:
        yield partial(_same_as_one, match.one_of)
    if match.regex is not None:
        yield partial(_fits_regex, re.compile(match.regex))
    if match.min is not None or match.max is not None:
        yield partial(_in_range, match.min, match.max)


def _together(tests: Sequence[Test], value: Json) -> bool | None:
    """All tests over one value: no beats unknown, unknown beats yes."""
    answers = [test(value) for test in tests]
    if False in answers:
        return False
    return None if None in answers else True


def look_up(arguments: Mapping[str, Json], name: str) -> Json:
    """The argument of that name, or inside objects along its dots."""
    if name in arguments:
        return arguments[name]
    value: Json = arguments
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _place_glob(glob: str | None) -> PlaceGlob | None:
    try:
        return PlaceGlob([check_glob(glob)]) if glob is not None else None
    except ValueError:
        return None


def _text_glob_test(glob: str) -> Test:
    fits = text_glob(glob).fullmatch

    def test(value: Json) -> bool | None:
        if not isinstance(value, str) or ".." in value.split("/"):
            return None  # As a path it may lead anywhere.
        return fits(value) is not None

    return test


def _same(wanted: Json, value: Json) -> bool:
    """Equality that tells `true` from 1."""
    return isinstance(wanted, bool) is isinstance(value, bool) and bool(wanted == value)


def _same_as_one(options: Sequence[Json], value: Json) -> bool:
    return any(_same(option, value) for option in options)


def _fits_regex(regex: re.Pattern[str], value: Json) -> bool | None:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        return None
    return regex.fullmatch(value) is not None


def _in_range(least: float | None, most: float | None, value: Json) -> bool | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        return None
    return (least is None or value >= least) and (most is None or value <= most)
