"""Static worst-case cost of an untrusted regular expression (ReDoS check).

Python tries the ways in which a pattern can fit one after the other, and some patterns fit a text of forty
characters in more ways than can ever be tried. What is taken here is what the next character decides: whether
a repetition goes on, and which branch is taken. Where it does not decide, the ways are counted; where they
would be counted inside an open repetition, the pattern is refused, as is what cannot be told at all.

Every character of ASCII is a kind of its own. Beyond it only digits, other letters, blanks and the rest are told
apart, which is what `\\d`, `\\w` and `\\s` do.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations
from typing import Any, NamedTuple

_DIGIT, _WORD, _SPACE, _OTHER = (1 << bit for bit in range(128, 132))
_BEYOND = _DIGIT | _WORD | _SPACE | _OTHER
_ALL = (1 << 132) - 1
_ODD_CASES = "iIkKsS"
"""ASCII letters that are the other case of letters beyond ASCII."""


def characters(name: str, value: Any, *, any_case: bool) -> int:
    """A set that holds at least every character that this part of a parsed pattern takes."""
    if name == "LITERAL":
        return _cased(_bit(value), any_case)
    if name == "NOT_LITERAL":
        return _ALL & ~_surely("LITERAL", value)
    if name != "IN":
        return _ALL
    kinds = [(str(kind), inner) for kind, inner in value]
    if kinds[0][0] == "NEGATE":
        return _ALL & ~_union(_surely(*kind) for kind in kinds[1:])
    return _cased(_union(_perhaps(*kind) for kind in kinds), any_case)


def _cased(characters: int, any_case: bool) -> int:
    if not any_case:
        return characters
    cased = [chr(bit) for bit in range(128) if characters >> bit & 1 and chr(bit).isalpha()]
    others = _union(_bit(ord(char.swapcase())) for char in cased)
    odd = _union(_bit(ord(char)) for char in _ODD_CASES) if characters & _WORD else 0
    return characters | others | odd | (_WORD if cased else 0)


def _union(sets: Iterable[int]) -> int:
    return reduce(int.__or__, sets, 0)


def _bit(code: int) -> int:
    if code < 128:
        return 1 << code
    character = chr(code)
    if character.isdecimal():
        return _DIGIT
    return _WORD if character.isalnum() else _SPACE if character.isspace() else _OTHER


def _of_ascii(pattern: str) -> int:
    return _union(1 << code for code in range(128) if re.match(pattern, chr(code)))


_CATEGORIES = {
    "CATEGORY_DIGIT": _of_ascii(r"\d") | _DIGIT,
    "CATEGORY_WORD": _of_ascii(r"\w") | _DIGIT | _WORD,
    "CATEGORY_SPACE": _of_ascii(r"\s") | _SPACE,
}
_CATEGORIES |= {
    name.replace("_", "_NOT_"): _ALL & ~characters for name, characters in _CATEGORIES.items()
}


def _perhaps(kind: str, value: Any) -> int:
    if kind == "RANGE" and value[1] >= 128:
        return _surely(kind, value) | _BEYOND
    return _bit(value) if kind == "LITERAL" else _surely(kind, value)


def _surely(kind: str, value: Any) -> int:
    """Characters that this part of a set takes, without those of which only some are taken."""
    if kind == "CATEGORY":
        return _CATEGORIES[str(value)]
    low, high = value if kind == "RANGE" else (value, value)
    return _union(1 << code for code in range(low, min(high, 127) + 1))


MAX_STEPS = 10_000_000
"""That one search may take: about a tenth of a second."""
MAX_PATTERN = 1_000
_SHORTEST_USEFUL = 50
"""A pattern that is slow on texts shorter than this is of no use."""
_OPEN = 1_000
"""A repetition with so many more than it needs counts as one without an end."""
_LONG = 100
"""A repetition that can take so many characters counts as one along the whole text."""
_MAX_TIMES = 20
"""Repetitions of something that fits in several ways."""

# Its public name, `sre_parse`, warns of its age since Python 3.11.
_parse: Any = importlib.import_module("re._parser").parse


class RegexTooCostly(ValueError):
    """This pattern is not used: its words say why."""


@dataclass(frozen=True)
class PatternCost:
    """Steps that a search takes at most: `factor` times the text's length to the power of `degree`."""

    factor: int
    degree: int

    @property
    def longest(self) -> int | None:
        """The longest text that may be searched. None: any."""
        if self.degree == 0 or (self.degree == 1 and self.factor == 1):
            return None
        return int((MAX_STEPS / self.factor) ** (1 / self.degree))

    def steps(self, length: int) -> int:
        steps: int = self.factor * (length + 1) ** self.degree
        return steps


