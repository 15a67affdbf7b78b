"""Names of people and firms, by their capitals or where only a name can stand."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from podium.jobs.operator.judgement.fields.pack_lexicon import Lexicon
from podium.jobs.operator.judgement.fields.tokenized_text import (
    FUNCTION_WORDS,
    GIVEN_NAMES_THAT_ARE_WORDS,
    MONTHS,
    NEVER_NAMES,
    PARTICLES,
    TITLES,
    VERBS,
    Entity,
    Passage,
    tidy,
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
        self, tokenized: Passage, lexicon: Lexicon, anchors: list[Entity], suburbs: list[Entity]
    ) -> None:
        self.passage, self.lexicon, self.anchors = tokenized, lexicon, anchors
        self.arguments = lexicon.arguments
        self.places = frozenset(
            at
            for suburb in suburbs
            if suburb.certainty > 38
            for at in range(suburb.start, suburb.end)
        )
        self._numbers = sorted(anchor.start for anchor in anchors)
        self._labels = sorted({self.label_start(start) for start in self._numbers})

    def label_start(self, start: int) -> int:
        """Where the words end that stand before a number and its label, such as `ph.`"""
        for token in self.passage.before(start, 4):
            ended = (
                ". " in self.passage.smooth[token.end : start] and token.lower not in _ABBREVIATED
            )
            if ended or token.lower not in _PHONE_LABELS:
                return token.end
            start = token.start
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
        token = self.passage.words[index]
        if token.lower in PARTICLES:
            return True
        if token.capital and index and token.lower in GIVEN_NAMES_THAT_ARE_WORDS:
            return True
        plain = token.text.replace("'", "").replace("-", "")
        if not plain.isalpha() or len(plain) < 2 or token.start in self.places:
            return False
        return token.lower not in _NOBODY and not self.of_pack(token.lower)

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
        token
        if index and token in PARTICLES
        else "'".join(_capital(part) for part in token.split("'"))
        for index, token in enumerate(name.lower().split(" "))
    )


def _capital(token: str) -> str:
    return "-".join(part[:1].upper() + part[1:] for part in token.split("-"))


_MAX_LENGTH = 5
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

    def __init__(self, context: NameGround) -> None:
        self._ground, self._passage = context, context.passage

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
        while end < len(self._passage.words) and end - index < _MAX_LENGTH and self._continues(end):
            end += 1
        while end > index + 1 and self._passage.words[end - 1].lower in PARTICLES:
            end -= 1
        return end

    def _continues(self, index: int) -> bool:
        token, before = self._passage.words[index], self._passage.words[index - 1]
        dotted = self._passage.gap(index).strip(" ") == "." and (
            before.lower in _DOTTED or len(before.text) == 1
        )
        if not self._passage.joined(index) and not dotted:
            return False
        if before.lower.endswith("'s"):
            return False
        if token.lower in PARTICLES and not token.capital:
            return self._leads_to_capital(index)
        if token.capital and (token.lower in _NAMES_IN_NAMES or self._ends_a_name(index)):
            return True
        return (token.capital and not self._blocked(index)) or token.lower in _FIRM_ENDINGS

    def _ends_a_name(self, index: int) -> bool:
        """`Ahmed Said`: a verb with a capital in a text that has small letters too, and nothing behind it."""
        token, tokens = self._passage.words[index], self._passage.words
        last = index + 1 >= len(tokens) or not self._passage.joined(index + 1)
        recognized = token.lower in VERBS or self._ground.of_pack(token.lower)
        thing = token.lower in self._ground.lexicon.id_words
        return last and recognized and not thing and not token.text.isupper()

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
        opens = index == 0 or any(sign in self._passage.gap(index) for sign in ".!?\n")
        if opens and end == index + 1:
            return 35 if self._alone(end) else 0
        return 45

    def _describes(self, index: int, end: int) -> bool:
        """`a Colorbond roof`, `wants Colorbond`: a thing or its make, and nobody."""
        tokens = self._passage.words
        after = tokens[end] if end < len(tokens) and self._passage.joined(end) else None
        if tokens[end - 1].lower.endswith("'s") or (
            after and after.lower in self._ground.arguments
        ):
            return False
        before = tokens[index - 1].lower if index else ""
        # `I want Lachlan looking after it`: somebody is to do something.
        does = after is not None and (after.lower == "to" or after.lower.endswith("ing"))
        if (before in WANTING and not does) or (before in ARTICLES and end == index + 1):
            return True
        if end > index + 1 or after is None or after.capital or does or self._cued(index):
            return False
        return after.text.isalpha() and after.lower not in _AFTER_ANYBODY

    def _alone(self, index: int) -> bool:
        """Whether nothing, a comma, or what only people do comes after it."""
        tokens = self._passage.words
        return (
            index >= len(tokens)
            or self._passage.gap(index).strip() == ","
            or tokens[index].lower in _AFTER_NAMES
        )

    def _cued(self, index: int) -> bool:
        if index == 0:
            return False
        before, gap = self._passage.words[index - 1], self._passage.gap(index).strip()
        return gap == ":" or (before.lower in _BEFORE_NAMES and gap in {"", ".", "-", ","})

    def _blocked(self, index: int) -> bool:
        """Whether the word can be no part of a name here."""
        token = self._passage.words[index]
        lower = token.lower.removesuffix("'s")
        if (
            not token.text[0].isalpha()
            or any(character.isdigit() for character in token.text)
            or token.start in self._ground.places
        ):
            return True
        if (
            token.text.isupper()
            and len(token.text) > 1
            and not self._ground.near_label(token.end, 24)
        ):
            return True
        if token.capital and lower in MONTHS & GIVEN_NAMES_THAT_ARE_WORDS:
            return not self._first_of_two(index)
        if token.capital and index and lower in GIVEN_NAMES_THAT_ARE_WORDS:
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


_ONLY_BEFORE_NAMES = words_in("named called customer client caller homeowner")
_ENDS_A_SMALL_NAME = words_in("in at from on")
_GIVING = words_in("assign asign assigned reassign give hand allocate delegate pass")


class SmallNames:
    """Finds names by what stands around them."""

    def __init__(self, context: NameGround) -> None:
        self._ground, self._passage = context, context.passage

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
        tokens = self._passage.words
        return (
            index > 1
            and tokens[index - 1].lower in GIVEN_NAMES_THAT_ARE_WORDS
            and tokens[index - 2].lower in self._ground.lexicon.id_words
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
        tokens = self._passage.words
        if not any(token.lower in _GIVING for token in tokens[:8]):
            return
        for index in range(max(1, len(tokens) - 4), len(tokens)):
            if (
                tokens[index - 1].lower == "to"
                and self._ground.small(index)
                and self._ends_there(index + 1)
            ):
                yield self._ground.entity(index, index + 1, 41)

    def _ends_there(self, index: int) -> bool:
        tokens = self._passage.words
        return (
            index >= len(tokens)
            or self._passage.gap(index).strip() != ""
            or tokens[index].lower in FUNCTION_WORDS
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
        token = self._passage.words[end]
        follows = token.lower in _ENDS_A_SMALL_NAME or token.start in self._ground.places
        numbered = self._ground.near_number(self._passage.words[end - 1].end, 3)
        return follows or numbered or (sure and self._passage.gap(end).strip() != "")
