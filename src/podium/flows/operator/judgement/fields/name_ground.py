"""What both finders of names know of a passage."""

from __future__ import annotations

from bisect import bisect_left

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.lexicon import Lexicon
from podium.flows.operator.judgement.fields.passage import Passage, tidy
from podium.flows.operator.judgement.fields.plain_words import (
    GIVEN_NAMES_THAT_ARE_WORDS,
    NEVER_NAMES,
    PARTICLES,
    words_in,
)

_PHONE_LABELS = words_in(
    "ph phone mob mobile cell tel telephone number no num on at is his her their its the contact call"
)
_ABBREVIATED = words_in("ph mob tel no num")
_FIRM_WORDS = words_in("pty ltd co inc group constructions building builders plumbing")
ARTICLES = words_in("a an the some any")
WANTING = words_in("wants wanted want needs need likes prefers about has have regarding")
"""What comes after these is a thing, not a person."""
_NOBODY = NEVER_NAMES - _FIRM_WORDS


class NameGround:
    """One passage; `anchors` are the phones and e-mails in it, `places` its suburbs."""

    def __init__(
        self, passage: Passage, lexicon: Lexicon, anchors: list[Entity], places: list[Entity]
    ) -> None:
        self.passage, self.lexicon, self.anchors = passage, lexicon, anchors
        self.arguments = lexicon.arguments
        self.places = frozenset(
            at for place in places if place.certainty > 38 for at in range(place.start, place.end)
        )
        self._numbers = sorted(anchor.start for anchor in anchors)
        self._labels = sorted({self.label_start(start) for start in self._numbers})

    def label_start(self, start: int) -> int:
        """Where the words end that stand before a number and its label, such as `ph.`"""
        for word in self.passage.before(start, 4):
            ended = ". " in self.passage.smooth[word.end : start] and word.lower not in _ABBREVIATED
            if ended or word.lower not in _PHONE_LABELS:
                return word.end
            start = word.start
        return 0

    def near_label(self, end: int, most: int) -> bool:
        """Whether a number with its label begins at most so many characters after `end`."""
        return _reaches(self._labels, end, most)

    def near_number(self, end: int, most: int) -> bool:
        return _reaches(self._numbers, end, most)

    def of_pack(self, lower: str) -> bool:
        """Whether the pack has this word for something of its own; words of firms' names are everybody's."""
        return lower in self.lexicon.pack_words and lower not in _FIRM_WORDS

    def small(self, index: int) -> bool:
        """A word in any case that may be part of a name."""
        word = self.passage.words[index]
        if word.lower in PARTICLES:
            return True
        if word.capital and index and word.lower in GIVEN_NAMES_THAT_ARE_WORDS:
            return True
        plain = word.text.replace("'", "").replace("-", "")
        if not plain.isalpha() or len(plain) < 2 or word.start in self.places:
            return False
        return word.lower not in _NOBODY and not self.of_pack(word.lower)

    def entity(self, index: int, end: int, certainty: int) -> Entity:
        """The name from one word up to another, without a possessive `'s`."""
        start, stop = self.passage.words[index].start, self.passage.words[end - 1].end
        if self.passage.smooth[stop - 2 : stop].lower() == "'s" and stop - start > 3:
            stop -= 2
        text = self.passage.text[start:stop]
        return Entity("name", spelled(tidy(text)), text, start, stop, certainty)


def _reaches(sorted_starts: list[int], end: int, most: int) -> bool:
    at = bisect_left(sorted_starts, end)
    return at < len(sorted_starts) and sorted_starts[at] - end < most


def spelled(name: str) -> str:
    """The name with capitals where somebody wrote none, or nothing else."""
    if name != name.lower() and (name != name.upper() or len(name) < 4):
        return name
    return " ".join(
        word
        if index and word in PARTICLES
        else "'".join(_capital(part) for part in word.split("'"))
        for index, word in enumerate(name.lower().split(" "))
    )


def _capital(word: str) -> str:
    return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))
