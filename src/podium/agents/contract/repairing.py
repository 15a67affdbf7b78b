"""Broken JSON put right, where the mended value can be proved to say what was written.

Python's reader or `json-repair` proposes; `says_the_same` checks the proposal against the source,
character by character. What it completed, dropped, guessed or turned into another type is not
accepted.
"""

from __future__ import annotations

import re
from itertools import accumulate

from podium.agents.contract.conserving import says_the_same
from podium.agents.contract.strict import MOST_DEPTH, check_value, load_object
from podium.domain.model import Json

MOST_WITH_RAW_BREAKS = 200_000
"""Characters of an object whose only fault are line breaks that nobody escaped."""

MOST_CHARACTERS = 4_000
"""Characters of an object with other faults. json-repair looks ahead at every odd quote: its time grows
with the square of the length, and 32,000 characters of them were seen to take it a minute."""


# Strings are passed over whole, one that does not end to the end of the text, so that each is looked at
# once; a comma before a closing bracket goes, a bare key gets its quotes.
_SMALL_FAULTS = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])|(?<![\w$])[A-Za-z_$][\w$]*+(?=\s*+:)', re.DOTALL
)


def repair_object(source: str, names: re.Pattern[str] | None = None) -> dict[str, Json]:
    """The object that was meant. Raises `ValueError` when that would be guessing.

    `names` are what the comments in it must not speak of.
    """
    value = _with_raw_breaks(source) or _with_small_faults(source) or _proposal(source)
    if not isinstance(value, dict) or not says_the_same(source, value, names):
        raise ValueError("it cannot be mended without guessing")
    check_value(value)
    return value


def _with_raw_breaks(source: str) -> Json:
    """The commonest fault of all, read exactly: line breaks and tabs that nobody escaped."""
    if len(source) > MOST_WITH_RAW_BREAKS:
        raise ValueError(f"it is longer than the {MOST_WITH_RAW_BREAKS} characters that are mended")
    try:
        return load_object(source, raw_breaks=True)
    except ValueError:
        return None


def _with_small_faults(source: str) -> Json:
    """Commas too many and keys without quotes, read exactly, in objects of any length."""
    try:
        return load_object(_SMALL_FAULTS.sub(_put_right, source), raw_breaks=True)
    except ValueError:
        return None


def _put_right(fault: re.Match[str]) -> str:
    found = fault[0]
    return found if found[0] == '"' else "" if found == "," else f'"{found}"'


def _proposal(source: str) -> Json:
    if len(source) > MOST_CHARACTERS:
        raise ValueError(f"it is longer than the {MOST_CHARACTERS} characters that are mended")
    if _depth(source) > MOST_DEPTH:
        raise ValueError(f"it is nested deeper than {MOST_DEPTH} levels")
    # Late, because few replies need it.
    from json_repair import loads

    try:
        return loads(source, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"it cannot be mended ({type(error).__name__})") from None


def _depth(source: str) -> int:
    """How deep the brackets go, those in strings counted too: json-repair pays for each level again."""
    steps = ((char in "{[") - (char in "}]") for char in source)
    return max(accumulate(steps), default=0)
