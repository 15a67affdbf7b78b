"""Names of people and firms, by their capitals or where only a name can stand."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from podium.jobs.operator.judgement.fields.pack_lexicon import Lexicon
from podium.jobs.operator.judgement.fields.tokenized_text import (
    AMBIGUOUS_NAMES,
    MONTHS,
    NEVER_NAMES,
    PARTICLES,
    STOPWORDS,
    TITLES,
    VERBS,
    Entity,
    TokenizedText,
    tidy,
    token_set,
)

_PHONE_LABELS = token_set(
    "ph phone mob mobile cell tel telephone number no num on at is his her their its the contact call best"
)
_ABBREVIATED = token_set("ph mob tel no num")
_FIRM_PARTS = token_set("pty ltd co inc group constructions building builders plumbing")
ARTICLES = token_set("a an the some any")
WANTING = token_set("wants wanted want needs need likes prefers about has have regarding")
"""Words followed by a thing, not by a person."""
_NOBODY = NEVER_NAMES - _FIRM_PARTS


class NameContext:
    """One text; `anchors` are the phones and e-mails in it, `suburbs` its suburbs."""

    def __init__(
        self,
        tokenized: TokenizedText,
        lexicon: Lexicon,
        anchors: list[Entity],
        suburbs: list[Entity],
    ) -> None:
        self.tokenized, self.lexicon, self.anchors = tokenized, lexicon, anchors
        self.arguments = lexicon.arguments
        self.suburb_offsets = frozenset(
            at
            for suburb in suburbs
            if suburb.certainty > 38
            for at in range(suburb.start, suburb.end)
        )
        self._numbers = sorted(anchor.start for anchor in anchors)
        self._labels = sorted({self.label_start(start) for start in self._numbers})

    def label_start(self, start: int) -> int:
        """Find the end of the words before a number and its label, such as `ph.`"""
        for token in self.tokenized.before(start, 4):
            ended = (
                ". " in self.tokenized.smooth[token.end : start] and token.lower not in _ABBREVIATED
            )
            if ended or token.lower not in _PHONE_LABELS:
                return token.end
            start = token.start
        return 0

    def near_label(self, end: int, most: int) -> bool:
        """Return whether a number with its label begins at most so many characters after `end`."""
        return _reaches(self._labels, end, most)

    def near_number(self, end: int, most: int) -> bool:
        return _reaches(self._numbers, end, most)

    def of_pack(self, lower: str) -> bool:
        """Return whether the pack has this word for something of its own; words of firms' names are everybody's."""
        return lower in self.lexicon.pack_tokens and lower not in _FIRM_PARTS

    def small(self, index: int) -> bool:
        """A word in any case that may be part of a name."""
        token = self.tokenized.tokens[index]
        if token.lower in PARTICLES:
            return True
        if token.capital and index and token.lower in AMBIGUOUS_NAMES:
            return True
        plain = token.text.replace("'", "").replace("-", "")
        if not plain.isalpha() or len(plain) < 2 or token.start in self.suburb_offsets:
            return False
        return token.lower not in _NOBODY and not self.of_pack(token.lower)

    def entity(self, index: int, end: int, certainty: int) -> Entity:
        """The name from one word up to another, without a possessive `'s`."""
        start, stop = self.tokenized.tokens[index].start, self.tokenized.tokens[end - 1].end
        if self.tokenized.smooth[stop - 2 : stop].lower() == "'s" and stop - start > 3:
            stop -= 2
        text = self.tokenized.text[start:stop]
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
_AFTER_ANYBODY = STOPWORDS | VERBS
_BEFORE_NAMES = token_set(
    "for to with from by customer client named called contact name lead caller owner homeowner mr mrs ms dr"
)
_AFTER_NAMES = token_set(
    "will can is has wants wanted needs rang called from said just was should could would accepted paid signed phoned texted emailed takes"
)
_ACTS = token_set("to take takes handle handles")
"""Words behind somebody who is to do something: `have Brendan take over`."""
_FIRM_ENDINGS = token_set("pty ltd inc constructions plumbing")
_DOTTED = TITLES | {"st"}
_NAMES_IN_NAMES = token_set("an do my so long will may")
"""Small words that end names when they are capitalised, such as `Nguyễn Văn An`."""


class CapitalNames:
    """Finds runs of capitalised words that are nothing else."""

    def __init__(self, context: NameContext) -> None:
        self._context, self._tokenized = context, context.tokenized

    def entities(self) -> Iterator[Entity]:
        index = 0
        while index < len(self._tokenized.tokens):
            if not self._tokenized.tokens[index].capital or self._blocked(index):
                index += 1
                continue
            end = self._end_of_run(index)
            certainty = self._certainty(index, end)
            if certainty:
                yield self._context.entity(index, end, certainty)
            index = end

    def _end_of_run(self, index: int) -> int:
        """The word after the last that belongs to the name beginning here."""
        end = index + 1
        while (
            end < len(self._tokenized.tokens) and end - index < _MAX_LENGTH and self._continues(end)
        ):
            end += 1
        while end > index + 1 and self._tokenized.tokens[end - 1].lower in PARTICLES:
            end -= 1
        return end

    def _continues(self, index: int) -> bool:
        token, before = self._tokenized.tokens[index], self._tokenized.tokens[index - 1]
        dotted = self._tokenized.gap(index).strip(" ") == "." and (
            before.lower in _DOTTED or len(before.text) == 1
        )
        if not self._tokenized.joined(index) and not dotted:
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
        token, tokens = self._tokenized.tokens[index], self._tokenized.tokens
        last = index + 1 >= len(tokens) or not self._tokenized.joined(index + 1)
        recognized = token.lower in VERBS or self._context.of_pack(token.lower)
        thing = token.lower in self._context.lexicon.kinds_by_name
        return last and recognized and not thing and not token.text.isupper()

    def _leads_to_capital(self, index: int) -> bool:
        """`van der Berg`: small words that a capitalised one follows."""
        following = self._tokenized.tokens[index + 1 : index + 3]
        if following and following[0].lower in PARTICLES and not following[0].capital:
            following = following[1:]
        return bool(following) and following[0].capital

    def _certainty(self, index: int, end: int) -> int:
        """0: a capital letter alone does not make a name of what begins a sentence."""
        if self._describes(index, end):
            return 0
        if self._context.near_label(self._tokenized.tokens[end - 1].end, 1) or self._cued(index):
            return 60
        opens = index == 0 or any(sign in self._tokenized.gap(index) for sign in ".!?\n")
        if opens and end == index + 1:
            return 35 if self._alone(end) else 0
        return 45

    def _describes(self, index: int, end: int) -> bool:
        """`a Colorbond roof`, `wants Colorbond`: a thing or its make, and nobody."""
        tokens = self._tokenized.tokens
        after = tokens[end] if end < len(tokens) and self._tokenized.joined(end) else None
        if tokens[end - 1].lower.endswith("'s") or (
            after and after.lower in self._context.arguments
        ):
            return False
        before = tokens[index - 1].lower if index else ""
        # `I want Lachlan looking after it`: somebody is to do something.
        does = after is not None and (after.lower in _ACTS or after.lower.endswith("ing"))
        if (before in WANTING and not does) or (before in ARTICLES and end == index + 1):
            return True
        if end > index + 1 or after is None or after.capital or does or self._cued(index):
            return False
        return after.text.isalpha() and after.lower not in _AFTER_ANYBODY

    def _alone(self, index: int) -> bool:
        """Return whether nothing, a comma, or what only people do comes after it."""
        tokens = self._tokenized.tokens
        return (
            index >= len(tokens)
            or self._tokenized.gap(index).strip() == ","
            or tokens[index].lower in _AFTER_NAMES
        )

    def _cued(self, index: int) -> bool:
        if index == 0:
            return False
        before, gap = self._tokenized.tokens[index - 1], self._tokenized.gap(index).strip()
        return gap == ":" or (before.lower in _BEFORE_NAMES and gap in {"", ".", "-", ","})

    def _blocked(self, index: int) -> bool:
        """Return whether the word can be no part of a name here."""
        token = self._tokenized.tokens[index]
        lower = token.lower.removesuffix("'s")
        if (
            not token.text[0].isalpha()
            or any(character.isdigit() for character in token.text)
            or token.start in self._context.suburb_offsets
        ):
            return True
        if (
            token.text.isupper()
            and len(token.text) > 1
            and not self._context.near_label(token.end, 24)
        ):
            return True
        if token.capital and lower in MONTHS & AMBIGUOUS_NAMES:
            return not self._first_of_two(index)
        if token.capital and index and lower in AMBIGUOUS_NAMES:
            return False
        if lower in NEVER_NAMES:
            return True
        return self._context.of_pack(lower) and not self._begins_behind_colon(index)

    def _begins_behind_colon(self, index: int) -> bool:
        """`customer: Body Corp Services`: the pack knows the word, but here it begins a name."""
        following = self._tokenized.tokens[index + 1 : index + 2]
        joined = bool(following) and self._tokenized.joined(index + 1) and following[0].capital
        return joined and self._tokenized.gap(index).strip() == ":"

    def _first_of_two(self, index: int) -> bool:
        """`April Jones`, but not `April 3` or `3 April`."""
        after = index + 1
        if after >= len(self._tokenized.tokens) or not self._tokenized.joined(after):
            return False
        other = self._tokenized.tokens[after]
        return other.capital and other.text.isalpha() and other.lower not in NEVER_NAMES


_ONLY_BEFORE_NAMES = token_set("named called customer client caller homeowner")
_ENDS_A_SMALL_NAME = token_set("in at from on")
_GIVING = token_set("assign asign assigned reassign give hand allocate delegate pass")


class SmallNames:
    """Finds names by what stands around them."""

    def __init__(self, context: NameContext) -> None:
        self._context, self._tokenized = context, context.tokenized

    def entities(self) -> Iterator[Entity]:
        yield from self._before_anchors()
        yield from self._after_person_cues()
        yield from self._after_anchors()
        yield from self._assignee()

    def _before_anchors(self) -> Iterator[Entity]:
        """`bob lang 0411 222 333`: what stands right before a number is whose it is."""
        for anchor in self._context.anchors:
            end = self._index_ending_at(self._context.label_start(anchor.start))
            start = end
            while start > 0 and end - start < 3 and self._context.small(start - 1):
                if start < end and not self._tokenized.joined(start):
                    break
                start -= 1
            if 0 < start == end - 1 and self._first_name(start):
                start -= 1
            if start and self._tokenized.tokens[start - 1].lower in WANTING | ARTICLES:
                continue
            if start < end and (anchor.kind == "phone" or self._tokenized.tokens[start].capital):
                yield self._context.entity(start, end, 57)

    def _first_name(self, index: int) -> bool:
        """`new lead bill murphy`: a word that is a name too, between a word for people and a family name."""
        tokens = self._tokenized.tokens
        return (
            index > 1
            and tokens[index - 1].lower in AMBIGUOUS_NAMES
            and tokens[index - 2].lower in self._context.lexicon.kinds_by_name
            and self._tokenized.joined(index)
        )

    def _index_ending_at(self, end: int) -> int:
        near = self._tokenized.before(end, 1)
        if not near or near[0].end != end:
            return 0
        index = self._tokenized.index_at(near[0].start)
        return 0 if index is None else index + 1

    def _after_person_cues(self) -> Iterator[Entity]:
        """`new lead sarah jones in clayton`, `a customer called bob`."""
        for index in range(1, len(self._tokenized.tokens)):
            before = self._tokenized.tokens[index - 1].lower
            named = before == "name" and self._tokenized.gap(index).strip() == ":"
            sure = named or before in _ONLY_BEFORE_NAMES
            if not sure and before not in self._context.lexicon.kinds_by_name:
                continue
            end = self._end_of_small(index)
            if (
                end > index
                and self._tokenized.gap(index).strip() in {"", ":", ","}
                and self._ends_well(index, end, sure)
            ):
                yield self._context.entity(index, end, 50)

    def _after_anchors(self) -> Iterator[Entity]:
        """`0411 222 333 mary springvale`: between a number and a place there is a name."""
        for anchor in self._context.anchors:
            after = self._tokenized.after(anchor.end, 1)
            index = self._tokenized.index_at(after[0].start) if after else None
            if index is None:
                continue
            end = self._end_of_small(index)
            followed = self._tokenized.tokens[end : end + 1]
            if end > index and followed and followed[0].start in self._context.suburb_offsets:
                yield self._context.entity(index, end, 42)

    def _assignee(self) -> Iterator[Entity]:
        """`give repair 12 to dave`: the last word is whom it is given to."""
        tokens = self._tokenized.tokens
        if not any(token.lower in _GIVING for token in tokens[:8]):
            return
        for index in range(max(1, len(tokens) - 4), len(tokens)):
            if (
                tokens[index - 1].lower == "to"
                and self._context.small(index)
                and self._ends_there(index + 1)
            ):
                yield self._context.entity(index, index + 1, 41)

    def _ends_there(self, index: int) -> bool:
        tokens = self._tokenized.tokens
        return (
            index >= len(tokens)
            or self._tokenized.gap(index).strip() != ""
            or tokens[index].lower in STOPWORDS
        )

    def _end_of_small(self, index: int) -> int:
        """The word after the last of up to three that may be a name."""
        end = index
        while end < len(self._tokenized.tokens) and end - index < 3 and self._context.small(end):
            if end > index and not self._tokenized.joined(end):
                break
            end += 1
        return end

    def _ends_well(self, index: int, end: int, sure: bool) -> bool:
        """Return whether what follows shows that a name was said; after `called` it may be the end."""
        if end >= len(self._tokenized.tokens):
            return sure or self._tokenized.gap(index).strip() == ":"
        token = self._tokenized.tokens[end]
        follows = token.lower in _ENDS_A_SMALL_NAME or token.start in self._context.suburb_offsets
        numbered = self._context.near_number(self._tokenized.tokens[end - 1].end, 3)
        return follows or numbered or (sure and self._tokenized.gap(end).strip() != "")
