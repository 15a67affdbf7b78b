"""What every source is handed, and how facts become a mark."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.domain.model import Json
    from podium.domain.sensing import Condition
    from podium.ports.clock import Clock


@dataclass(frozen=True)
class SourceKit:
    """One for all sources of a root."""

    root: Path
    """The project folder. Sources that look at files see nothing outside it."""
    clock: Clock
    redact: Callable[[str], str]
    """Takes secrets out of a text."""
    is_own: Callable[[str], bool]
    """Whether the loop itself writes this path, from the root on. Asked for every file: it must be quick."""
    file_bytes: int = 200_000
    """What is larger is named, not shown."""


class NotSensed(Exception):
    """Something is not as it should be; what it is stands in the look."""

    def __init__(self, condition: Condition, why: str, content: Json = None) -> None:
        super().__init__(why)
        self.condition: Condition = condition
        self.why = why
        self.content = content


def mark_of(*facts: object) -> str:
    """One short text for these facts, the same in every process."""
    return hashlib.sha256(repr(facts).encode(errors="backslashreplace")).hexdigest()[:32]


def whole_words(text: str) -> str:
    """What is left of a text that was cut at its end: half a secret would not be known for one."""
    return text[: len(text) - len(re.split(r"\s", text)[-1])]


def last_words(text: str, characters: int) -> str:
    """The end of a text, likewise."""
    if len(text) <= characters:
        return text
    return "".join(re.split(r"\s", text[-characters:], maxsplit=1)[1:])


def without_login(url: str) -> str:
    """An address as it may be shown. What is none stays as it is."""
    before, at, after = url.partition("@")
    scheme, slashes, _ = before.partition("://")
    return f"{scheme}://…@{after}" if at and slashes else url or "(no address)"
