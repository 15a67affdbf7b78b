"""What a model is offered and told of calls that Podium performs, the same words whatever carries them.

Standard library alone: the program that serves the toolbox to a CLI loads this and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

NO_REASON = "no reason was given; do something else, or end your turn"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def offered_names(names: Iterable[str], longest: int) -> dict[str, str]:
    """Names that every provider takes → the registry's. Two that become alike get a number."""
    offered: dict[str, str] = {}
    for real in names:
        plain = name = plain_name(real, longest)
        number = 2
        while name in offered:
            ending = f"_{number}"
            name, number = plain[: longest - len(ending)] + ending, number + 1
        offered[name] = real
    return offered


def plain_name(name: str, longest: int) -> str:
    """The name as every provider takes it."""
    return _NOT_IN_NAMES.sub("_", name)[:longest]


def told_result(result: object) -> str:
    """The result of a call that did what it was to do."""
    if isinstance(result, str):
        return result
    # As the journal has it: one text for one value.
    return json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def told_failure(error: str) -> str:
    return f"Error: {error or 'the tool failed'}"


def told_refusal(say: str) -> str:
    """For a call that did not run and will not. One that waits for a person is told so in the door's words."""
    return f"Permission Denied: {say or NO_REASON}"


def cut_to(longest: int, text: str) -> str:
    """The text; of a longer one its beginning, with words that say how much is missing."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n[… {len(text) - longest} more characters; ask for a part]"
