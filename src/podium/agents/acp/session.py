"""Session with a running ACP agent: introduction, prompt, updates, transcript, and the error that its end means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Literal

from podium.agents.acp.gatekeeper import (
    ACTING,
    Ended,
    Gatekeeper,
    changed_paths,
    ended_by,
    title_of,
)
from podium.agents.json_rpc import LineClosed, Params, RpcError, RpcPeer, talking
from podium.agents.outcome import (
    cost_of,
    error_of_status,
    lost,
    may_end_with,
    out_of_time,
    plain_line,
)
from podium.agents.program import count_of, mapping_of, received_line, sent_line
from podium.core.decisions import Usage
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    ContextOverflow,
    PodiumError,
)
from podium.core.events import ProgressKind
from podium.core.model import Json
from podium.core.processes import ProcessExit
from podium.core.turns import Turn
from podium.ports import HookDoor, Process, Transcript

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
                self._warn(f"the agent did not report how {title!r} ended; its result is unknown")
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
    models = [mapping_of(entry) for entry in entries] if isinstance(entries, list) else []
    # Gemini CLI calls it `auto` for all answers but the first where it chooses itself.
    named = [entry for entry in models if _is_name(entry.get("model"))]
    most = max(named, key=lambda entry: sum(_counted(entry)), default={})
    return str(most.get("model", ""))


def _is_name(model: Json) -> bool:
    return isinstance(model, str) and not model.startswith("auto")


def _used_by_protocol(result: Mapping[str, Json]) -> tuple[int, int, int] | None:
    """Read, written and cached tokens as a draft of the protocol has them: each kind by itself."""
    usage = mapping_of(result.get("usage"))
    cached = count_of(usage.get("cachedReadTokens"))
    read = cached + sum(count_of(usage.get(name)) for name in ("inputTokens", "cachedWriteTokens"))
    written = sum(count_of(usage.get(name)) for name in ("outputTokens", "thoughtTokens"))
    return (read, written, cached) if read + written else None


def _used_by_quota(result: Mapping[str, Json]) -> tuple[int, int, int]:
    """As Gemini CLI has them."""
    return (*_counted(_quota(result)), 0)


def _counted(entry: Mapping[str, Json]) -> tuple[int, int]:
    counted = mapping_of(entry.get("token_count"))
    return count_of(counted.get("input_tokens")), count_of(counted.get("output_tokens"))


def _quota(result: Mapping[str, Json]) -> Mapping[str, Json]:
    return mapping_of(mapping_of(result.get("_meta")).get("quota"))


def _text(content: Json) -> str:
    text = mapping_of(content).get("text")
    return text if isinstance(text, str) else ""


LINE_BYTES = 64 * 1024 * 1024
_PIECES = ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk")


class Keeper:
    """Sees every line that goes over the wire. In pieces a secret could not be told from words."""

    def __init__(self, transcript: Transcript, agent: str) -> None:
        self._transcript = transcript
        self._agent = agent
        self._kind = ""
        self._pieces: list[str] = []

    def keep(self, way: Literal["sent", "received"], line: str) -> None:
        """Keep a line. Raises `AgentLost` for one that was cut because it is too long to be read."""
        piece = _piece_in(line) if way == "received" else None
        if piece is None:
            self.finish()
            self._transcript.write(sent_line(line) if way == "sent" else received_line(line))
        else:
            self._add(*piece)
        if len(line) * 4 >= LINE_BYTES and len(line.encode(errors="replace")) >= LINE_BYTES:
            raise AgentLost(
                f"agent {self._agent!r} wrote a line of more than {LINE_BYTES} bytes; "
                "it cannot be read"
            )

    def finish(self) -> None:
        """Keep the words that came last."""
        if self._pieces:
            record = {self._kind: "".join(self._pieces)}
            self._pieces.clear()
            self._transcript.write(json.dumps(record, ensure_ascii=False))

    def _add(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self.finish()
        self._kind = kind
        self._pieces.append(text)


def _piece_in(line: str) -> tuple[str, str] | None:
    if '_chunk"' not in line[:1_000]:
        return None
    try:
        update = json.loads(line)["params"]["update"]
        kind, text = update["sessionUpdate"], update["content"]["text"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return (kind, text) if kind in _PIECES and isinstance(text, str) else None


PROTOCOL_VERSION = 1
CANCEL_SECONDS = 1.0
"""Seconds an agent is given to react to a cancel request before it is ended."""

HISTORY_SECONDS = 10.0
"""Seconds to wait for an agent that does not answer requests it does not know."""

INTRODUCTION: dict[str, Json] = {
    "protocolVersion": PROTOCOL_VERSION,
    "clientInfo": {"name": "podium", "version": "1"},
    "clientCapabilities": {
        # Reading stays with the agent: Gemini CLI cannot make a new file when we read for it.
        "fs": {"readTextFile": False, "writeTextFile": True},
        "terminal": False,
    },
}


class SessionUnknown(AgentRejected):
    """The agent does not know the conversation it was to continue."""


class AcpSession:
    """One turn's conversation."""

    def __init__(
        self,
        process: Process,
        gatekeeper: Gatekeeper,
        stream: AcpStream,
        keeper: Keeper,
        agent: str,
    ) -> None:
        self._process = process
        self._gatekeeper = gatekeeper
        self._stream = stream
        self._keeper = keeper
        self._agent = agent

    async def hold(self, turn: Turn) -> None:
        """Ask the turn. Raises `RpcError` for what the agent answers with one, `LineClosed` at its end."""
        async with talking(
            self._process, self._gatekeeper.answer, self._stream.hear, keep=self._keeper.keep
        ) as peer:
            try:
                await self._introduce(peer)
                self._stream.session = await self._session(peer, turn)
                await self._prompt(peer, turn.prompt)
            except asyncio.CancelledError:
                await self._ask_to_stop(peer)
                raise

    async def _introduce(self, peer: RpcPeer) -> None:
        response = mapping_of(await peer.call("initialize", dict(INTRODUCTION)))
        version = response.get("protocolVersion")
        if version != PROTOCOL_VERSION:
            raise AgentRejected(
                f"agent {self._agent!r} uses version {version!r} of ACP, and Podium supports version "
                f"{PROTOCOL_VERSION}; install a version of the agent that supports it too"
            )
        self._stream.agent = response

    async def _session(self, peer: RpcPeer, turn: Turn) -> str:
        parameters: dict[str, Json] = {"cwd": turn.workspace, "mcpServers": []}
        if turn.session is not None and self._can_load():
            try:
                loaded = await peer.call("session/load", {"sessionId": turn.session, **parameters})
                self._stream.current_model = _model_in(mapping_of(loaded))
            except RpcError as error:
                raise SessionUnknown(
                    f"agent {self._agent!r} cannot resume conversation {turn.session!r} "
                    f"({message_of(error)}); start a new conversation"
                ) from None
            await self._hear_history_out(peer)
            return turn.session
        if turn.session is not None:
            self._stream.warnings.append(
                f"agent {self._agent!r} cannot resume conversations; a new one was started"
            )
        opened = mapping_of(await peer.call("session/new", parameters))
        self._stream.current_model = _model_in(opened)
        session = opened.get("sessionId")
        if not isinstance(session, str) or not session:
            raise AgentLost(f"agent {self._agent!r} opened a session without an id")
        return session

    async def _hear_history_out(self, peer: RpcPeer) -> None:
        """Come back when the conversation has been told over again, or after a while.

        The history should come before the answer to our call; Gemini CLI goes on with it behind. As
        long as it does, something of it stands before its answer to every question we put.
        """
        quiet = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(HISTORY_SECONDS):
                while quiet < 2:
                    before = self._stream.replayed
                    with suppress(RpcError):
                        await peer.call("_podium/still_there")
                    quiet = quiet + 1 if self._stream.replayed == before else 0

    def _can_load(self) -> bool:
        return mapping_of(self._stream.agent.get("agentCapabilities")).get("loadSession") is True

    async def _prompt(self, peer: RpcPeer, prompt: str) -> None:
        self._stream.listening = True
        # A slash at the very beginning makes it a command with many agents.
        text = f"\n{prompt}" if prompt.startswith("/") else prompt
        asked = {"sessionId": self._stream.session, "prompt": [{"type": "text", "text": text}]}
        self._stream.result = mapping_of(await peer.call("session/prompt", asked))

    async def _ask_to_stop(self, peer: RpcPeer) -> None:
        if self._stream.session is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await peer.notify("session/cancel", {"sessionId": self._stream.session})


