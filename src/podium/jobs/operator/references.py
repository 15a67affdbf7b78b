"""References of a message: words that name records, noun phrases, pronouns and ordinals. No record is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.core.model import Json
from podium.jobs.operator.judgement.fields import Entity
from podium.jobs.operator.judgement.fields.pack_lexicon import Lexicon
from podium.jobs.operator.judgement.fields.tokenized_text import NEVER_NAMES, STOPWORDS, token_set
from podium.jobs.operator.judgement.ground_check import tokens_of

PERSONS = token_set("him her he she they them his their hers theirs himself herself")
THINGS = token_set("it that this those these its one ones")
_DETERMINERS = token_set("the that this those these his her their our my its")
_POSSESSIVE_PRONOUNS = token_set("his her their its")
_BEFORE_NAMES = token_set("for of to from with at")
_ARTICLES = token_set("the a an this that his her their our my some any")
_ORDINALS: Mapping[str, int] = {
    **{word: number for number, words in enumerate(
        ("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th", "seventh 7th",
         "eighth 8th", "ninth 9th", "tenth 10th"), 1) for word in words.split()},
    "last": -1,
}  # fmt: skip
_FILLERS = token_set("number option please pls thanks choose take")
_CARDINALS = dict(
    zip(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
        range(1, 11),
        strict=True,
    )
)
_CONTRACTED = token_set("what who where when how that there here it let he she one")
"""Words that `'s` is short for `is` behind."""
_NEWEST = token_set("last latest newest recent")
_TOKEN = re.compile(r"[^\W_]+(?:['’\-.@+][^\W_]+)*['’]?")
_VALUES = ("money", "date", "time", "datetime", "period", "number", "postcode", "id")
_NAMING = ("name", "suburb", "address", "phone", "email")
MAX_MODIFIERS = 4
MAX_OPTION = 20


@dataclass(frozen=True)
class Mention:
    """`the Clayton job`, `Sarah's quote`, `her invoice`, `the second one`."""

    start: int
    end: int
    kind: str
    """Empty for `one`."""
    modifiers: tuple[str, ...] = ()
    whose: str = ""
    """`his`, `her` or `their`; empty for none."""
    ordinal: int = 0
    """Place in what was shown last, from 1; -1 for the last one. 0: none."""
    newest: bool = False
    many: bool = False


@dataclass(frozen=True)
class References:
    """Words of a part of a message that refer to records."""

    words: tuple[str, ...]
    """Content words that may name a record."""
    pointed: frozenset[str]
    """Those that stand where only a name can stand: a record must have them."""
    phrases: tuple[Mention, ...]
    person: bool
    thing: bool
    ordinal: int = 0
    text: str = ""

    @property
    def anaphoric(self) -> bool:
        """True if a word stands for something that was said before."""
        return self.person or self.thing or bool(self.phrases)


def references_in(
    text: str,
    entities: Sequence[Entity],
    lexicon: Lexicon,
    known: frozenset[str],
    values: Sequence[Json] = (),
) -> References:
    """Read the references of a text.

    `known` are the registry's own words, `values` the arguments that were already read from it: what
    they use names no record, unless a noun phrase has it.
    """
    tokens = list(_TOKEN.finditer(text))
    phrases = tuple(_phrases(tokens, lexicon))
    inside = {word for phrase in phrases for word in phrase.modifiers}
    used = {token for value in values for token in tokens_of(str(value))} - inside
    taken = [entity for entity in entities if entity.kind.partition(":")[0] in _VALUES]
    words: dict[str, None] = {}
    pointed: set[str] = set()
    for entity in entities:
        if entity.kind in _NAMING:
            exact = entity.kind in ("phone", "email")
            named = [str(entity.value)] if exact else tokens_of(entity.text)
            fresh = [word for word in named if word not in used and word not in values]
            words.update(dict.fromkeys(fresh))
            pointed.update(fresh)
    for position, token in enumerate(tokens):
        if any(entity.touches(token.start(), token.end()) for entity in taken):
            continue
        if any(
            entity.touches(token.start(), token.end())
            for entity in entities
            if entity.kind in ("phone", "email")
        ):
            continue
        for word in tokens_of(token.group()):
            if not _may_name(word, token.group(), position, known) or word in used:
                continue
            words[word] = None
            if word in inside or _is_pointed(tokens, position):
                pointed.add(word)
    lowered = [token.group().lower() for token in tokens]
    return References(
        words=tuple(words),
        pointed=frozenset(pointed),
        phrases=phrases,
        person=not PERSONS.isdisjoint(lowered),
        thing=any(_is_pronoun(lowered, at) for at in range(len(lowered))),
        ordinal=next((phrase.ordinal for phrase in phrases if phrase.ordinal), 0),
        text=text,
    )


def _may_name(word: str, written: str, position: int, known: frozenset[str]) -> bool:
    if not word or word.isdigit() or word in PERSONS or word in THINGS or word in _ORDINALS:
        return False
    if _is_possessive(written):
        return word not in STOPWORDS | _CONTRACTED
    capital = position > 0 and written[:1].isupper()
    return word not in NEVER_NAMES and (capital or word not in known)


def _is_possessive(written: str) -> bool:
    return written.lower().endswith(("'s", "’s", "s'", "s’"))


def _is_pointed(tokens: Sequence[re.Match[str]], position: int) -> bool:
    """Return whether the word stands behind a preposition or is a possessive, as names do."""
    written = tokens[position].group()
    if _is_possessive(written):
        return True  # of what is no name, `_may_name` has left nothing
    before = [token.group().lower() for token in tokens[max(0, position - 2) : position]]
    if before[-1:] and before[-1] in _BEFORE_NAMES:
        return True
    behind_article = len(before) == 2 and before[0] in _BEFORE_NAMES and before[1] in _ARTICLES
    return behind_article and written[:1].isupper()


def _is_pronoun(lowered: Sequence[str], at: int) -> bool:
    """Return whether a word stands for a thing: `it`, `mark that as`, but not `tell her that we`."""
    word = lowered[at]
    if word in ("it", "its", "those", "these", "ones"):
        return True
    after = lowered[at + 1] if at + 1 < len(lowered) else ""
    return word in ("that", "this") and (
        after in ("", "as", "one", "to", "for", "off", "and", "now", "please", "back", "up")
    )


def _phrases(tokens: Sequence[re.Match[str]], lexicon: Lexicon) -> Iterator[Mention]:
    lowered = [token.group().lower().replace("’", "'") for token in tokens]
    for at, word in enumerate(lowered):
        kind = lexicon.kinds_by_name.get(word, "")
        if not kind and word not in ("one", "ones"):
            continue
        phrase = _phrase(tokens, lowered, at, kind)
        if phrase is not None and (kind or phrase.ordinal or lowered[at - 1] in ("that", "this")):
            yield phrase


def _phrase(
    tokens: Sequence[re.Match[str]], lowered: Sequence[str], at: int, kind: str
) -> Mention | None:
    """The phrase that ends with this noun, from its determiner or its possessive on."""
    for begin in range(at - 1, max(-1, at - 2 - MAX_MODIFIERS), -1):
        word = lowered[begin]
        if _is_possessive(tokens[begin].group()):
            inner = lowered[begin:at]
        elif word in _DETERMINERS:
            inner = lowered[begin + 1 : at]
        elif (
            word in _ORDINALS
            and begin == at - 1
            and (begin == 0 or lowered[begin - 1] not in _DETERMINERS)
        ):
            inner = lowered[begin:at]
        else:
            continue
        ordinal = next((_ORDINALS[token] for token in inner if token in _ORDINALS), 0)
        newest = not _NEWEST.isdisjoint(inner)
        modifiers = [
            token for token in inner if token not in _ORDINALS and token not in _NEWEST | {"most"}
        ]
        return Mention(
            tokens[begin].start(),
            tokens[at].end(),
            kind,
            tuple(part for token in modifiers for part in tokens_of(token)),
            whose=word if word in _POSSESSIVE_PRONOUNS else "",
            ordinal=ordinal,
            newest=newest,
            many=lowered[at].endswith("s") and lowered[at] != kind,
        )
    return None


def points_back(text: str) -> bool:
    """Return whether a word of the text may stand for something that was said before."""
    tokens = {token.group().lower() for token in _TOKEN.finditer(text)}
    return not tokens.isdisjoint(PERSONS | THINGS)


def chosen_place(text: str, count: int) -> int | None:
    """Read an answer such as `2`, `the second one` or `last` as a place in a list, from 0."""
    tokens = [token.group().lower() for token in _TOKEN.finditer(text)][:MAX_OPTION]
    if len(tokens) > 1 and tokens[-1] == "one":
        tokens.pop()
    content = [token for token in tokens if token not in _ARTICLES | _FILLERS]
    if len(content) != 1:
        return None
    place = _ORDINALS.get(content[0]) or _CARDINALS.get(content[0])
    if place is None and content[0].isdecimal() and len(content[0]) <= 3:
        place = int(content[0])
    if place is None:
        return None
    place = count if place == -1 else place
    return place - 1 if 1 <= place <= count else None
