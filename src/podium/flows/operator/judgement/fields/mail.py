"""E-mail addresses, also as they are dictated."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.passage import Passage

_LOCAL = re.compile(r"[\w.+'\-]{1,64}\Z")
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
            yield _entity(passage, *found.span(), f"{_undotted(found[1])}@{_undotted(found[2])}")


def _around(passage: Passage, at: int) -> Iterator[Entity]:
    local = _LOCAL.search(passage.smooth[max(0, at - 64) : at])
    domain = _DOMAIN.match(passage.smooth, at + 1)
    name = local[0].lstrip(".'-") if local else ""
    if domain and name and not name.endswith(".") and ".." not in name:
        yield _entity(passage, at - len(name), domain.end(), f"{name}@{domain[0]}".lower())


def _undotted(text: str) -> str:
    return text.replace(" dot ", ".")


def _entity(passage: Passage, start: int, end: int, value: str) -> Entity:
    return Entity("email", value, passage.text[start:end], start, end, 95)
