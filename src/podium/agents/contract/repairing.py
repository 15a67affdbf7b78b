"""Broken JSON put right, where the mended value can be proved to say what was written.

`json-repair` proposes; `says_the_same` checks the proposal against the source, character by
character. What it completed, dropped, guessed or turned into another type is not accepted.
"""

from __future__ import annotations

from podium.agents.contract.conserving import says_the_same
from podium.agents.contract.strict import check_value
from podium.domain.model import Json

MOST_CHARACTERS = 32_000
"""json-repair looks far ahead at every odd quote, so it gets no more than this."""


def repair_object(source: str) -> dict[str, Json]:
    """The object that was meant. Raises `ValueError` when that would be guessing."""
    if len(source) > MOST_CHARACTERS:
        raise ValueError(f"it is longer than the {MOST_CHARACTERS} characters that are mended")
    value = _proposal(source)
    if not isinstance(value, dict) or not says_the_same(source, value):
        raise ValueError("it cannot be mended without guessing")
    check_value(value)
    return value


def _proposal(source: str) -> Json:
    # Late, because few replies need it.
    from json_repair import loads

    try:
        return loads(source, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"it cannot be mended ({type(error).__name__})") from None
