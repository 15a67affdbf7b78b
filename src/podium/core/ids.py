"""Identifiers: UUIDv7 with a readable prefix, and the short form a person types."""

from __future__ import annotations

import os
from datetime import UTC, datetime

SHORT_LENGTH = 8
"""Number of characters of the tail that are shown to people."""

SHORTEST_TAIL = 4
"""Fewer characters than this are never taken for a short form."""

_TAIL_LENGTH = 12


def mint_id(prefix: str, at_milliseconds: int, randomness: bytes | None = None) -> str:
    """Make an id such as `run_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f`.

    Ids sort by time. `randomness` is ten bytes; without it the system's source is used.
    """
    chance = os.urandom(10) if randomness is None else randomness
    rand_a = ((chance[0] << 8) | chance[1]) & 0x0FFF
    rand_b = int.from_bytes(chance[2:10], "big") & ((1 << 62) - 1)
    value = (
        ((at_milliseconds & ((1 << 48) - 1)) << 80)
        | (0x7 << 76)
        | (rand_a << 64)
        | (0b10 << 62)
        | rand_b
    )
    return f"{prefix}_{value:032x}"


def tail_of(identifier: str) -> str:
    """The random tail, which short forms are a beginning of."""
    return identifier[-_TAIL_LENGTH:]


def short_id(identifier: str) -> str:
    """The part of an id that a person sees and may type back: the first characters of the random tail."""
    return tail_of(identifier)[:SHORT_LENGTH]


def minted_at(identifier: str) -> datetime:
    """The time an id was made, to the millisecond. Raises ValueError for what is no such id."""
    milliseconds = int(identifier.rpartition("_")[2][:12], 16)
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
