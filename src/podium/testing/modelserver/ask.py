"""What a request asks, in words that hold for every protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from podium.testing.modelserver.script import ProtocolName

MARKER = re.compile(r"SCRIPT:(\w(?:[\w.-]*\w)?)")

_CONTEXT = re.compile(
    r"\s*<(session_context|environment_context|system-reminder|user_instructions|turn_aborted)[ >]"
)
"""How the CLIs begin a text of their own that travels beside the prompt."""


@dataclass(frozen=True)
class Said:
    """One thing in the conversation so far."""

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
    said: tuple[Said, ...]
    tools: tuple[OfferedTool, ...]
    input_characters: int
    usage_wanted: bool = True
    """Whether a stream of the chat protocol ends with the usage."""
    event_stream: bool = True
    """False: Gemini's stream without `alt=sse`, which is a JSON list."""

    @property
    def prompt(self) -> str:
        """The newest prompt, without what a CLI puts beside it."""
        return next((said.text for said in reversed(self.said) if said.kind == "prompt"), "")

    @property
    def marker(self) -> str:
        """The last marker of the newest user text that carries one, or nothing."""
        at = self._marked_at()
        return MARKER.findall(self.said[at].text)[-1] if at is not None else ""

    def results_since_marker(self) -> int:
        return self._results_after(self._marked_at())

    def results_since_prompt(self) -> int:
        prompts = (at for at, said in enumerate(self.said) if said.kind == "prompt")
        return self._results_after(max(prompts, default=None))

    def _marked_at(self) -> int | None:
        marked = (
            at
            for at, said in enumerate(self.said)
            if said.kind in ("prompt", "aside") and MARKER.search(said.text)
        )
        return max(marked, default=None)

    def _results_after(self, at: int | None) -> int:
        rest = self.said if at is None else self.said[at + 1 :]
        return sum(said.kind == "result" for said in rest)


def user_said(texts: Iterable[str], results: int = 0) -> Iterator[Said]:
    """A user message: its tool results first, then its text without a CLI's own context."""
    yield from (Said("result") for _ in range(results))
    text = "\n".join(text for text in texts if not _CONTEXT.match(text))
    if text:
        yield Said("aside" if results else "prompt", text)


def table(value: Any) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one: requests may be malformed anywhere."""
    return value if isinstance(value, dict) else {}


def tables(value: Any) -> list[Mapping[str, Any]]:
    """The JSON objects in a list, if it is one."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def texts_of(content: Any) -> list[str]:
    """The texts of a message, be it one text or a list of parts."""
    if isinstance(content, str):
        return [content]
    return [word(part.get("text")) for part in tables(content) if word(part.get("text"))]
