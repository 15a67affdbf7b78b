"""Identifiers: ids by shape or by the noun before them, telephone numbers, e-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.jobs.operator.judgement.fields.pack_lexicon import Lexicon
from podium.jobs.operator.judgement.fields.tokenized_text import NEVER_NAMES, Entity, TokenizedText

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
    r"|\d{1,4}-?(?:[ap]m)?-?ish|\d{1,2}-[a-z]{3,}"  # 9ish, 9amish; 2-storey
)

_MIN_PREFIX = 2
"""Letters that are needed before they may stand for a kind that does not begin with them."""
_TOKEN = re.compile(r"([A-Za-z0-9][\w\-]{0,60})(?![\w@])(?![/:.,]\d)")
_LABEL = re.compile(
    r"[ '\"(]{0,3}(?:'s )?(?:(?P<label>id|no\.?|num(?:ber)?|ref(?:erence)?|code|with id|#)(?![A-Za-z_])(?: is)?)?[ :=#'\"(]{0,4}",
    re.IGNORECASE,
)


def ids(tokenized: TokenizedText, lexicon: Lexicon) -> Iterator[Entity]:
    """Ids with their kind as `id:KIND` where it is known, else as `id`."""
    for match in _UUID.finditer(tokenized.lower):
        yield _entity(tokenized, *match.span(), "id", 93)
    for match in _PREFIXED.finditer(tokenized.lower):
        kind = f"id:{match[1]}" if match[1] in lexicon.kinds or not lexicon.kinds else "id"
        yield _entity(tokenized, *match.span(), kind, 94)
    for match in _LETTERED.finditer(tokenized.smooth):
        if match[1].lower() not in NEVER_NAMES or len(match[1]) == 1:
            yield _entity(tokenized, *match.span(), "id", 73)
    for match in _HASHED.finditer(tokenized.smooth):
        start, end = match.span()
        yield Entity(
            "id", tokenized.smooth[start + 1 : end], tokenized.text[start:end], start, end, 73
        )
    for match in _MIXED.finditer(tokenized.lower):
        if not _UNIT_OR_ORDINAL.fullmatch(match[0]):
            yield _entity(tokenized, *match.span(), "id", 30)
    yield from _after_label(tokenized, lexicon)


def _after_label(tokenized: TokenizedText, lexicon: Lexicon) -> Iterator[Entity]:
    for index, cue in enumerate(tokenized.tokens):
        kind = lexicon.kinds_by_name.get(cue.lower.removesuffix("'s")) or _mistyped(
            tokenized, index, lexicon
        )
        label = _LABEL.match(tokenized.smooth, cue.end) if kind else None
        token = (
            _TOKEN.match(tokenized.smooth, label.end()) if label and label.end() > cue.end else None
        )
        if label and token and _is_id(token[1], label, tokenized.shouted):
            own = _PREFIXED.fullmatch(token[1].lower())
            # A shape that is certain by itself is one here too; its prefix says more than the word before it.
            sure = 95 if own or _UUID.fullmatch(token[1].lower()) else 74
            id_kind = own[1] if own and own[1] in lexicon.kinds else kind
            named = f"id:{id_kind}" if _may_be(token[1], id_kind, lexicon.kinds) else "id"
            yield _entity(tokenized, *token.span(1), named, sure)


def _mistyped(tokenized: TokenizedText, index: int, lexicon: Lexicon) -> str:
    """The kind of thing that was meant by `qoute Q-12`. Empty: none."""
    text = tokenized.tokens[index].lower
    after = tokenized.tokens[index + 1].text if index + 1 < len(tokenized.tokens) else ""
    if len(text) < 4 or not (after[-1:].isdigit() or after[:1].isdigit()):
        return ""
    near = (
        lexicon.things.nearly(text)
        if text not in NEVER_NAMES and text not in lexicon.pack_tokens
        else None
    )
    return lexicon.kinds_by_name[near] if near else ""


def _is_id(token: str, label: re.Match[str], shouted: bool) -> bool:
    if _UNIT_OR_ORDINAL.fullmatch(token.lower()):
        return False
    if any(character.isdigit() for character in token):
        return True
    labelled = label["label"] is not None or "#" in label[0] or "=" in label[0]
    capitals = token.isupper() and not shouted
    return (labelled or capitals) and len(token) > 1 and token.lower() not in NEVER_NAMES


def fits(entity: Entity, kind: str, own: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether an id may be one of this kind: neither the word before it nor its letters say otherwise.

    `own` are the kinds of ids that the tool asks for, `others` all the pack has: `INV-9` is an invoice
    wherever there are invoices, `P-9` may be anything that is asked for alone.
    """
    if entity.kind != "id":
        return entity.kind == f"id:{kind}"
    return _may_be(entity.value, kind, others if len(id_prefix(entity.value)) > 2 else own)


def _may_be(value: str, kind: str, kinds: frozenset[str]) -> bool:
    """Return whether the letters an id begins with are this kind's, or no kind's."""
    spelled = kinds_spelled(id_prefix(value), kinds | {kind})
    return kind in spelled or not spelled


def kinds_spelled(prefix: str, kinds: frozenset[str]) -> frozenset[str]:
    """The kinds that letters stand for: those that begin with them, else the one that has them in its order."""
    begun = frozenset(kind for kind in kinds if kind.startswith(prefix))
    if begun or len(prefix) < _MIN_PREFIX:
        return begun
    inside = frozenset(kind for kind in kinds if _in_order(prefix, kind))
    return inside if len(inside) == 1 else frozenset()


