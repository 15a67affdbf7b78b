"""Identifiers: ids by shape or by the noun before them, telephone numbers, e-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.jobs.operator.judgement.fields.pack_lexicon import Lexicon
from podium.jobs.operator.judgement.fields.tokenized_text import NEVER_NAMES, Entity, Passage

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


_GAP = r"[ .\-()]{0,3}"
_NOT_INSIDE = r"(?<![\w$#@=/])(?<![\d.][.\-,])"
_ENDS = r"(?![\w@])(?![.,:/\-]\d)"
_NATIONAL = re.compile(
    rf"{_NOT_INSIDE}\(?(?P<prefix>(?:\+ ?61|0011 ?61|0061|61)(?:[ .\-]{{0,2}}\(?0\)?)?|0){_GAP}(?P<area>[23478])(?P<rest>(?:{_GAP}\d){{8}}){_ENDS}"
)
_BARE_MOBILE = re.compile(rf"{_NOT_INSIDE}(?<!\d )4\d\d[ .\-]\d{{3}}[ .\-]\d{{3}}{_ENDS}")
_SERVICE = re.compile(
    rf"{_NOT_INSIDE}1[38]00(?:{_GAP}\d){{6}}{_ENDS}|{_NOT_INSIDE}13[ \-]?\d\d[ \-]?\d\d{_ENDS}"
)
_FOREIGN = re.compile(rf"(?<![\w+])\+[1-9](?:[ .\-()]{{0,2}}\d){{6,14}}{_ENDS}")
_LOCAL = re.compile(rf"{_NOT_INSIDE}[2-9]\d{{3}}[ \-]?\d{{4}}{_ENDS}")
_AREA_SAID = re.compile(r"\barea(?: code)? \(?0?([2378])\)?\b")
_PHONE_LABEL = re.compile(r"(?:phone|ph|tel|call|ring|mob|mobile|number|on|dial)[ :.]{0,3}$")
_OTHER_NUMBER = re.compile(
    r"\b(?:abn|acn|bsb|account|acct|tfn|licen[cs]e)\b(?: (?:no|number))?[ :.#]{0,3}$"
)


def phones(passage: Passage, area: str = "") -> Iterator[Entity]:
    """Numbers as E.164; 13 and 1300 numbers, which have no such form, as their digits.

    `area` is the area code (`3`) of local eight-digit numbers; without one these are no phones.
    """
    text = passage.smooth
    if len(text) < 6:
        return
    for found in _NATIONAL.finditer(text):
        yield from _phone_entity(passage, found, f"+61{found['area']}{digits(found['rest'])}", 85)
    for found in _BARE_MOBILE.finditer(text):
        yield from _phone_entity(passage, found, f"+61{digits(found[0])}", 60)
    for found in _SERVICE.finditer(text):
        if _is_service(passage, found):
            yield from _phone_entity(passage, found, digits(found[0]), 84)
    for found in _FOREIGN.finditer(text):
        if not digits(found[0]).startswith("61"):
            yield from _phone_entity(passage, found, f"+{digits(found[0])}", 84)
    yield from _local(passage, area)


def _local(passage: Passage, area: str) -> Iterator[Entity]:
    said = _AREA_SAID.search(passage.lower)
    code = said[1] if said else area.strip().lstrip("0")
    if code in {"2", "3", "7", "8"}:
        for found in _LOCAL.finditer(passage.smooth):
            yield from _phone_entity(passage, found, f"+61{code}{digits(found[0])}", 64)


def _is_service(passage: Passage, found: re.Match[str]) -> bool:
    # Six digits in one piece are as likely an id or an amount as a 13 number.
    return not found[0].isdigit() or len(found[0]) == 10 or _labelled(passage, found.start())


def _labelled(passage: Passage, start: int) -> bool:
    return _PHONE_LABEL.search(passage.lower, max(0, start - 12), start) is not None


def _phone_entity(
    passage: Passage, found: re.Match[str], value: str, certainty: int
) -> Iterator[Entity]:
    start, end = found.span()
    if _OTHER_NUMBER.search(passage.lower, max(0, start - 24), start) is None:
        yield Entity("phone", value, passage.text[start:end], start, end, certainty)


def digits(text: str) -> str:
    return "".join(letter for letter in text if letter.isdigit())


_MAIL_LOCAL = re.compile(r"[\w.+'\-]{1,64}\Z")
_DOMAIN = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.){1,6}[A-Za-z]{2,24}(?![\w@])"
)
_DICTATED = re.compile(
    r"(?<![\w.])((?:[\w+\-]{1,32} dot ){0,2}[\w.+\-]{1,64}) at ([\w\-]{1,40}(?: dot [a-z]{2,12}){1,3})(?!\w)"
)


def emails(passage: Passage) -> Iterator[Entity]:
    """Addresses in lower case: people write one address in several ways."""
    text = passage.smooth
    at = text.find("@")
    while at >= 0:
        yield from _around(passage, at)
        at = text.find("@", at + 1)
    if " dot " in passage.lower:
        for found in _DICTATED.finditer(passage.lower):
            yield _mail_entity(
                passage, *found.span(), f"{_undotted(found[1])}@{_undotted(found[2])}"
            )


def _around(passage: Passage, at: int) -> Iterator[Entity]:
    local = _MAIL_LOCAL.search(passage.smooth[max(0, at - 64) : at])
    domain = _DOMAIN.match(passage.smooth, at + 1)
    name = local[0].lstrip(".'-") if local else ""
    if domain and name and not name.endswith(".") and ".." not in name:
        yield _mail_entity(passage, at - len(name), domain.end(), f"{name}@{domain[0]}".lower())


def _undotted(text: str) -> str:
    return text.replace(" dot ", ".")


def _mail_entity(passage: Passage, start: int, end: int, value: str) -> Entity:
    return Entity("email", value, passage.text[start:end], start, end, 95)
