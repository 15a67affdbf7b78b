"""An ACP agent's permission requests as calls for the gate, and how each tool call ended.

The protocol calls a tool call `completed` or `failed` and has no word for an exit code. Of a command
`completed` says only that it ran: Gemini CLI says so of one that leaves with 3. Where agents tell the
code, they do it in places of their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from podium.agents.headless.own_tools import change_text, whole_edit
from podium.agents.json_rpc import METHOD_NOT_FOUND, Params, RpcError
from podium.agents.program import mapping_of
from podium.core.decisions import CallOutcome, HookAnswer
from podium.core.model import Json
from podium.core.tool_replies import refusal_text
from podium.ports import HookDoor

ACTING = frozenset({"execute", "edit", "delete", "move"})
"""Kinds of tool calls that change something."""

_NAMING_FILES = ("glob", "include", "include_pattern")


class AcpToolRequest(NamedTuple):
    """A registered tool and its arguments."""

    tool: str
    arguments: dict[str, Json]


def intents_of(call: Mapping[str, Json]) -> list[AcpToolRequest]:
    """Everything that saying yes to this tool call would allow. Never empty."""
    kind, title = call.get("kind"), title_of(call)
    raw_input = mapping_of(call.get("rawInput"))
    paths = list(_paths(call))
    if kind == "execute":
        return [AcpToolRequest("run_command", _command(raw_input, title))]
    if kind == "edit" and (changes := [*_changes(call)] or _edits(paths, title, raw_input)):
        return changes
    if kind == "delete" and paths:
        return [AcpToolRequest("delete_file", {"path": path}) for path in paths]
    if kind == "read" and paths:
        return [AcpToolRequest("read_file", {"path": path}) for path in paths]
    if kind == "search":
        return [_search(raw_input, title, path) for path in paths or ["."]]
    if kind == "fetch":
        return [AcpToolRequest("web_fetch", {"url": str(raw_input.get("url") or title)})]
    if kind == "think":
        return [AcpToolRequest("keep_notes", {"text": title})]
    return [AcpToolRequest("own_tool", {"name": title or str(kind), "arguments": dict(raw_input)})]


def title_of(call: Mapping[str, Json]) -> str:
    title = call.get("title")
    return title if isinstance(title, str) else ""


def changed_paths(call: Mapping[str, Json]) -> set[str]:
    """The files that a call says it changes."""
    return {str(intent.arguments["path"]) for intent in _changes(call)}


def _command(raw_input: Mapping[str, Json], title: str) -> dict[str, Json]:
    """The command itself where it is told apart from its title, which may be set in backticks."""
    value = raw_input.get("command")
    is_argv = (
        isinstance(value, list) and value and all(isinstance(argument, str) for argument in value)
    )
    command = value if is_argv or (isinstance(value, str) and value) else _unquoted(title)
    cwd = raw_input.get("cwd")
    return {"command": command, **({"cwd": cwd} if isinstance(cwd, str) and cwd else {})}


def _search(raw_input: Mapping[str, Json], title: str, path: str) -> AcpToolRequest:
    """The protocol has no place for the files that a search names; agents have words for it."""
    named = next(
        (raw_input[name] for name in _NAMING_FILES if isinstance(raw_input.get(name), str)), ""
    )
    arguments: dict[str, Json] = {"pattern": title, "path": path}
    return AcpToolRequest("search_text", {**arguments, "glob": named} if named else arguments)


def _unquoted(title: str) -> str:
    quoted = len(title) > 2 and title[0] == title[-1] == "`" and "`" not in title[1:-1]
    return title[1:-1] if quoted else title


def _changes(call: Mapping[str, Json]) -> Iterator[AcpToolRequest]:
    content = call.get("content")
    for item in content if isinstance(content, list) else []:
        if isinstance(item, dict) and item.get("type") == "diff":
            change = change_text(item.get("oldText"), item.get("newText"))
            yield AcpToolRequest(
                "edit_file", {"path": str(item.get("path") or ""), "change": change}
            )


def _edits(paths: list[str], title: str, raw_input: Mapping[str, Json]) -> list[AcpToolRequest]:
    """Without a diff: what is called the edit, and all that it was told."""
    lines = [title, json.dumps(raw_input, sort_keys=True)] if raw_input else [title]
    change = whole_edit("\n".join(lines))
    return [AcpToolRequest("edit_file", {"path": path, "change": change}) for path in paths]


def _paths(call: Mapping[str, Json]) -> Iterator[str]:
    locations = call.get("locations")
    for location in locations if isinstance(locations, list) else []:
        path = mapping_of(location).get("path")
        if isinstance(path, str) and path:
            yield path


_OVER = {"completed": True, "failed": False}
_MAX_OUTPUT = 4_000
_NAMES = ("exit_code", "exitCode", "exit")


@dataclass(frozen=True)
class Ended:
    """The end of a call as an update reports it."""

    ok: bool
    output: str
    exit_code: int | None

    def as_outcome(self) -> CallOutcome:
        error = "" if self.ok else self.output[:500] or "failed without a word"
        return CallOutcome(ok=self.ok, result={"done": self.ok, **self._details()}, error=error)

    def of_a_command(self) -> CallOutcome | None:
        """None when it says that the command ran and not how it ended."""
        if not self.ok:
            return self.as_outcome()
        if self.exit_code is None:
            return None
        ok = self.exit_code == 0
        error = "" if ok else f"exit code {self.exit_code}"
        return CallOutcome(ok=ok, result={"done": ok, **self._details()}, error=error)

    def _details(self) -> dict[str, Json]:
        return {"exit_code": self.exit_code, "output": self.output[:_MAX_OUTPUT]}


def ended_by(update: Mapping[str, Json]) -> Ended | None:
    """Read the end of a call from an update. None while the call goes on."""
    status = update.get("status")
    if not isinstance(status, str) or status not in _OVER:
        return None
    return Ended(_OVER[status], _output(update), _exit_code(update))


def _exit_code(update: Mapping[str, Json]) -> int | None:
    """As codex-acp (in the raw output), opencode (in its metadata) or Claude's adapter (in `_meta`) have it."""
    for result in _result_objects(update):
        for name in _NAMES:
            code = result.get(name)
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def _result_objects(update: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    raw = mapping_of(update.get("rawOutput"))
    yield raw
    yield mapping_of(raw.get("metadata"))
    yield mapping_of(mapping_of(update.get("_meta")).get("terminal_exit"))


def _output(update: Mapping[str, Json]) -> str:
    content = update.get("content")
    items = content if isinstance(content, list) else []
    texts = (mapping_of(mapping_of(item).get("content")).get("text") for item in items)
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


REFUSED = -32001
NOTHING_CHOSEN = {"outcome": "cancelled"}
NO_SINGLE_YES = "the call is allowed, but the agent offers no option to allow it once"
_MAX_UNTOLD = 50

ReadIntents = Callable[[Mapping[str, Json]], list[AcpToolRequest]]
"""Reads what a tool call wants."""


class Gatekeeper:
    """Answers for one turn. Only single permissions are given, never lasting ones."""

    def __init__(self, door: HookDoor, read_intents: ReadIntents, writes_in: str = "") -> None:
        """`writes_in`: a folder in which the agent is known to hand every write over to us.

        What it asks for there is judged when it comes to be written, once and with its content.
        """
        self._writes_in = os.path.realpath(writes_in) if writes_in else ""
        self._door = door
        self._read_intents = read_intents
        self._permitted: dict[str, list[tuple[str, str]]] = {}
        """By tool call: names of the permits, each with the tool it is for."""
        self.refused: set[str] = set()
        """Tool calls that got a no."""
        self.written: set[str] = set()
        """Files that Podium wrote for the agent."""
        self.untold: list[str] = []
        """Reasons of refusals, for which the protocol has no field."""

    def permitted(self, call: str) -> bool:
        return call in self._permitted

    async def answer(self, method: str, params: Params) -> Json:
        if method == "session/request_permission":
            return {"outcome": await self._decide(params)}
        if method == "fs/write_text_file":
            return await self._write(params)
        raise RpcError(METHOD_NOT_FOUND, f"{method!r} is not supported")

    async def settle(self, call: str, ended: Ended) -> bool:
        """Record how a permitted call ended. False when that cannot be told of a part of it.

        That part stays open and is abandoned with the turn.
        """
        complete = True
        for ref, tool in self._permitted.get(call, ()):
            outcome = ended.of_a_command() if tool == "run_command" else ended.as_outcome()
            if outcome is None:
                complete = False
                continue
            await self._door.settle(ref, ok=outcome.ok, result=outcome.result, error=outcome.error)
        return complete

    async def _decide(self, params: Params) -> Json:
        call = params.get("toolCall")
        tool_call = call if isinstance(call, dict) else {}
        number = tool_call.get("toolCallId")
        if not isinstance(number, str) or not number:
            return _chosen(params, "reject_once")
        refusal = await self._judge(number, tool_call)
        yes = _chosen(params, "allow_once")
        if refusal is None and yes != NOTHING_CHOSEN:
            return yes
        self.refused.add(number)
        if refusal is None:
            self._keep_untold(title_of(tool_call), await self._take_back(number))
        elif refusal.approval_id is None:
            # What waits for a person is told with what the person says.
            self._keep_untold(title_of(tool_call), refusal.say)
        return _chosen(params, "reject_once")

    async def _take_back(self, number: str) -> str:
        """Settle a permit that could not be handed over. Gives the words for it."""
        for ref, _ in self._permitted.pop(number, ()):
            await self._door.settle(ref, ok=False, error=NO_SINGLE_YES)
        return NO_SINGLE_YES

    async def _judge(self, number: str, call: Mapping[str, Json]) -> HookAnswer | None:
        """The first no to any of what the call wants; None when all of it may be done."""
        permits: list[tuple[str, str]] = []
        for index, intent in enumerate(self._read_intents(call)):
            if self._comes_to_us(intent):
                continue
            ref = f"{number}#{index}"
            answer = await self._door.request(intent.tool, intent.arguments, ref=ref)
            if not answer.allowed:
                for granted, _ in permits:
                    await self._door.settle(
                        granted, ok=False, error="another part of the call was refused"
                    )
                return answer
            permits.append((ref, intent.tool))
        self._permitted[number] = permits
        return None

    def _comes_to_us(self, intent: AcpToolRequest) -> bool:
        path = intent.arguments.get("path")
        if (
            not self._writes_in
            or intent.tool != "edit_file"
            or not isinstance(path, str)
            or not path
        ):
            return False
        real = os.path.realpath(os.path.join(self._writes_in, path))  # noqa: PTH118 — may be absolute
        return real.startswith(self._writes_in + os.sep)

    async def _write(self, params: Params) -> Json:
        """Write a file in the agent's place, so that it is judged and receipted as our own act."""
        path, content = params.get("path"), params.get("content")
        answer = await self._door.perform("write_file", {"path": path, "content": content})
        ended = answer.outcome
        if answer.allowed and ended is not None and ended.ok:
            self.written.add(str(path))
            return {}
        if answer.allowed:
            reason = ended.error if ended is not None else "no result was reported"
            raise RpcError(REFUSED, f"{path!r} was not written: {reason}")
        if answer.approval_id is None:
            self._keep_untold(f"writing {path}", answer.say)
        waits = answer.approval_id is not None
        raise RpcError(REFUSED, refusal_text(answer.say, mistake=answer.mistake, waits=waits))

    def _keep_untold(self, what: str, reason: str) -> None:
        if len(self.untold) < _MAX_UNTOLD:
            self.untold.append(f"Permission Denied: {what[:200]}: {reason}")


def _chosen(params: Params, kind: str) -> Json:
    """The option of this kind. Without one nothing is chosen, which is a no."""
    options = params.get("options")
    for option in options if isinstance(options, list) else []:
        if isinstance(option, dict) and option.get("kind") == kind:
            return {"outcome": "selected", "optionId": option.get("optionId")}
    return dict(NOTHING_CHOSEN)
