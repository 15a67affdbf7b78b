"""What Gemini CLI says in a turn, record by record, put together."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from podium.agents.headless.ending import plain_words
from podium.agents.headless.gemini.outcomes import outcome
from podium.agents.headless.gemini.tools import SUBAGENTS
from podium.agents.headless.handless import OwnTools
from podium.agents.headless.kept_lines import heard_line
from podium.agents.pricing import cost_of
from podium.domain.events import ProgressKind
from podium.domain.gating import Usage
from podium.domain.model import Json
from podium.ports import ANY_USE, Transcript, nameless_use


class Heard:
    """Everything a turn's records have said so far. Once attended, progress is told on the way."""

    def __init__(self) -> None:
        self._door: OwnTools | None = None
        self._tell: Callable[[ProgressKind, str], None] = lambda kind, text: None
        self._keep: Callable[[str], None] = lambda line: None
        self._unkept: list[str] = []
        self._pieces: list[str] = []
        self._uses: dict[str, tuple[str, str]] = {}
        """The CLI's name of a use → its tool, and the door's name of it."""
        self._tool_ended = False
        self._answering = False
        self.started = False
        """Whether the program was started: from then on something may have been used."""
        self.exchanges = 0
        """How often the model has answered, be it with a tool. Those of subagents are not told."""
        self.model = ""
        self.session: str | None = None
        self.warnings: list[str] = []
        self.fault = ""
        """What the CLI itself calls an error, in its words."""
        self.result: dict[str, Json] | None = None

    def attend(self, door: OwnTools, transcript: Transcript) -> None:
        self._door, self._tell, self._keep = door, door.tell, transcript.write

    def usage(self, seconds: float) -> Usage:
        """What was used until now. The CLI tells tokens only at the very end."""
        if not self.started:
            return Usage(seconds=seconds)
        return used_by(self.result).plus(Usage(turns=max(1, self.exchanges), seconds=seconds))

    @property
    def text(self) -> str:
        """What the model said last, after all its tools."""
        return "".join(self._pieces)

    async def take(self, line: str) -> None:
        """Take in a line of its output. What is no record is only kept: programs print other things too."""
        record = _record_of(line)
        kind = record.get("type")
        words = kind == "message" and record.get("role") == "assistant"
        self._count(answering=words or kind == "tool_use", over=kind == "tool_result")
        if words:
            self._take_words(str(record.get("content") or ""))
            return
        self.finish()
        self._keep(heard_line(line))
        if kind == "tool_use":
            self._tell("tool", _tool_words(record))
            self._begin_use(record)
        elif kind == "tool_result":
            self._tool_ended = True
            await self._end_use(record)
        elif kind == "error":
            self._take_fault(record)
        elif kind == "init":
            self._take_beginning(record)
        elif kind == "result":
            self.result = dict(record)

    def _count(self, *, answering: bool, over: bool) -> None:
        """An answer is the words and tools up to the first result of a tool."""
        self.exchanges += answering and not self._answering
        self._answering = (self._answering or answering) and not over

    def finish(self) -> None:
        """Keep the words that came last. In pieces a secret could not be told from other words."""
        if self._unkept:
            words = "".join(self._unkept)
            self._unkept.clear()
            self._keep(
                json.dumps(
                    {"type": "message", "role": "assistant", "content": words}, ensure_ascii=False
                )
            )

    def _begin_use(self, record: Mapping[str, Json]) -> None:
        """Let the hook ask for it. It gets no name of the use, so tool and arguments have to do."""
        tool = str(record.get("tool_name"))
        name = nameless_use(tool, dict(_mapping(record.get("parameters"))))
        self._uses[str(record.get("tool_id"))] = (tool, name)
        self._expect(tool, name)

    def _expect(self, tool: str, name: str) -> None:
        if self._door is not None:
            self._door.expect(name)
            if tool == SUBAGENTS:
                # What an inner agent does is told nowhere.
                self._door.expect(ANY_USE)

    async def _end_use(self, record: Mapping[str, Json]) -> None:
        """Settle the call as the CLI tells it; one of which nobody knows the end stays open."""
        used = self._uses.pop(str(record.get("tool_id")), None)
        if used is None or self._door is None:
            return
        tool, name = used
        self._door.expect_no_more(name)
        if tool == SUBAGENTS:
            self._door.expect_no_more(ANY_USE)
        if (ended := outcome(tool, record)) is not None:
            await self._door.settle(name, ok=ended.ok, result=ended.result, error=ended.error)

    def _take_beginning(self, record: Mapping[str, Json]) -> None:
        self.model = str(record.get("model") or "")
        session = record.get("session_id")
        self.session = session if isinstance(session, str) else None

    def _take_words(self, words: str) -> None:
        if self._tool_ended:
            self._pieces.clear()
            self._tool_ended = False
        self._pieces.append(words)
        self._unkept.append(words)
        self._tell("text", words)

    def _take_fault(self, record: Mapping[str, Json]) -> None:
        words = plain_words(str(record.get("message") or ""))
        self._tell("note", words)
        if record.get("severity") == "error":
            self.fault = words
        else:
            self.warnings.append(words)


def _record_of(line: str) -> Mapping[str, Json]:
    try:
        return _mapping(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def used_by(result: Mapping[str, Json] | None) -> Usage:
    """What the turn used, subagents included. Without figures it is unknown."""
    stats = _mapping(result.get("stats")) if result is not None else {}
    models = _mapping(stats.get("models"))
    if not models:
        return Usage(complete=False)
    total = Usage()
    for model, figures in models.items():
        total = total.plus(_used_of(model, _mapping(figures)))
    return total


def _used_of(model: str, figures: Mapping[str, Json]) -> Usage:
    read, written = _count(figures.get("input_tokens")), _count(figures.get("output_tokens"))
    # Thoughts are paid for as output, and only the total counts them.
    written = max(written, _count(figures.get("total_tokens")) - read)
    cached = _count(figures.get("cached"))
    usd = cost_of(model, input_tokens=read, output_tokens=written, cached_tokens=cached)
    nothing = read == 0 and written == 0
    return Usage(
        input_tokens=read,
        output_tokens=written,
        usd=usd or 0.0,
        complete=usd is not None or nothing,
    )


def _tool_words(record: Mapping[str, Json]) -> str:
    arguments = _mapping(record.get("parameters"))
    about = next((value for value in arguments.values() if isinstance(value, str)), "")
    return plain_words(f"{record.get('tool_name')} {about}", 200)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _count(value: Json) -> int:
    usable = isinstance(value, int | float) and 0 <= value < 1e15
    return int(value) if usable else 0
