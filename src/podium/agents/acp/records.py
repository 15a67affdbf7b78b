"""What an ACP agent says in a turn, update by update, put together."""

from __future__ import annotations

from collections.abc import Mapping

from podium.agents.acp.gatekeeper import Gatekeeper
from podium.agents.acp.wishes import ACTING, changed_paths, title_of
from podium.agents.headless.ending import plain_words
from podium.agents.pricing import cost_of
from podium.agents.rpc import Params
from podium.domain.gating import Usage
from podium.domain.model import Json
from podium.ports import TurnDoor

_OVER = {"completed": True, "failed": False}
_MOST_WARNINGS = 20


class Heard:
    """Everything a turn's updates have said so far. Progress is told on the way."""

    def __init__(self, door: TurnDoor, gatekeeper: Gatekeeper) -> None:
        self._door = door
        self._gatekeeper = gatekeeper
        self._pieces: list[str] = []
        self._kinds: dict[str, str] = {}
        self._tool_since = False
        self.listening = False
        """Updates count only from our prompt on: a loaded conversation is told over again."""
        self.replayed = 0
        """How many updates came before."""
        self.agent: Mapping[str, Json] = {}
        self.session: str | None = None
        self.result: Mapping[str, Json] | None = None
        self.warnings: list[str] = []

    @property
    def text(self) -> str:
        """What the agent said last, after all its tools."""
        return "".join(self._pieces)

    @property
    def used_tools(self) -> bool:
        return bool(self._kinds)

    async def hear(self, method: str, params: Params) -> None:
        update = params.get("update")
        if method != "session/update" or not isinstance(update, dict):
            return
        kind = update.get("sessionUpdate")
        if not self.listening:
            self.replayed += kind != "available_commands_update"
            return
        if kind == "agent_message_chunk":
            self._take_words(_text(update.get("content")))
        elif kind == "agent_thought_chunk":
            self._door.tell("thinking", _text(update.get("content")))
        elif kind in ("tool_call", "tool_call_update"):
            await self._take_tool(update)
        elif kind == "plan":
            self._door.tell("note", "a plan")

    def _take_words(self, words: str) -> None:
        if self._tool_since:
            self._pieces.clear()
            self._tool_since = False
        self._pieces.append(words)
        self._door.tell("text", words)

    async def _take_tool(self, update: Mapping[str, Json]) -> None:
        number = str(update.get("toolCallId") or "")
        title = plain_words(title_of(update), 200)
        self._tool_since = True
        if number not in self._kinds:
            self._door.tell("tool", title or "a tool")
        kind = update.get("kind")
        if isinstance(kind, str) or number not in self._kinds:
            self._kinds[number] = str(kind or "other")
        status = update.get("status")
        if status not in _OVER:
            return
        ok = _OVER[status]
        if self._gatekeeper.permitted(number):
            await self._gatekeeper.settle(number, ok=ok, output=_output(update))
        elif ok:
            self._note_unasked(number, title, update)

    def _note_unasked(self, number: str, title: str, update: Mapping[str, Json]) -> None:
        """Something was done that nobody permitted: it must not stay unsaid."""
        if self._kinds[number] not in ACTING or len(self.warnings) >= _MOST_WARNINGS:
            return
        changed = changed_paths(update)
        if changed and changed <= self._gatekeeper.written:
            return
        how = "although it was refused" if number in self._gatekeeper.refused else "without asking"
        self.warnings.append(f"the agent says it did {title!r} {how}")


def used_in(result: Mapping[str, Json], model: str) -> Usage:
    """What the prompt used, where the agent tells. The protocol has no fixed place for it yet."""
    usage = _mapping(result.get("usage"))
    counted = _mapping(_mapping(_mapping(result.get("_meta")).get("quota")).get("token_count"))
    cached = _count(usage.get("cachedReadTokens"))
    read = _count(usage.get("inputTokens")) + _count(counted.get("input_tokens")) + cached
    written = _count(usage.get("outputTokens")) + _count(counted.get("output_tokens"))
    if read + written == 0:
        return Usage(complete=False)
    usd = cost_of(model, input_tokens=read, output_tokens=written, cached_tokens=cached)
    return Usage(input_tokens=read, output_tokens=written, usd=usd or 0.0, complete=usd is not None)


def _text(content: Json) -> str:
    text = _mapping(content).get("text")
    return text if isinstance(text, str) else ""


def _output(update: Mapping[str, Json]) -> str:
    content = update.get("content")
    items = content if isinstance(content, list) else []
    return "\n".join(_text(_mapping(item).get("content")) for item in items).strip()


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _count(value: Json) -> int:
    usable = isinstance(value, int | float) and 0 <= value < 1e15
    return int(value) if usable else 0
