"""State of a turn of Claude Code, put together from its records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from podium.agents.headless.claude.command import RETRIES
from podium.agents.outcome import after_seconds, plain_line
from podium.core.decisions import Usage
from podium.core.events import ProgressKind
from podium.core.model import Json
from podium.ports import Clock

MAX_WAIT_SECONDS = 5.0
"""A provider that asks for a longer pause is not waited for inside the turn."""

MAX_PROGRESS_CHARACTERS = 200
"""Characters of a tool's use that are reported as progress."""
MAX_SUMMARY_CHARACTERS = 2_000

_SUMMARY_ARGUMENTS = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "path",
    "description",
)
"""Arguments that say what a use of a tool is about, the most telling first."""

MADE_UP_MODEL = "<synthetic>"
"""Stands where the CLI itself speaks in the model's place, such as to tell of an error."""


class ProviderFailure(NamedTuple):
    """The reason why the turn was ended before the CLI itself gave up."""

    status: int | None
    message: str
    retry_at: datetime | None


class ToolResult(NamedTuple):
    """The end of a tool's use, as the model is told."""

    use: str
    ok: bool
    text: str


def record_of(line: bytes) -> dict[str, Json]:
    """The record in a line; nothing when it holds none. Programs print other things too."""
    try:
        record = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


class ClaudeStream:
    """Everything a turn's records have said so far. Progress is told on the way."""

    def __init__(self, clock: Clock, most_tokens: int | None = None) -> None:
        self._clock = clock
        self.notify: Callable[[ProgressKind, str], None] = _to_nobody
        """Receives progress. Nobody does before the turn's door is open."""
        self.asked = False
        """True once the CLI was started: one exchange then counts, even when it reports none."""
        self.most_tokens = most_tokens
        self.version = ""
        self.model = ""
        self.session: str | None = None
        self.result: dict[str, Json] | None = None
        self.failure: ProviderFailure | None = None
        self.limit_ends: datetime | None = None
        self.refused = False
        self.counted = Usage(complete=False)
        """Exchanges and tokens seen going by: what is known when no result comes."""

    def used(self, seconds: float) -> Usage:
        """Return what the turn has used so far, exchanges of its subagents included."""
        if not self.asked:
            return Usage(seconds=seconds)
        used = used_by(self.result or {}, self.counted)
        turns = max(self.counted.turns, 1)
        return used.model_copy(update={"turns": turns, "seconds": seconds})

    @property
    def is_overspent(self) -> bool:
        """True if more tokens were used than the turn may. The CLI has no such limit of its own."""
        used = self.counted.input_tokens + self.counted.output_tokens
        return self.most_tokens is not None and self.result is None and used > self.most_tokens

    @property
    def is_hopeless(self) -> bool:
        """True if there is no use in letting it continue."""
        return self.failure is not None or self.is_overspent

    def take(self, record: Mapping[str, Json]) -> None:
        kind = record.get("type")
        by_subagent = record.get("parent_tool_use_id") is not None
        if kind == "stream_event":
            self._take_event(_mapping(record.get("event")), by_subagent)
        elif kind == "system":
            self._take_notice(record)
        elif kind == "assistant":
            self._take_message(_mapping(record.get("message")), by_subagent)
        elif kind == "rate_limit_event":
            self._take_limit(_mapping(record.get("rate_limit_info")))
        elif kind == "result":
            self.result = dict(record)
            self._take_session(record)

    def _take_notice(self, record: Mapping[str, Json]) -> None:
        what = record.get("subtype")
        if what == "init":
            self.version = str(record.get("claude_code_version") or "")
            self.model = str(record.get("model") or "")
            self._take_session(record)
        elif what == "api_retry":
            self._take_retry(record)

    def _take_session(self, record: Mapping[str, Json]) -> None:
        session = record.get("session_id")
        self.session = session if isinstance(session, str) else self.session

    def _take_retry(self, record: Mapping[str, Json]) -> None:
        """The CLI wants to try again. What cannot help, or takes too long, ends the turn."""
        status = record.get("error_status")
        status = status if isinstance(status, int) else None
        wait = _number(record.get("retry_delay_ms")) / 1000
        message = plain_line(str(record.get("error") or ""))
        self.notify("retry", f"{status or 'no connection'} {message}, again in {wait:.1f} s")
        hopeless = status in (401, 403)
        too_often = _number(record.get("attempt")) > RETRIES
        if hopeless or too_often or wait > MAX_WAIT_SECONDS:
            # A provider's own wish is long or comes in whole seconds, the CLI's first guesses neither.
            is_requested = status == 429 and (wait.is_integer() or wait > MAX_WAIT_SECONDS)
            retry_at = after_seconds(wait, self._clock.now()) if is_requested else None
            self.failure = ProviderFailure(status, message, retry_at)

    def _take_limit(self, info: Mapping[str, Json]) -> None:
        resets_at = info.get("resetsAt")
        if info.get("status") == "rejected" and isinstance(resets_at, int | float):
            now = self._clock.now()
            self.limit_ends = after_seconds(resets_at - now.timestamp(), now)

    def _take_event(self, event: Mapping[str, Json], by_subagent: bool) -> None:
        delta = _mapping(event.get("delta"))
        if delta.get("type") == "text_delta":
            self.notify("text", str(delta.get("text") or ""))
        elif delta.get("type") == "thinking_delta":
            self.notify("thinking", str(delta.get("thinking") or ""))
        elif event.get("type") == "message_start":
            self._count(_mapping(_mapping(event.get("message")).get("usage")), read=True)
        elif event.get("type") == "message_delta":
            self._count(_mapping(event.get("usage")), read=False)
            if not by_subagent:
                self.refused = delta.get("stop_reason") == "refusal"

    def _count(self, usage: Mapping[str, Json], *, read: bool) -> None:
        tokens = tokens_read(usage) if read else 0
        written = 0 if read else int(_number(usage.get("output_tokens")))
        self.counted = self.counted.plus(
            Usage(input_tokens=tokens, output_tokens=written, turns=int(read))
        )

    def _take_message(self, message: Mapping[str, Json], by_subagent: bool) -> None:
        model = message.get("model")
        if isinstance(model, str) and model not in ("", MADE_UP_MODEL) and not by_subagent:
            self.model = model
        for block in _blocks(message.get("content")):
            if block.get("type") == "tool_use":
                self.notify("tool", _tool_summary(block))


