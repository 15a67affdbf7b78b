"""A text as the finders read it: smoothed without moving a character, and cut into words."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

_WORD = re.compile(r"[^\W_](?:[\w\u0300-\u036f]|['\-](?=[^\W_]))*")
_SPACES = re.compile(r"[ \n]+")
_LOOKALIKES = {
    ord(odd): plain
    for odds, plain in (("‘’ʼ`´", "'"), ("“”„«»", '"'), ("‐‑‒–—−", "-"))
    for odd in odds
}


class _Smoothing(dict[int, str]):
    """Code point → the one character it is read as. Filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = read_as = _LOOKALIKES.get(code) or _plain(chr(code))
        return read_as


def _plain(character: str) -> str:
    # Controls, bidirectional marks and zero-width characters are invisible: what they part is two words.
    if character != "\n" and unicodedata.category(character) in {
        "Cc",
        "Cf",
        "Cs",
        "Zs",
        "Zl",
        "Zp",
    }:
        return " "
    digit = unicodedata.digit(character, None)
    if digit is not None and character.isdecimal():
        return str(digit)
    folded = unicodedata.normalize("NFKC", character)
    return folded if len(folded) == 1 else character


_SMOOTHED = _Smoothing()


class Word(NamedTuple):
    """A run of letters and digits, apostrophes and dashes inside it included."""

    text: str
    lower: str
    start: int
    end: int

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


class Passage:
    """One text with its words. Offsets are those of the text that was given."""

    def __init__(self, text: str, now: datetime) -> None:
        self.text = text
        self.now = now
        self.smooth = smoothed(text)
        # Some letters are longer in lower case ("İ"); offsets must stay what they are.
        lower = self.smooth.lower()
        self.lower = (
            lower
            if len(lower) == len(text)
            else "".join(
                small if len(small := letter.lower()) == 1 else letter for letter in self.smooth
            )
        )

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return tuple(
            Word(found[0], self.lower[found.start() : found.end()], found.start(), found.end())
            for found in _WORD.finditer(self.smooth)
        )

    @cached_property
    def shouted(self) -> bool:
        """Whether capitals say nothing, because there is hardly anything else."""
        letters = [letter for letter in self.smooth[:2_000] if letter.isalpha()]
        return len(letters) > 3 and sum(map(str.isupper, letters)) > 0.8 * len(letters)

    @cached_property
    def _starts(self) -> dict[int, int]:
        return {word.start: index for index, word in enumerate(self.words)}

    def index_at(self, start: int) -> int | None:
        """The number of the word that starts there."""
        return self._starts.get(start)

    def gap(self, index: int) -> str:
        """What stands between this word and the one before it."""
        before = self.words[index - 1].end if index else 0
        return self.smooth[before : self.words[index].start]

    def joined(self, index: int) -> bool:
        """Whether only blanks part this word from the one before it."""
        return index > 0 and self.gap(index) == " " * len(self.gap(index))

    def before(self, start: int, count: int) -> list[Word]:
        """The words that end before `start`, nearest first."""
        index = bisect_right(self._ends, start)
        return list(self.words[max(index - count, 0) : index][::-1])

    def after(self, end: int, count: int) -> tuple[Word, ...]:
        """The words that start at `end` or later, nearest first."""
        index = bisect_left(self._begins, end)
        return self.words[index : index + count]

    def between(self, start: int, end: int) -> tuple[Word, ...]:
        """The words that start in this part of the text."""
        return self.words[bisect_left(self._begins, start) : bisect_left(self._begins, end)]

    @cached_property
    def _begins(self) -> list[int]:
        return [word.start for word in self.words]

    @cached_property
    def _ends(self) -> list[int]:
        return [word.end for word in self.words]


def smoothed(text: str) -> str:
    """The text with plain blanks, quotes, dashes and digits; no character is moved."""
    return text.translate(_SMOOTHED)


def tidy(text: str) -> str:
    """The text in one line, composed, with nothing invisible in it."""
    smooth = "".join(" " if _hidden(letter) else letter for letter in text)
    return _SPACES.sub(" ", unicodedata.normalize("NFC", smooth)).strip()


def verbatim(text: str) -> str:
    """The text as it was written, without characters that nobody sees. Lines stay lines."""
    return "".join(letter for letter in text if letter in "\n\u200d" or not _hidden(letter)).strip()


def _hidden(letter: str) -> bool:
    return not letter.isprintable() and letter != "\n"


def plain_key(word: str) -> str:
    """A word without case and accents, for comparing."""
    if word.isascii():
        return word.lower()
    apart = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))
