"""Ids: by their shape, or by the word for the thing before them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.lexicon import Lexicon
from podium.flows.operator.judgement.fields.passage import Passage
from podium.flows.operator.judgement.fields.plain_words import NEVER_NAMES

_UUID = re.compile(
    r"(?<![\w\-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w\-])"
)
_PREFIXED = re.compile(
    r"(?<![\w\-@.])([a-z][a-z0-9]{0,30}(?:_[a-z]{1,20}){0,2})_((?=[0-9a-z]*\d)[0-9a-z]{4,40}|[0-9a-f]{8,40})(?![\w\-@])"
)
_LETTERED = re.compile(r"(?<![\w\-@.$/])([A-Za-z]{1,8})-(\d{1,12}[A-Za-z]?)(?![\w\-@/])")
_HASHED = re.compile(r"(?<![\w&#/])#([A-Za-z0-9][\w\-]{0,40})(?![\w\-])")
_MIXED = re.compile(
    r"(?<![\w\-@.$/#:])(?=[a-z\-_]*\d)(?=[\d\-_]*[a-z])[a-z0-9][a-z0-9_\-]{2,40}(?![\w@:/])"
)
_UNIT_OR_ORDINAL = re.compile(
    r"\d+(?:st|nd|rd|th|k|m|am|pm|hrs?|h|mm|cm|km|kg|sqm|m2|lm|x|min|mins|days?)|\d+x\d+|x\d+|mp\d|a[34]|covid-?19"
)

_LETTERS_IN_ORDER = 2
"""Letters that are needed before they may stand for a kind that does not begin with them."""
_TOKEN = re.compile(r"([A-Za-z0-9][\w\-]{0,60})(?![\w@])(?![/:.,]\d)")
_LABEL = re.compile(
    r"[ '\"(]{0,3}(?:'s )?(?:(?P<label>id|no\.?|num(?:ber)?|ref(?:erence)?|code|with id|#)(?![A-Za-z_])(?: is)?)?[ :=#'\"(]{0,4}",
    re.IGNORECASE,
)


def ids(passage: Passage, lexicon: Lexicon) -> Iterator[Entity]:
    """Ids with their kind as `id:KIND` where it is known, else as `id`."""
    for found in _UUID.finditer(passage.lower):
        yield _entity(passage, *found.span(), "id", 93)
    for found in _PREFIXED.finditer(passage.lower):
        kind = f"id:{found[1]}" if found[1] in lexicon.kinds or not lexicon.kinds else "id"
        yield _entity(passage, *found.span(), kind, 94)
    for found in _LETTERED.finditer(passage.smooth):
        if found[1].lower() not in NEVER_NAMES or len(found[1]) == 1:
            yield _entity(passage, *found.span(), "id", 73)
    for found in _HASHED.finditer(passage.smooth):
        start, end = found.span()
        yield Entity("id", passage.smooth[start + 1 : end], passage.text[start:end], start, end, 73)
    for found in _MIXED.finditer(passage.lower):
        if not _UNIT_OR_ORDINAL.fullmatch(found[0]):
            yield _entity(passage, *found.span(), "id", 30)
    yield from _after_their_word(passage, lexicon)


def _after_their_word(passage: Passage, lexicon: Lexicon) -> Iterator[Entity]:
    for index, word in enumerate(passage.words):
        kind = lexicon.id_words.get(word.lower.removesuffix("'s")) or _mistyped(
            passage, index, lexicon
        )
        label = _LABEL.match(passage.smooth, word.end) if kind else None
        token = (
            _TOKEN.match(passage.smooth, label.end()) if label and label.end() > word.end else None
        )
        if label and token and _is_id(token[1], label, passage.shouted):
            own = _PREFIXED.fullmatch(token[1].lower())
            # A shape that is certain by itself is one here too; its prefix says more than the word before it.
            sure = 95 if own or _UUID.fullmatch(token[1].lower()) else 74
            told = own[1] if own and own[1] in lexicon.kinds else kind
            named = f"id:{told}" if _may_be(token[1], told, lexicon.kinds) else "id"
            yield _entity(passage, *token.span(1), named, sure)


def _mistyped(passage: Passage, index: int, lexicon: Lexicon) -> str:
    """The kind of thing that was meant by `qoute Q-12`. Empty: none."""
    word = passage.words[index].lower
    after = passage.words[index + 1].text if index + 1 < len(passage.words) else ""
    if len(word) < 4 or not (after[-1:].isdigit() or after[:1].isdigit()):
        return ""
    near = (
        lexicon.things.nearly(word)
        if word not in NEVER_NAMES and word not in lexicon.pack_words
        else None
    )
    return lexicon.id_words[near] if near else ""


def _is_id(token: str, label: re.Match[str], shouted: bool) -> bool:
    if _UNIT_OR_ORDINAL.fullmatch(token.lower()):
        return False
    if any(letter.isdigit() for letter in token):
        return True
    said_so = label["label"] is not None or "#" in label[0] or "=" in label[0]
    capitals = token.isupper() and not shouted
    return (said_so or capitals) and len(token) > 1 and token.lower() not in NEVER_NAMES


def fits(entity: Entity, kind: str, own: frozenset[str], others: frozenset[str]) -> bool:
    """Whether an id may be one of this kind: neither the word before it nor its letters say otherwise.

    `own` are the kinds of ids that the tool asks for, `others` all the pack has: `INV-9` is an invoice
    wherever there are invoices, `P-9` may be anything that is asked for alone.
    """
    if entity.kind != "id":
        return entity.kind == f"id:{kind}"
    return _may_be(entity.value, kind, others if len(letters_of(entity.value)) > 2 else own)


def _may_be(value: str, kind: str, kinds: frozenset[str]) -> bool:
    """Whether the letters an id begins with are this kind's, or no kind's."""
    spelled = kinds_spelled(letters_of(value), kinds | {kind})
    return kind in spelled or not spelled


def kinds_spelled(letters: str, kinds: frozenset[str]) -> frozenset[str]:
    """The kinds that letters stand for: those that begin with them, else the one that has them in its order."""
    begun = frozenset(kind for kind in kinds if kind.startswith(letters))
    if begun or len(letters) < _LETTERS_IN_ORDER:
        return begun
    inside = frozenset(kind for kind in kinds if _in_order(letters, kind))
    return inside if len(inside) == 1 else frozenset()


def _in_order(letters: str, kind: str) -> bool:
    """`tk` in `task`, `iv` in `invoice`."""
    left = iter(kind[1:])
    return kind[0] == letters[0] and all(letter in left for letter in letters[1:])


def letters_of(value: str) -> str:
    """What an id such as `Q-12` or `J7` begins with, in lower case. Empty: no letters, or no such id."""
    begun = re.match(r"([A-Za-z]+)[-_]?\d", value)
    return begun[1].lower() if begun else ""


def _entity(passage: Passage, start: int, end: int, kind: str, sure: int) -> Entity:
    return Entity(kind, passage.smooth[start:end], passage.text[start:end], start, end, sure)
