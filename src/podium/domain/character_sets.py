"""Sets of characters as regular expressions write them, each held in a number with a bit for each kind.

Every character of ASCII is a kind of its own. Beyond it only digits, other letters, blanks and the rest are told
apart, which is what `\\d`, `\\w` and `\\s` do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from typing import Any

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
        return _ALL & ~_union(_surely(*each) for each in kinds[1:])
    return _cased(_union(_perhaps(*each) for each in kinds), any_case)


def _cased(found: int, any_case: bool) -> int:
    if not any_case:
        return found
    letters = [chr(bit) for bit in range(128) if found >> bit & 1 and chr(bit).isalpha()]
    others = _union(_bit(ord(letter.swapcase())) for letter in letters)
    odd = _union(_bit(ord(letter)) for letter in _ODD_CASES) if found & _WORD else 0
    return found | others | odd | (_WORD if letters else 0)


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
_CATEGORIES |= {name.replace("_", "_NOT_"): _ALL & ~found for name, found in _CATEGORIES.items()}


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
