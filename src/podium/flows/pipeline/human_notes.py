"""HUMAN_REVIEW.md: what the project's owner wants agents to know, read and never written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from podium.domain.model import Noun
from podium.flows.pipeline.markdown import Line, blocks_of, lines_of
from podium.flows.pipeline.plain_text import fingerprint, shortened, whole

MOST_NOTES = 100
LONGEST_NOTE = 4_000

_HEADING = re.compile(r"(?:(?:for|to)\b:?\s+(?:the\s+)?@?|@)([\w -]{1,60}?)\s*:?", re.IGNORECASE)
_ADDRESS = re.compile(
    r"((?:@[\w-]{1,60}(?:\s*(?:,|&|and)\s*|\s+)?){1,10})\s*[:,]\s*", re.IGNORECASE
)
_NAME = re.compile(r"@([\w-]+)")
_EVERYBODY = frozenset(
    {"all", "everyone", "everybody", "anyone", "agents", "all_agents", "all_roles"}
)


class HumanNote(Noun):
    """Something a person wrote down for agents."""

    role: str
    """Whom it is for, such as `lead_analyst`. Empty: for all."""
    text: str
    fingerprint: str


def notes_of(text: str | None, *, roles: Collection[str] = ()) -> tuple[HumanNote, ...]:
    """The notes that are not checked off, in their order.

    With `roles`, what is addressed to none of them is for all, so that a slip of the pen loses nothing.
    """
    notes: dict[str, HumanNote] = {}
    for role, words in _addressed(text or ""):
        to = role if not roles or role in roles else ""
        mark = fingerprint(to, " ".join(words.split()))
        notes.setdefault(mark, HumanNote(role=to, text=words, fingerprint=mark))
        if len(notes) >= MOST_NOTES:
            break
    return tuple(notes.values())


def role_of(words: str) -> str:
    """The role's name as the settings write it. Empty: the words mean everybody."""
    name = re.sub(r"[\s-]+", "_", words.strip().casefold())
    return "" if name in _EVERYBODY else name


def _addressed(text: str) -> Iterator[tuple[str, str]]:
    for block in blocks_of(lines_of(text)):
        if block.checked:
            continue
        words = whole(block.text).strip()
        address = _ADDRESS.match(words)
        if address:
            words = words[address.end() :].strip()
            roles = [role_of(name) for name in _NAME.findall(address[1])]
        else:
            roles = [_role_above(block.headings)]
        if any(letter.isalnum() for letter in words):
            yield from ((role, shortened(words, LONGEST_NOTE)) for role in roles)


def _role_above(headings: tuple[Line, ...]) -> str:
    """Whom the nearest heading that names somebody is for."""
    for heading in reversed(headings):
        if found := _HEADING.fullmatch(heading.text.strip()):
            return role_of(found[1])
    return ""