def _in_order(prefix: str, kind: str) -> bool:
    """`tk` in `task`, `iv` in `invoice`."""
    left = iter(kind[1:])
    return kind[0] == prefix[0] and all(character in left for character in prefix[1:])


def id_prefix(value: str) -> str:
    """Extract the letters before the number of an id such as `Q-12` or `J7`, in lower case. Empty: no letters, or no such id."""
    begun = re.match(r"([A-Za-z]+)[-_]?\d", value)
    return begun[1].lower() if begun else ""


def _entity(tokenized: TokenizedText, start: int, end: int, kind: str, sure: int) -> Entity:
    return Entity(kind, tokenized.smooth[start:end], tokenized.text[start:end], start, end, sure)


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
_AREA_CODE = re.compile(r"\barea(?: code)? \(?0?([2378])\)?\b")
_PHONE_LABEL = re.compile(r"(?:phone|ph|tel|call|ring|mob|mobile|number|on|dial)[ :.]{0,3}$")
_OTHER_NUMBER = re.compile(
    r"\b(?:abn|acn|bsb|account|acct|tfn|licen[cs]e)\b(?: (?:no|number))?[ :.#]{0,3}$"
)


def phones(tokenized: TokenizedText, area: str = "") -> Iterator[Entity]:
    """Numbers as E.164; 13 and 1300 numbers, which have no such form, as their digits.

    `area` is the area code (`3`) of local eight-digit numbers; without one these are no phones.
    """
    text = tokenized.smooth
    if len(text) < 6:
        return
    for match in _NATIONAL.finditer(text):
        yield from _phone_entity(tokenized, match, f"+61{match['area']}{digits(match['rest'])}", 85)
    for match in _BARE_MOBILE.finditer(text):
        yield from _phone_entity(tokenized, match, f"+61{digits(match[0])}", 60)
    for match in _SERVICE.finditer(text):
        if _is_service(tokenized, match):
            yield from _phone_entity(tokenized, match, digits(match[0]), 84)
    for match in _FOREIGN.finditer(text):
        if not digits(match[0]).startswith("61"):
            yield from _phone_entity(tokenized, match, f"+{digits(match[0])}", 84)
    yield from _local(tokenized, area)


def _local(tokenized: TokenizedText, area: str) -> Iterator[Entity]:
    area_match = _AREA_CODE.search(tokenized.lower)
    code = area_match[1] if area_match else area.strip().lstrip("0")
    if code in {"2", "3", "7", "8"}:
        for match in _LOCAL.finditer(tokenized.smooth):
            yield from _phone_entity(tokenized, match, f"+61{code}{digits(match[0])}", 64)


def _is_service(tokenized: TokenizedText, match: re.Match[str]) -> bool:
    # Six digits in one piece are as likely an id or an amount as a 13 number.
    return not match[0].isdigit() or len(match[0]) == 10 or _labelled(tokenized, match.start())


def _labelled(tokenized: TokenizedText, start: int) -> bool:
    return _PHONE_LABEL.search(tokenized.lower, max(0, start - 12), start) is not None


def _phone_entity(
    tokenized: TokenizedText, match: re.Match[str], value: str, certainty: int
) -> Iterator[Entity]:
    start, end = match.span()
    if _OTHER_NUMBER.search(tokenized.lower, max(0, start - 24), start) is None:
        yield Entity("phone", value, tokenized.text[start:end], start, end, certainty)


def digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())


_MAIL_LOCAL = re.compile(r"[\w.+'\-]{1,64}\Z")
_DOMAIN = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.){1,6}[A-Za-z]{2,24}(?![\w@])"
)
_DICTATED = re.compile(
    r"(?<![\w.])((?:[\w+\-]{1,32} dot ){0,2}[\w.+\-]{1,64}) at ([\w\-]{1,40}(?: dot [a-z]{2,12}){1,3})(?!\w)"
)


def emails(tokenized: TokenizedText) -> Iterator[Entity]:
    """Addresses in lower case: people write one address in several ways."""
    text = tokenized.smooth
    at = text.find("@")
    while at >= 0:
        yield from _around(tokenized, at)
        at = text.find("@", at + 1)
    if " dot " in tokenized.lower:
        for match in _DICTATED.finditer(tokenized.lower):
            yield _mail_entity(
                tokenized, *match.span(), f"{_undotted(match[1])}@{_undotted(match[2])}"
            )


def _around(tokenized: TokenizedText, at: int) -> Iterator[Entity]:
    local = _MAIL_LOCAL.search(tokenized.smooth[max(0, at - 64) : at])
    domain = _DOMAIN.match(tokenized.smooth, at + 1)
    name = local[0].lstrip(".'-") if local else ""
    if domain and name and not name.endswith(".") and ".." not in name:
        yield _mail_entity(tokenized, at - len(name), domain.end(), f"{name}@{domain[0]}".lower())


def _undotted(text: str) -> str:
    return text.replace(" dot ", ".")


def _mail_entity(tokenized: TokenizedText, start: int, end: int, value: str) -> Entity:
    return Entity("email", value, tokenized.text[start:end], start, end, 95)
