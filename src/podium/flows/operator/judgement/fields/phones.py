"""Telephone numbers: Australian ones in every form people write, others by their country code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.passage import Passage

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
_LABEL = re.compile(r"(?:phone|ph|tel|call|ring|mob|mobile|number|on|dial)[ :.]{0,3}$")
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
        yield from _entity(passage, found, f"+61{found['area']}{digits(found['rest'])}", 85)
    for found in _BARE_MOBILE.finditer(text):
        yield from _entity(passage, found, f"+61{digits(found[0])}", 60)
    for found in _SERVICE.finditer(text):
        if _is_service(passage, found):
            yield from _entity(passage, found, digits(found[0]), 84)
    for found in _FOREIGN.finditer(text):
        if not digits(found[0]).startswith("61"):
            yield from _entity(passage, found, f"+{digits(found[0])}", 84)
    yield from _local(passage, area)


def _local(passage: Passage, area: str) -> Iterator[Entity]:
    said = _AREA_SAID.search(passage.lower)
    code = said[1] if said else area.strip().lstrip("0")
    if code in {"2", "3", "7", "8"}:
        for found in _LOCAL.finditer(passage.smooth):
            yield from _entity(passage, found, f"+61{code}{digits(found[0])}", 64)


def _is_service(passage: Passage, found: re.Match[str]) -> bool:
    # Six digits in one piece are as likely an id or an amount as a 13 number.
    return not found[0].isdigit() or len(found[0]) == 10 or _labelled(passage, found.start())


def _labelled(passage: Passage, start: int) -> bool:
    return _LABEL.search(passage.lower, max(0, start - 12), start) is not None


def _entity(passage: Passage, found: re.Match[str], value: str, certainty: int) -> Iterator[Entity]:
    start, end = found.span()
    if _OTHER_NUMBER.search(passage.lower, max(0, start - 24), start) is None:
        yield Entity("phone", value, passage.text[start:end], start, end, certainty)


def digits(text: str) -> str:
    return "".join(letter for letter in text if letter.isdigit())
