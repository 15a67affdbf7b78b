"""Names without capitals, where only a name can stand."""

from __future__ import annotations

from collections.abc import Iterator

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.name_ground import ARTICLES, WANTING, NameGround
from podium.flows.operator.judgement.fields.plain_words import (
    FUNCTION_WORDS,
    GIVEN_NAMES_THAT_ARE_WORDS,
    words_in,
)

_ONLY_BEFORE_NAMES = words_in("named called customer client caller homeowner")
_ENDS_A_SMALL_NAME = words_in("in at from on")
_GIVING = words_in("assign asign assigned reassign give hand allocate delegate pass")


class SmallNames:
    """Finds names by what stands around them."""

    def __init__(self, ground: NameGround) -> None:
        self._ground, self._passage = ground, ground.passage

    def found(self) -> Iterator[Entity]:
        yield from self._before_anchors()
        yield from self._after_words_for_people()
        yield from self._after_anchors()
        yield from self._given_to()

    def _before_anchors(self) -> Iterator[Entity]:
        """`bob lang 0411 222 333`: what stands right before a number is whose it is."""
        for anchor in self._ground.anchors:
            end = self._index_ending_at(self._ground.label_start(anchor.start))
            start = end
            while start > 0 and end - start < 3 and self._ground.small(start - 1):
                if start < end and not self._passage.joined(start):
                    break
                start -= 1
            if 0 < start == end - 1 and self._given_name(start):
                start -= 1
            if start and self._passage.words[start - 1].lower in WANTING | ARTICLES:
                continue
            if start < end and (anchor.kind == "phone" or self._passage.words[start].capital):
                yield self._ground.entity(start, end, 57)

    def _given_name(self, index: int) -> bool:
        """`new lead bill murphy`: a word that is a name too, between a word for people and a family name."""
        words = self._passage.words
        return (
            index > 1
            and words[index - 1].lower in GIVEN_NAMES_THAT_ARE_WORDS
            and words[index - 2].lower in self._ground.lexicon.id_words
            and self._passage.joined(index)
        )

    def _index_ending_at(self, end: int) -> int:
        near = self._passage.before(end, 1)
        if not near or near[0].end != end:
            return 0
        index = self._passage.index_at(near[0].start)
        return 0 if index is None else index + 1

    def _after_words_for_people(self) -> Iterator[Entity]:
        """`new lead sarah jones in clayton`, `a customer called bob`."""
        for index in range(1, len(self._passage.words)):
            before = self._passage.words[index - 1].lower
            named = before == "name" and self._passage.gap(index).strip() == ":"
            sure = named or before in _ONLY_BEFORE_NAMES
            if not sure and before not in self._ground.lexicon.id_words:
                continue
            end = self._end_of_small(index)
            if (
                end > index
                and self._passage.gap(index).strip() in {"", ":", ","}
                and self._ends_well(index, end, sure)
            ):
                yield self._ground.entity(index, end, 50)

    def _after_anchors(self) -> Iterator[Entity]:
        """`0411 222 333 mary springvale`: between a number and a place there is a name."""
        for anchor in self._ground.anchors:
            after = self._passage.after(anchor.end, 1)
            index = self._passage.index_at(after[0].start) if after else None
            if index is None:
                continue
            end = self._end_of_small(index)
            followed = self._passage.words[end : end + 1]
            if end > index and followed and followed[0].start in self._ground.places:
                yield self._ground.entity(index, end, 42)

    def _given_to(self) -> Iterator[Entity]:
        """`give repair 12 to dave`: the last word is whom it is given to."""
        words = self._passage.words
        if not any(word.lower in _GIVING for word in words[:8]):
            return
        for index in range(max(1, len(words) - 4), len(words)):
            if (
                words[index - 1].lower == "to"
                and self._ground.small(index)
                and self._ends_there(index + 1)
            ):
                yield self._ground.entity(index, index + 1, 41)

    def _ends_there(self, index: int) -> bool:
        words = self._passage.words
        return (
            index >= len(words)
            or self._passage.gap(index).strip() != ""
            or words[index].lower in FUNCTION_WORDS
        )

    def _end_of_small(self, index: int) -> int:
        """The word after the last of up to three that may be a name."""
        end = index
        while end < len(self._passage.words) and end - index < 3 and self._ground.small(end):
            if end > index and not self._passage.joined(end):
                break
            end += 1
        return end

    def _ends_well(self, index: int, end: int, sure: bool) -> bool:
        """Whether what follows shows that a name was said; after `called` it may be the end."""
        if end >= len(self._passage.words):
            return sure or self._passage.gap(index).strip() == ":"
        word = self._passage.words[end]
        follows = word.lower in _ENDS_A_SMALL_NAME or word.start in self._ground.places
        numbered = self._ground.near_number(self._passage.words[end - 1].end, 3)
        return follows or numbered or (sure and self._passage.gap(end).strip() != "")
