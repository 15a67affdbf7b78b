"""Typing errors: the known word that an unknown one was most likely meant to be."""

from __future__ import annotations

from collections.abc import Iterable

_ONE_ERROR_FROM, _TWO_ERRORS_FROM = 4, 7
"""Letters a word must have before one or two errors in it are forgiven; shorter ones are too alike."""
_SHORTEST = 3
"""Letters of the shortest abbreviation."""
_VOWELS = frozenset("aeiou")
_MOST_KEPT = 4096
"""Answers that are remembered."""


def _letters(word: str) -> int:
    mask = 0
    for letter in word:
        mask |= 1 << (ord(letter) & 31)
    return mask


class Speller:
    """Knows a vocabulary. Words are found by first letter and length, then by their letters."""

    def __init__(
        self, words: Iterable[str], likely: Iterable[str] = (), things: Iterable[str] = ()
    ) -> None:
        """`likely`: those that are meant where others are as near; `things`: those that people abbreviate."""
        self._things = frozenset(things)
        self._likely = frozenset(likely)
        self._known = self._likely.union(words)
        self._shelves: dict[tuple[str, int], list[tuple[str, int]]] = {}
        for word in sorted(self._known):
            if len(word) >= _ONE_ERROR_FROM and word.isalpha():
                shelf = self._shelves.setdefault((word[0], len(word)), [])
                shelf.append((word, _letters(word)))
        self._answers: dict[str, tuple[str, int]] = {}

    def __contains__(self, word: str) -> bool:
        return word in self._known

    def correct(self, word: str) -> tuple[str, int]:
        """The nearest known word and how many errors lie between; the word itself and 0 if none is near."""
        if word in self._known or len(word) < _ONE_ERROR_FROM or not word.isalpha():
            return word, 0
        if word not in self._answers:
            if len(self._answers) >= _MOST_KEPT:
                self._answers.clear()
            self._answers[word] = self._nearest(word)
        return self._answers[word]

    def written_out(self, word: str) -> str:
        """The thing that an abbreviation stands for: `insp`, `invs`, `qte`. The word itself if it is none."""
        many = len(word) > _SHORTEST and word.endswith("s")
        for short, ending in ((word, ""), (word[:-1], "s")) if many else ((word, ""),):
            meant = {each for each in self._things if _abbreviates(short, each)}
            shortest = min(meant, key=lambda each: (len(each), each), default="")
            if shortest and all(each.startswith(shortest[:-1]) for each in meant):
                return shortest + ending
        return word

    def _nearest(self, word: str) -> tuple[str, int]:
        allowed = 2 if len(word) >= _TWO_ERRORS_FROM else 1
        near = ((distance(word, each, allowed), each) for each in self._alike(word, allowed))
        found = [
            (errors, each not in self._likely, sorted(each) != sorted(word), each)
            for errors, each in near
            if errors <= (allowed if len(each) >= _TWO_ERRORS_FROM - 1 else 1)
        ]
        errors, _, _, best = min(found, default=(0, True, True, word))
        return best, errors

    def _alike(self, word: str, allowed: int) -> Iterable[str]:
        mask = _letters(word)
        # A first letter is seldom wrong, but the first two are often in the wrong order.
        for first in dict.fromkeys((word[0], word[1])):
            for length in range(len(word) - allowed, len(word) + allowed + 1):
                for candidate, letters in self._shelves.get((first, length), ()):
                    swapped = candidate[:2] == word[1::-1]
                    if (first == word[0] or swapped) and (
                        mask ^ letters
                    ).bit_count() <= 2 * allowed:
                        yield candidate


def _abbreviates(short: str, word: str) -> bool:
    """`insp` is how a word begins; `qte` and `txt` are its consonants, perhaps with its last letter."""
    if len(short) < _SHORTEST or len(short) >= len(word) or short[0] != word[0]:
        return False
    if word.startswith(short):
        return True
    left = iter(word)
    inside = all(letter in left for letter in short)
    return inside and short[-1] in (word[-1], *"tgdk") and not _VOWELS.intersection(short[1:-1])


def distance(one: str, other: str, most: int) -> int:
    """Letters inserted, left out, replaced or swapped with their neighbour; `most + 1` when there are more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, against in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