def _tool_summary(use: Mapping[str, Json]) -> str:
    """A tool's name and what it is used on: the command, the file, the pattern."""
    arguments = _mapping(use.get("input"))
    named = (arguments.get(name) for name in _SUMMARY_ARGUMENTS)
    about = next((value for value in named if isinstance(value, str) and value), "")
    summary = plain_line(f"{use.get('name') or ''} {about}", MAX_SUMMARY_CHARACTERS)
    if len(summary) <= MAX_PROGRESS_CHARACTERS:
        return summary
    # Between two words: half a secret would not be found where secrets are taken out.
    return f"{summary[:MAX_PROGRESS_CHARACTERS].rpartition(' ')[0]} …"


def _to_nobody(kind: ProgressKind, text: str) -> None:
    return None


def tokens_read(usage: Mapping[str, Json]) -> int:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(int(_number(usage.get(name))) for name in names)


def tool_results(record: Mapping[str, Json]) -> Iterator[ToolResult]:
    """The ends of tools that a record tells of."""
    if record.get("type") != "user":
        return
    for block in _blocks(_mapping(record.get("message")).get("content")):
        use = block.get("tool_use_id")
        if block.get("type") == "tool_result" and isinstance(use, str):
            yield ToolResult(use, block.get("is_error") is not True, _text(block.get("content")))


def used_by(result: Mapping[str, Json], counted: Usage) -> Usage:
    """Return what the turn used. `total_cost_usd` is no help: it goes on counting in a resumed conversation."""
    models = result.get("model_usage_since_last_result")
    if not isinstance(models, dict) or not models:
        return counted
    figures = [_mapping(figure) for figure in models.values()]
    read = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return Usage(
        input_tokens=int(sum(_number(one.get(name)) for one in figures for name in read)),
        output_tokens=int(sum(_number(one.get("outputTokens")) for one in figures)),
        usd=sum(_number(one.get("costUSD")) for one in figures),
    )


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _blocks(content: Json) -> Iterator[Mapping[str, Json]]:
    return (
        (block for block in content if isinstance(block, dict))
        if isinstance(content, list)
        else iter(())
    )


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text") or "") for block in _blocks(content))


def _number(value: Json) -> float:
    """A figure of the CLI's. What is none, or no sensible one, counts as nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < 1e15 else 0.0