def message_of(error: RpcError) -> str:
    """Return the message of an error. Some agents put the details beside the message."""
    details = mapping_of(error.data).get("details")
    return f"{error.message}: {details}" if isinstance(details, str) else error.message


def _model_in(opened: Mapping[str, Json]) -> str:
    model = mapping_of(opened.get("models")).get("currentModelId")
    return model if isinstance(model, str) else ""


AUTH_REQUIRED = -32000
_BAD_REQUEST = (-32600, -32601, -32602)
"""Invalid request, unknown method, invalid parameters."""

ReadError = Callable[[str, int | None, str, datetime], PodiumError]
"""Finds the error for an HTTP status and words: agent, status, words, now."""


def error_at_end(
    agent: str,
    turn: Turn,
    stream: AcpStream,
    gatekeeper: Gatekeeper,
    ended: ProcessExit,
    waiting: tuple[str, ...] = (),
) -> PodiumError | None:
    """The error this end stands for; None for a success, which takes an answer to the prompt.

    `waiting` are the approvals it was told to wait for, with nothing left to say.
    """
    if ended.timed_out:
        return out_of_time(agent, ended)
    if stream.result is None:
        return lost(agent, ended)
    reason = stream.result.get("stopReason")
    if reason == "max_turn_requests":
        return _out_of_turns(agent, turn)
    if stream.silent and may_end_with("", waiting):
        return None
    if reason == "refusal":
        return AgentRefused(f"the model of agent {agent!r} refused the request")
    if reason == "cancelled" and not gatekeeper.refused:
        return AgentLost(f"agent {agent!r} cancelled its own turn")
    if reason == "max_tokens" and not stream.text:
        return ContextOverflow(
            f"the model of agent {agent!r} reached its output limit before it wrote any text"
        )
    if reason not in ("end_turn", "cancelled", "max_tokens"):
        return AgentLost(f"agent {agent!r} ended its turn for an unknown reason: {reason!r}")
    if reason == "end_turn" and not may_end_with(stream.text, waiting):
        return AgentUnavailable(f"the model of agent {agent!r} gave no answer")
    return None


