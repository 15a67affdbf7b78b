"""Names of people and firms, by their capitals."""

from __future__ import annotations

from collections.abc import Iterator

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.name_ground import ARTICLES, WANTING, NameGround
from podium.flows.operator.judgement.fields.plain_words import (
    FUNCTION_WORDS,
    GIVEN_NAMES_THAT_ARE_WORDS,
    MONTHS,
    NEVER_NAMES,
    PARTICLES,
    TITLES,
    VERBS,
    words_in,
)

_LONGEST = 5
_AFTER_ANYBODY = FUNCTION_WORDS | VERBS
_BEFORE_NAMES = words_in(
    "for to with from by customer client named called contact name lead caller owner homeowner mr mrs ms dr"
)
_AFTER_NAMES = words_in(
    "will can is has wants wanted needs rang called from said just was should could would accepted paid signed phoned texted emailed"
)
_FIRM_ENDINGS = words_in("pty ltd inc constructions plumbing")
_DOTTED = TITLES | {"st"}
_NAMES_IN_NAMES = words_in("an do my so long will may")
"""Small words that end names when they are capitalised, such as `Nguyễn Văn An`."""


class CapitalNames:
    """Finds runs of capitalised words that are nothing else."""

    def __init__(self, ground: NameGround) -> None:
        self._ground, self._passage = ground, ground.passage

    def found(self) -> Iterator[Entity]:
        index = 0
        while index < len(self._passage.words):
            if not self._passage.words[index].capital or self._blocked(index):
                index += 1
                continue
            end = self._end_of_run(index)
            certainty = self._certainty(index, end)
            if certainty:
                yield self._ground.entity(index, end, certainty)
            index = end

    def _end_of_run(self, index: int) -> int:
        """The word after the last that belongs to the name beginning here."""
        end = index + 1
        while end < len(self._passage.words) and end - index < _LONGEST and self._continues(end):
            end += 1
        while end > index + 1 and self._passage.words[end - 1].lower in PARTICLES:
            end -= 1
        return end

    def _continues(self, index: int) -> bool:
        word, before = self._passage.words[index], self._passage.words[index - 1]
        dotted = self._passage.gap(index).strip(" ") == "." and (
            before.lower in _DOTTED or len(before.text) == 1
        )
        if not self._passage.joined(index) and not dotted:
            return False
        if before.lower.endswith("'s"):
            return False
        if word.lower in PARTICLES and not word.capital:
            return self._leads_to_capital(index)
        if word.capital and (word.lower in _NAMES_IN_NAMES or self._ends_a_name(index)):
            return True
        return (word.capital and not self._blocked(index)) or word.lower in _FIRM_ENDINGS

    def _ends_a_name(self, index: int) -> bool:
        """`Ahmed Said`: a verb with a capital in a text that has small letters too, and nothing behind it."""
        word, words = self._passage.words[index], self._passage.words
        last = index + 1 >= len(words) or not self._passage.joined(index + 1)
        known = word.lower in VERBS or self._ground.of_pack(word.lower)
        thing = word.lower in self._ground.lexicon.id_words
        return last and known and not thing and not word.text.isupper()

    def _leads_to_capital(self, index: int) -> bool:
        """`van der Berg`: small words that a capitalised one follows."""
        following = self._passage.words[index + 1 : index + 3]
        if following and following[0].lower in PARTICLES and not following[0].capital:
            following = following[1:]
        return bool(following) and following[0].capital

    def _certainty(self, index: int, end: int) -> int:
        """0: a capital letter alone does not make a name of what begins a sentence."""
        if self._describes(index, end):
            return 0
        if self._ground.near_label(self._passage.words[end - 1].end, 1) or self._cued(index):
            return 60
        opens = index == 0 or any(mark in self._passage.gap(index) for mark in ".!?\n")
        if opens and end == index + 1:
            return 35 if self._alone(end) else 0
        return 45

    def _describes(self, index: int, end: int) -> bool:
        """`a Colorbond roof`, `wants Colorbond`: a thing or its make, and nobody."""
        words = self._passage.words
        after = words[end] if end < len(words) and self._passage.joined(end) else None
        if words[end - 1].lower.endswith("'s") or (after and after.lower in self._ground.arguments):
            return False
        before = words[index - 1].lower if index else ""
        # `I want Lachlan looking after it`: somebody is to do something.
        does = after is not None and (after.lower == "to" or after.lower.endswith("ing"))
        if (before in WANTING and not does) or (before in ARTICLES and end == index + 1):
            return True
        if end > index + 1 or after is None or after.capital or does or self._cued(index):
            return False
        return after.text.isalpha() and after.lower not in _AFTER_ANYBODY

    def _alone(self, index: int) -> bool:
        """Whether nothing, a comma, or what only people do comes after it."""
        words = self._passage.words
        return (
            index >= len(words)
            or self._passage.gap(index).strip() == ","
            or words[index].lower in _AFTER_NAMES
        )

    def _cued(self, index: int) -> bool:
        if index == 0:
            return False
        before, gap = self._passage.words[index - 1], self._passage.gap(index).strip()
        return gap == ":" or (before.lower in _BEFORE_NAMES and gap in {"", ".", "-", ","})

    def _blocked(self, index: int) -> bool:
        """Whether the word can be no part of a name here."""
        word = self._passage.words[index]
        lower = word.lower.removesuffix("'s")
        if (
            not word.text[0].isalpha()
            or any(letter.isdigit() for letter in word.text)
            or word.start in self._ground.places
        ):
            return True
        if word.text.isupper() and len(word.text) > 1 and not self._ground.near_label(word.end, 24):
            return True
        if word.capital and lower in MONTHS & GIVEN_NAMES_THAT_ARE_WORDS:
            return not self._first_of_two(index)
        if word.capital and index and lower in GIVEN_NAMES_THAT_ARE_WORDS:
            return False
        if lower in NEVER_NAMES:
            return True
        return self._ground.of_pack(lower) and not self._begins_behind_colon(index)

    def _begins_behind_colon(self, index: int) -> bool:
        """`customer: Body Corp Services`: the pack knows the word, but here it begins a name."""
        following = self._passage.words[index + 1 : index + 2]
        joined = bool(following) and self._passage.joined(index + 1) and following[0].capital
        return joined and self._passage.gap(index).strip() == ":"

    def _first_of_two(self, index: int) -> bool:
        """`April Jones`, but not `April 3` or `3 April`."""
        after = index + 1
        if after >= len(self._passage.words) or not self._passage.joined(after):
            return False
        other = self._passage.words[after]
        return other.capital and other.text.isalpha() and other.lower not in NEVER_NAMES