@lru_cache(maxsize=2_000)
def pattern_cost(pattern: str) -> PatternCost:
    """Cost of a search with this. Raises `RegexTooCostly` when it may take too long, or is no pattern."""
    if len(pattern) > MAX_PATTERN:
        raise RegexTooCostly(f"is longer than {MAX_PATTERN} characters; shorten it")
    try:
        re.compile(pattern)
        parsed = _parse(pattern)
        cost = _WaysToMatch(parsed.state.flags).of(parsed, follow=0, in_loop=False)
    except (re.error, RecursionError, OverflowError) as error:
        raise RegexTooCostly(f"is not a valid regular expression: {error}") from None
    whole = PatternCost(cost.factor, cost.peak + (not _is_anchored(parsed)))
    if whole.longest is not None and whole.longest < _SHORTEST_USEFUL:
        raise RegexTooCostly(
            "matches a short text in too many ways; let the next character decide how it continues, "
            "and start it with ^"
        )
    return whole


def _is_anchored(parsed: Any) -> bool:
    first = str(parsed[0]) if len(parsed) else ""
    several_lines = parsed.state.flags & re.MULTILINE
    return "AT_BEGINNING" in first and first.startswith("(AT,") and not several_lines


class _Cost(NamedTuple):
    """Of a part: in how many ways it fits from one place on, and what trying them takes.

    Ways: `factor` times the text's length to the power of `ways`; steps: the same with `peak`.
    """

    factor: int
    ways: int
    peak: int

    def then(self, behind: _Cost) -> _Cost:
        """The cost with what stands behind, which is tried again for each way in which this fits."""
        peak = max(self.peak, self.ways + behind.peak)
        return _Cost(self.factor * behind.factor, self.ways + behind.ways, peak)


_ONE = _Cost(1, 0, 0)
_WALK = _Cost(1, 0, 1)
"""Along the text, with one way to do it."""
_ANY_END = _Cost(1, 1, 1)
"""Along the text, and each place may be the end."""


