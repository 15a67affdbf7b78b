"""What Gemini CLI says in a turn, record by record, put together."""

from __future__ import annotations

import json
from collections.abc import Mapping

from podium.agents.headless.ending import plain_words
from podium.agents.pricing import cost_of
from podium.domain.gating import Usage
from podium.domain.model import Json
from podium.ports import Transcript, TurnDoor


class Heard:
    """Everything a turn's records have said so far. Progress is told on the way."""

    def __init__(self, door: TurnDoor, transcript: Transcript) -> None:
        self._door = door
        self._transcript = transcript
        self._unkept: list[str] = []
        self._pieces: list[str] = []
        self._tool_ended = False
        self.model = ""
        self.session: str | None = None
        self.warnings: list[str] = []
        self.fault = ""
        """What the CLI itself calls an error, in its words."""
        self.result: dict[str, Json] | None = None

    @property
    def text(self) -> str:
        """What the model said last, after all its tools."""
        return "".join(self._pieces)

    def take(self, line: str) -> None:
        """Take in a line of its output. What is no record is only kept: programs print other things too."""
        record = _record_of(line)
        kind = record.get("type")
        if kind == "message" and record.get("role") == "assistant":
            self._take_words(str(record.get("content") or ""))
            return
        self.finish()
        self._transcript.write(line)
        if kind == "tool_use":
            self._door.tell("tool", _tool_words(record))
        elif kind == "tool_result":
            self._tool_ended = True
        elif kind == "error":
            self._take_fault(record)
        elif kind == "init":
            self._take_beginning(record)
        elif kind == "result":
            self.result = dict(record)

    def finish(self) -> None:
        """Keep the words that came last. In pieces a secret could not be told from other words."""
        if self._unkept:
            words = "".join(self._unkept)
            self._unkept.clear()
            self._transcript.write(
                json.dumps(
                    {"type": "message", "role": "assistant", "content": words}, ensure_ascii=False
                )
            )

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
        self._door.tell("text", words)

    def _take_fault(self, record: Mapping[str, Json]) -> None:
        words = plain_words(str(record.get("message") or ""))
        self._door.tell("note", words)
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
