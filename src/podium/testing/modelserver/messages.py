"""A request and its answer, in terms that hold for every protocol."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import shake_128
from typing import Any, Literal

from podium.testing.modelserver.script import Finish, ProtocolName

MARKER = re.compile(r"SCRIPT:(\w(?:[\w.-]*\w)?)")

_CONTEXT = re.compile(
    r"\s*<(session_context|environment_context|system-reminder|user_instructions|turn_aborted)[ >]"
)
"""Start of the texts that CLIs add to a prompt."""


@dataclass(frozen=True)
class ConversationItem:
    """One item of the conversation so far."""

    kind: Literal["prompt", "aside", "result", "answer"]
    """An `aside` is user text beside a tool result, such as a CLI's reminders."""
    text: str = ""


@dataclass(frozen=True)
class OfferedTool:
    """A tool the model may call."""

    name: str
    schema: Mapping[str, Any]
    custom: bool = False
    """Takes plain text, not JSON."""
    namespace: str = ""
    description: str = ""


@dataclass(frozen=True)
class Ask:
    """A request for an answer of the model."""

    protocol: ProtocolName
    model: str
    streamed: bool
    conversation: tuple[ConversationItem, ...]
    tools: tuple[OfferedTool, ...]
    input_characters: int
    includes_usage: bool = True
    """True if a stream of the chat protocol ends with the usage."""
    event_stream: bool = True
    """False: Gemini's stream without `alt=sse`, which is a JSON list."""

    @property
    def prompt(self) -> str:
        """The newest prompt, without what a CLI puts beside it."""
        return next(
            (item.text for item in reversed(self.conversation) if item.kind == "prompt"), ""
        )

    @property
    def marker(self) -> str:
        """The last marker of the newest user text that carries one, or nothing."""
        at = self._marked_at()
        return MARKER.findall(self.conversation[at].text)[-1] if at is not None else ""

    def results_since_marker(self) -> int:
        return self._results_after(self._marked_at())

    def results_since_prompt(self) -> int:
        prompts = (at for at, item in enumerate(self.conversation) if item.kind == "prompt")
        return self._results_after(max(prompts, default=None))

    def _marked_at(self) -> int | None:
        marked = (
            at
            for at, item in enumerate(self.conversation)
            if item.kind in ("prompt", "aside") and MARKER.search(item.text)
        )
        return max(marked, default=None)

    def _results_after(self, at: int | None) -> int:
        rest = self.conversation if at is None else self.conversation[at + 1 :]
        return sum(item.kind == "result" for item in rest)


def user_items(texts: Iterable[str], results: int = 0) -> Iterator[ConversationItem]:
    """A user message: its tool results first, then its text without a CLI's own context."""
    yield from (ConversationItem("result") for _ in range(results))
    text = "\n".join(text for text in texts if not _CONTEXT.match(text))
    if text:
        yield ConversationItem("aside" if results else "prompt", text)


def table(value: Any) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one: requests may be malformed anywhere."""
    return value if isinstance(value, dict) else {}


def tables(value: Any) -> list[Mapping[str, Any]]:
    """The JSON objects in a list, if it is one."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def texts_of(content: Any) -> list[str]:
    """The texts of a message, be it one text or a list of parts."""
    if isinstance(content, str):
        return [content]
    return [as_text(part.get("text")) for part in tables(content) if as_text(part.get("text"))]


TEXT_SLOT = "\ue000WORDS\ue000"
"""Stands in an event or a body where the bytes of a text go. A flood is never held whole."""

_FLOOD_CHARACTERS = 64_000
_CHUNK_CHARACTERS = 80
INVALID_UTF8 = b"\xff\xfe\xc3("


@dataclass(frozen=True)
class StreamedText:
    """A text in pieces, each as the bytes that stand between JSON's quotes."""

    text: str
    chunk_characters: int | None = None
    flood_bytes: int = 0
    invalid: bool = False
    """Append bytes that are not valid UTF-8."""

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
    digits = shake_128(number.to_bytes(8, "big")).hexdigest(characters // 2 + 1)
    lines = (digits[at : at + 79] + "\n" for at in range(0, characters, 80))
    return "".join(lines)[:characters].replace("\n", "\\n").encode()


@dataclass(frozen=True)
class ServedCall:
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
class ServedAnswer:
    """Answer of the model."""

    text: StreamedText
    tokens: Tokens
    thinking: str = ""
    calls: tuple[ServedCall, ...] = ()
    finish: Finish = "stop"


@dataclass(frozen=True)
class ServedEvent:
    """One event of a stream. `text` are put where `TEXT_SLOT` stands in the data."""

    data: Mapping[str, Any] | str
    name: str = ""
    text: Iterable[bytes] = ()
    final: bool = False
    """Belongs to the end, without which the stream is a cut one."""
    bare: bool = False
    """Stands in the stream as plain JSON, not as an event."""


def json_bytes(value: Any) -> bytes:
    # A lone surrogate, which a YAML file can hold, has no bytes in UTF-8.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def filled(data: Mapping[str, Any], text: StreamedText | Iterable[bytes]) -> Iterator[bytes]:
    """The JSON of `data`, with the text wherever it says so. Iterates the text once for each place."""
    head, *tails = json_bytes(data).split(TEXT_SLOT.encode())
    yield head
    for tail in tails:
        yield from text.pieces() if isinstance(text, StreamedText) else text
        yield tail