class _WaysToMatch:
    """In how many ways parts of a parsed pattern can fit. What it does not know, it refuses."""

    def __init__(self, flags: int) -> None:
        if flags & re.ASCII:
            raise RegexTooCostly("has the flag `a`; remove it and write [0-9] or [A-Za-z0-9_]")
        self._any_case = bool(flags & re.IGNORECASE)

    def of(self, items: Sequence[Any], follow: int, in_loop: bool) -> _Cost:
        """`follow`: what may stand behind these. `in_loop`: inside a repetition without an end."""
        cost = _ONE
        for item in reversed(items):
            cost = self._of_one(item, follow, in_loop).then(cost)
            first, empty = self._first_of(item)
            follow = first | (follow if empty else 0)
        if cost.factor > MAX_STEPS:
            raise RegexTooCostly("matches a text in too many ways; simplify it")
        return cost

    def _of_one(self, item: Any, follow: int, in_loop: bool) -> _Cost:
        name, value = str(item[0]), item[1]
        if name.endswith("_REPEAT"):
            least, most, body = value
            return self._of_repeat(least, most, body, follow, in_loop)
        if name == "BRANCH":
            return self._of_branches(value[1], follow, in_loop)
        if name == "SUBPATTERN":
            return self._inside_group(value).of(value[3], follow, in_loop)
        if name == "ATOMIC_GROUP":
            return self.of(value, follow, in_loop)
        if name in ("ASSERT", "ASSERT_NOT"):
            return self._of_look(value[1], in_loop)
        if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY", "AT", "FAILURE"):
            return _ONE
        raise RegexTooCostly("has a backreference; write it without")

    def _inside_group(self, value: Any) -> _WaysToMatch:
        if value[1] & ~re.IGNORECASE or value[2]:
            raise RegexTooCostly("changes flags inside a group; write it without")
        self._any_case = self._any_case or bool(value[1])
        return self

    def _of_repeat(self, least: int, most: int, body: Any, follow: int, in_loop: bool) -> _Cost:
        first, empty = self._first(body)
        if most > 1 and empty:
            raise RegexTooCostly(
                "repeats a part that may be empty; let each repetition consume a character"
            )
        is_open = most - least >= _OPEN
        within = self.of(body, follow | (first if most > 1 else 0), in_loop or is_open)
        if within.ways or within.factor > 1:
            whole = self._repeated(within, most)
        else:
            whole = _WALK if most * body.getwidth()[1] >= _LONG else within
        if least == most or not (first & follow or empty):
            return whole
        if in_loop:
            raise RegexTooCostly(
                "has a repetition inside a repetition, and the next character does not decide where it ends"
            )
        return _ANY_END if is_open else _Cost(most - least + 1, 0, 0).then(whole)

    def _repeated(self, within: _Cost, times: int) -> _Cost:
        if times > _MAX_TIMES:
            raise RegexTooCostly(
                "repeats a part that matches in several ways; let the next character decide"
            )
        peak = within.ways * (times - 1) + within.peak
        return _Cost(within.factor**times, within.ways * times, peak)

    def _of_branches(self, branches: Sequence[Any], follow: int, in_loop: bool) -> _Cost:
        costs = [self.of(branch, follow, in_loop) for branch in branches]
        worst = _Cost(*map(max, zip(*costs, strict=True)))
        starts = [first | (follow if empty else 0) for first, empty in map(self._first, branches)]
        empties = sum(empty for _, empty in map(self._first, branches))
        if empties <= 1 and not any(one & other for one, other in combinations(starts, 2)):
            return worst
        if in_loop:
            raise RegexTooCostly(
                "repeats branches that start alike; let the first character decide"
            )
        return worst._replace(factor=worst.factor * len(branches))

    def _of_look(self, items: Sequence[Any], in_loop: bool) -> _Cost:
        cost = self.of(items, follow=0, in_loop=False)
        if cost.peak and in_loop:
            raise RegexTooCostly("has an unlimited lookahead inside a repetition; write it without")
        # What has been looked at is not looked at in another way when the rest does not fit.
        return cost._replace(ways=0)

    def _first(self, items: Sequence[Any]) -> tuple[int, bool]:
        """With which characters these can begin, and whether they can be empty."""
        characters = 0
        for item in items:
            first, empty = self._first_of(item)
            characters |= first
            if not empty:
                return characters, False
        return characters, True

    def _first_of(self, item: Any) -> tuple[int, bool]:
        name, value = str(item[0]), item[1]
        if name.endswith("_REPEAT"):
            first, empty = self._first(value[2])
            return first, empty or value[0] == 0
        if name == "BRANCH":
            branches = [self._first(branch) for branch in value[1]]
            return reduce(int.__or__, (first for first, _ in branches)), any(e for _, e in branches)
        if name == "SUBPATTERN":
            return self._inside_group(value)._first(value[3])
        if name == "ATOMIC_GROUP":
            return self._first(value)
        if name == "AT":
            return 0, True
        if name in ("ASSERT", "ASSERT_NOT"):
            # What it takes to look is spent before the next character decides anything.
            return characters("ANY", None, any_case=False), True
        return characters(name, value, any_case=self._any_case), False
