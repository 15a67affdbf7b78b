"""Limits on the work of checking a pack, before anybody trusts it."""

from __future__ import annotations

from podium.core.model import Json

MAX_STEPS = 500_000_000
"""For a whole pack: a few seconds. Packs as people write them take a thousandth of it."""
STEPS_PER_SCHEMA = 2_000
"""Cost of checking one value against one schema, in steps of a search."""
STEPS_PER_PATTERN = 2_000
"""Cost of matching a tool's name with one pattern of a domain."""
STEPS_PER_CHECKED_KEY = 10_000
"""Cost of checking one value of a schema against the standard."""


class CheckTooLong(Exception):
    """Checking this pack to the end would take too long."""


class CheckEffort:
    """Work spent on a pack so far."""

    def __init__(self) -> None:
        self._steps = 0

    def spend(self, steps: int) -> None:
        """Raises `CheckTooLong`, before the work that would be too much is done."""
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise CheckTooLong


def values_in(value: Json) -> int:
    """Count the values in this one, itself among them."""
    if isinstance(value, dict):
        return 1 + sum(map(values_in, value.values()))
    return 1 + sum(map(values_in, value)) if isinstance(value, list) else 1
