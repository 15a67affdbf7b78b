"""State of an ACP turn, put together from its updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.agents.acp.gatekeeper import (
    ACTING,
    Ended,
    Gatekeeper,
    changed_paths,
    ended_by,
    title_of,
)
from podium.agents.json_rpc import Params
from podium.agents.outcome import cost_of, plain_line
from podium.core.decisions import Usage
from podium.core.events import ProgressKind
from podium.core.model import Json
from podium.ports import HookDoor

_MAX_WARNINGS = 20

ReadEnd = Callable[[Mapping[str, Json]], Ended | None]
"""Reads how a tool call ended."""


class AcpStream:
    """Everything a turn's updates have said so far. Progress is told on the way."""

    def __init__(self, model: str = "", read_end: ReadEnd = ended_by) -> None:
        """`model` is what it was told to think with; empty where that is its own choice."""
        self._model = model
        self._read_end = read_end
        self._notify: Callable[[ProgressKind, str], None] = lambda kind, text: None
        self._gatekeeper: Gatekeeper | None = None
        self._pieces: list[str] = []
        self._kinds: dict[str, str] = {}
        self._tool_since = False
        self.listening = False
        """Updates count only from our prompt on: a loaded conversation is told over again."""
        self.replayed = 0
        """Number of updates that came before."""
        self.started = False
        """True once the program was started: from then on something may have been used."""
        self.agent: Mapping[str, Json] = {}
        self.session: str | None = None
        self.current_model = ""
        """The model that the conversation began with, where the agent reports it."""
        self.result: Mapping[str, Json] | None = None
        self.warnings: list[str] = []

    def attend(self, door: HookDoor, gatekeeper: Gatekeeper) -> None:
        """From here on progress is told, and ends of tools are handed on."""
        self._notify, self._gatekeeper = door.report_progress, gatekeeper

    @property
    def model(self) -> str:
        return self._model or model_in(self.result or {}) or self.current_model

    def usage(self, seconds: float) -> Usage:
        """Return what was used until now. Agents report it with the answer, if at all."""
        if not self.started:
            return Usage(seconds=seconds)
        return used_in(self.result or {}, self.model).plus(Usage(turns=1, seconds=seconds))

    @property
    def text(self) -> str:
        """The agent's last message, after all its tools."""
        return "".join(self._pieces)

    @property
    def silent(self) -> bool:
        """True if it has said nothing since its last tool."""
        return self._tool_since or not self.text

    async def hear(self, method: str, params: Params) -> None:
        update = params.get("update")
        if method != "session/update" or not isinstance(update, dict):
            return
        kind = update.get("sessionUpdate")
        if not self.listening:
            self.replayed += kind != "available_commands_update"
            return
        if kind == "agent_message_chunk":
            self._take_text(_text(update.get("content")))
        elif kind == "agent_thought_chunk":
            self._notify("thinking", _text(update.get("content")))
        elif kind in ("tool_call", "tool_call_update"):
            await self._take_tool(update)
        elif kind == "plan":
            self._notify("note", "a plan")

    def _take_text(self, text: str) -> None:
        if self._tool_since:
            self._pieces.clear()
            self._tool_since = False
        self._pieces.append(text)
        self._notify("text", text)

    async def _take_tool(self, update: Mapping[str, Json]) -> None:
        number = str(update.get("toolCallId") or "")
        title = plain_line(title_of(update), 200)
        self._tool_since = True
        if number not in self._kinds:
            self._notify("tool", title or "a tool")
        kind = update.get("kind")
        if isinstance(kind, str) or number not in self._kinds:
            self._kinds[number] = str(kind or "other")
        ended, keeper = self._read_end(update), self._gatekeeper
        if ended is None or keeper is None:
            return
        if keeper.permitted(number):
            if not await keeper.settle(number, ended):
                self._warn(f"the agent does not tell how {title!r} ended: it is not known")
        elif ended.ok:
            self._note_unasked(keeper, number, title, update)

    def _note_unasked(
        self, keeper: Gatekeeper, number: str, title: str, update: Mapping[str, Json]
    ) -> None:
        """Something was done that nobody permitted: it must not stay unsaid."""
        if self._kinds[number] not in ACTING:
            return
        changed = changed_paths(update)
        if changed and changed <= keeper.written:
            return
        how = "although it was refused" if number in keeper.refused else "without asking"
        self._warn(f"the agent says it did {title!r} {how}")

    def _warn(self, warning: str) -> None:
        if len(self.warnings) < _MAX_WARNINGS:
            self.warnings.append(warning)


def used_in(result: Mapping[str, Json], model: str) -> Usage:
    """Return what the prompt used, where the agent reports it. The protocol has no fixed field for it yet."""
    read, written, cached = _used_by_protocol(result) or _used_by_quota(result)
    if read + written == 0:
        return Usage(complete=False)
    usd = cost_of(model, input_tokens=read, output_tokens=written, cached_tokens=cached)
    return Usage(input_tokens=read, output_tokens=written, usd=usd or 0.0, complete=usd is not None)


def model_in(result: Mapping[str, Json]) -> str:
    """The model that most was used of, where the agent names those it asked."""
    entries = _quota(result).get("model_usage")
    models = [_mapping(entry) for entry in entries] if isinstance(entries, list) else []
    # Gemini CLI calls it `auto` for all answers but the first where it chooses itself.
    named = [entry for entry in models if _is_name(entry.get("model"))]
    most = max(named, key=lambda entry: sum(_counted(entry)), default={})
    return str(most.get("model", ""))


def _is_name(model: Json) -> bool:
    return isinstance(model, str) and not model.startswith("auto")


def _used_by_protocol(result: Mapping[str, Json]) -> tuple[int, int, int] | None:
    """Read, written and cached tokens as a draft of the protocol has them: each kind by itself."""
    usage = _mapping(result.get("usage"))
    cached = _count(usage.get("cachedReadTokens"))
    read = cached + sum(_count(usage.get(name)) for name in ("inputTokens", "cachedWriteTokens"))
    written = sum(_count(usage.get(name)) for name in ("outputTokens", "thoughtTokens"))
    return (read, written, cached) if read + written else None


def _used_by_quota(result: Mapping[str, Json]) -> tuple[int, int, int]:
    """As Gemini CLI has them."""
    return (*_counted(_quota(result)), 0)


def _counted(entry: Mapping[str, Json]) -> tuple[int, int]:
    counted = _mapping(entry.get("token_count"))
    return _count(counted.get("input_tokens")), _count(counted.get("output_tokens"))


def _quota(result: Mapping[str, Json]) -> Mapping[str, Json]:
    return _mapping(_mapping(result.get("_meta")).get("quota"))


def _text(content: Json) -> str:
    text = _mapping(content).get("text")
    return text if isinstance(text, str) else ""


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _count(value: Json) -> int:
    usable = isinstance(value, int | float) and 0 <= value < 1e15
    return int(value) if usable else 0
