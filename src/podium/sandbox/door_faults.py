"""What went wrong at a turn's door, in words for people."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from podium.domain.errors import AgentMustAct

_KEPT = 100
_SHOWN = 5
_LONGEST_WORDS = 300


class Faults:
    """The newest faults of a turn, up to a hundred."""

    def __init__(self) -> None:
        self._kept: deque[Exception] = deque(maxlen=_KEPT)

    def __iter__(self) -> Iterator[Exception]:
        return iter(self._kept)

    def add(self, fault: Exception) -> None:
        self._kept.append(fault)

    def in_words(self) -> str:
        """The newest of them on one line, plain and cut; nothing when there are none to tell.

        What an agent did wrong and was told about stands in the journal as a refused call, so it
        is left out. Words of programs may be among the others: escapes and control characters go.
        """
        told = Counter(_plain(fault) for fault in self if not isinstance(fault, AgentMustAct))
        if not told:
            return ""
        older = sum(list(told.values())[:-_SHOWN])
        shown = [f"{older} older faults"] if older else []
        for words, times in list(told.items())[-_SHOWN:]:
            shown.append(words if times == 1 else f"{words} ({times} times)")
        return "at the hook door: " + "; ".join(shown)


def _plain(fault: Exception) -> str:
    words = f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__
    line = " ".join(words.split())
    plain = "".join(letter for letter in line if letter.isprintable())
    return plain if len(plain) <= _LONGEST_WORDS else plain[: _LONGEST_WORDS - 1] + "…"