def warnings_at_end(stream: AcpStream) -> tuple[str, ...]:
    """Return warnings for a person about an answer that counts."""
    reason = (stream.result or {}).get("stopReason")
    cut = ("the answer was cut off at the model's output limit",) if reason == "max_tokens" else ()
    broken = ("the agent stopped after a refusal",) if reason == "cancelled" else ()
    return (*stream.warnings, *cut, *broken)


def error_of_failure(
    agent: str, error: Exception, ended: ProcessExit, now: datetime, read: ReadError
) -> Exception:
    """The error for what ended the conversation early."""
    if ended.timed_out:
        return out_of_time(agent, ended)
    if isinstance(error, LineClosed):
        return lost(agent, ended)
    if not isinstance(error, RpcError):
        return error
    message = message_of(error)
    if error.code == AUTH_REQUIRED:
        return AgentNotLoggedIn(f"agent {agent!r} is not logged in: {message}; {login_hint(agent)}")
    if error.code in _BAD_REQUEST:
        return AgentRejected(f"agent {agent!r} rejected the request: {message}")
    status = error.code if 400 <= error.code <= 599 else None
    return read(agent, status, message, now)


def error_of_message(agent: str, status: int | None, message: str, now: datetime) -> PodiumError:
    """The error for an agent nothing more is known of."""
    return error_of_status(agent, status, message, login_hint=login_hint(agent), now=now)


def login_hint(agent: str) -> str:
    return (
        f"set the key of agent {agent!r} in its `env`, or list its login file under "
        "`options: copy_files`"
    )


def _out_of_turns(agent: str, turn: Turn) -> BudgetSpent:
    limit = turn.limits.turns or 0
    return BudgetSpent(
        f"agent {agent!r} reached its limit on model requests ({limit}) before it was done; raise "
        "the limit of its role",
        scope="step",
        measure="turns",
        used=limit,
        limit=limit,
    )
