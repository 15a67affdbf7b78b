"""Which lines, or words, of an old text stay in a new one. Bounded: a huge change is one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_MOST_PAIRS = 60_000
"""Comparing takes time by the product of both lengths, and at worst once for each item."""


@dataclass(frozen=True)
class Block:
    """A run of old items and what stands in their place. `same`: they are equal, one by one."""

    same: bool
    old: int
    old_count: int
    new: int
    new_count: int


def aligned(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """The blocks that both consist of, in order and without gaps."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    blocks = [Block(True, 0, head, 0, head)] if head else []
    blocks += _middle(old[head:old_end], new[head:new_end], head)
    if tail:
        blocks.append(Block(True, old_end, tail, new_end, tail))
    return blocks


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count


def _middle(old: Sequence[str], new: Sequence[str], offset: int) -> list[Block]:
    if not old and not new:
        return []
    if not old or not new or len(old) * len(new) > _MOST_PAIRS:
        return [Block(False, offset, len(old), offset, len(new))]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        Block(tag == "equal", offset + i, i_end - i, offset + j, j_end - j)
        for tag, i, i_end, j, j_end in matcher.get_opcodes()
    ]
