"""An answer on its way out: what the model says, apart from how a protocol writes it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import shake_128
from typing import Any

from podium.testing.modelserver.script import Finish

WORDS = "\ue000WORDS\ue000"
"""Stands in an event or a body where the bytes of a text go. A flood is never held whole."""

_FLOOD_CHARACTERS = 64_000
_CHUNK_CHARACTERS = 80
INVALID_UTF8 = b"\xff\xfe\xc3("


@dataclass(frozen=True)
class Words:
    """A text in pieces, each as the bytes that stand between JSON's quotes."""

    text: str
    chunk_characters: int | None = None
    flood_bytes: int = 0
    invalid: bool = False
    """Whether bytes that are no UTF-8 follow the text."""

    def __bool__(self) -> bool:
        return bool(self.text or self.flood_bytes or self.invalid)

    @property
    def characters(self) -> int:
        return self.flood_bytes + len(self.text)

    def pieces(self) -> Iterator[bytes]:
        """One for each event of a stream; all of them together are the text."""
        yield from self._flood()
        size = self.chunk_characters or max(1, min(_CHUNK_CHARACTERS, -(-len(self.text) // 2)))
        for at in range(0, len(self.text), size):
            yield json_bytes(self.text[at : at + size])[1:-1]
        if self.invalid:
            yield INVALID_UTF8

    def _flood(self) -> Iterator[bytes]:
        size = self.chunk_characters or _FLOOD_CHARACTERS
        for at in range(0, self.flood_bytes, size):
            yield _flood_piece(at, min(size, self.flood_bytes - at))


def _flood_piece(number: int, characters: int) -> bytes:
    """Lines of 79 letters, none like another: Gemini CLI stops a model that repeats itself."""
    letters = shake_128(number.to_bytes(8, "big")).hexdigest(characters // 2 + 1)
    lines = (letters[at : at + 79] + "\n" for at in range(0, characters, 80))
    return "".join(lines)[:characters].replace("\n", "\\n").encode()


@dataclass(frozen=True)
class Call:
    """A tool call of the model."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    input: str | None = None
    """The plain text of a custom tool; None: a function call."""
    namespace: str = ""
    id: str = field(default_factory=lambda: secrets.token_hex(12))

    @property
    def arguments_json(self) -> str:
        return json.dumps(self.as_function, ensure_ascii=False)

    @property
    def as_function(self) -> Mapping[str, Any]:
        """The arguments where a protocol has no custom tools."""
        return self.arguments if self.input is None else {"input": self.input}


@dataclass(frozen=True)
class Tokens:
    """Tokens used; `input` counts the cached ones too."""

    input: int
    output: int
    cached: int = 0


@dataclass(frozen=True)
class Answer:
    """What the model says."""

    words: Words
    tokens: Tokens
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    finish: Finish = "stop"


@dataclass(frozen=True)
class Event:
    """One event of a stream. `words` are put where `WORDS` stands in the data."""

    data: Mapping[str, Any] | str
    name: str = ""
    words: Iterable[bytes] = ()
    final: bool = False
    """Belongs to the end, without which the stream is a cut one."""
    bare: bool = False
    """Stands in the stream as plain JSON, not as an event."""


def json_bytes(value: Any) -> bytes:
    # A lone surrogate, which a YAML file can hold, has no bytes in UTF-8.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def filled(data: Mapping[str, Any], words: Words | Iterable[bytes]) -> Iterator[bytes]:
    """The JSON of `data`, with the words wherever it says so. Iterates the words once for each place."""
    head, *tails = json_bytes(data).split(WORDS.encode())
    yield head
    for tail in tails:
        yield from words.pieces() if isinstance(words, Words) else words
        yield tail
