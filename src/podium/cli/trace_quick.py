"""The words of rows as nearly all are, checked once as a whole instead of word by word.

Of a long trace most rows are calls and steps with plain names: to look through each part of each would
take longer than reading the trace. What is anything else is left to the words that take their time.
"""

from __future__ import annotations

from pydantic_core import to_json

from podium.cli.trace_folding import Data, Row
from podium.telling.event_words import LONGEST_ARGUMENTS

LONGEST_NAME = 60
_STEPS = {"step_started", "step_completed"}


def quick_words(row: Row) -> str | None:
    """The same as the slower words would be; None where only those can tell."""
    words = _call(row) if row.outcome else _step(row.data)
    if words and words.isascii() and words.isprintable() and "  " not in words:
        return words
    return None


def _step(data: Data) -> str | None:
    step = data.get("step")
    plain = data["type"] in _STEPS and type(step) is str and len(step) <= LONGEST_NAME
    return step if plain and data.get("attempt", 1) == 1 else None


def _call(row: Row) -> str | None:
    data, request = row.data, row.request or row.data
    if request.get("approval_id") or data["type"] == "tool_refused" or data.get("error"):
        return None
    try:
        names = data["tool"], request["tier"], request["rule"], data["call"].split(":")
        tool, tier, rule, (_, step, _) = names
        given = to_json(request["arguments"]) if request["arguments"] else b""
        plain = (
            tool
            and step
            and len(tool) <= LONGEST_NAME
            and len(tier) + len(rule) + len(step) <= LONGEST_NAME
            and len(given) <= LONGEST_ARGUMENTS
            and (not given or given[0] == 123)
        )
        if not plain:
            return None
        shown = f"{tool} {given.decode()} in" if given else f"{tool} in"
        return f"{shown} {step} [{tier} {rule}]{_proof(data)}"
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _proof(data: Data) -> str:
    receipt = data.get("receipt")
    if receipt is None:
        return ""
    if type(receipt) is not int or not 0 <= receipt < 1e15:
        raise ValueError("no number of a receipt")
    return f" #{receipt}"
