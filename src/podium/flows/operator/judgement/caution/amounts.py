"""Sums below nothing, and numbers that were read in part."""

from __future__ import annotations

import re

from podium.flows.operator.judgement.caution.said import Said

_BELOW_ZERO = re.compile(
    r"(?:(?<![^\s(:=])[-\u2212\u2013]|\b(?:minus|negative)\s{1,2})[$€£]?\d[\d,.]*", re.IGNORECASE
)
_COUNTS = frozenset({"money", "number"})


def strange_amount(said: Said) -> str:
    """Asks about `-500`, `minus 500` and `$1e9`, where a tool of the wishes takes sums or numbers."""
    if not any(_COUNTS & said.kinds_of(wish) for wish in said.wishes):
        return ""
    if found := _BELOW_ZERO.search(said.text):
        return f"{found.group()} is less than nothing. What is the amount, and what should be done with it?"
    for each in said.finds:
        following = said.text[each.end : each.end + 2]
        if each.kind in _COUNTS and following[:1].isalpha() and following[1:].isdigit():
            return f"How much is {said.words_of(each)}{following}, in plain figures?"
        if each.kind == "money" and round(each.value * 100, 6) % 1:
            return f"{said.words_of(each)} is a part of a cent. What is the amount?"
    return ""
