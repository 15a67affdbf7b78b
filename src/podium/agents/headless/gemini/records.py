"""Records of a turn of Gemini CLI, put together, and the error of the tree that its end means."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime

from podium.agents.headless.gemini.tools import SUBAGENTS, outcome
from podium.agents.headless.own_tools import OwnTools
from podium.agents.outcome import (
    cost_of,
    error_of_status,
    lost,
    may_end_with,
    out_of_time,
    plain_line,
    stderr_end,
)
from podium.agents.program import count_of, mapping_of, received_line, record_of
from podium.core.decisions import Usage
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    PodiumError,
)
from podium.core.events import ProgressKind
from podium.core.model import Json
from podium.core.processes import ProcessExit
from podium.core.turns import Turn
from podium.ports import ANY_USE, Transcript, nameless_use


class GeminiStream:
    """Everything a turn's records have said so far. Once attended, progress is told on the way."""

    def __init__(self) -> None:
        self._door: OwnTools | None = None
        self._notify: Callable[[ProgressKind, str], None] = lambda kind, text: None
        self._keep: Callable[[str], None] = lambda line: None
        self._unkept: list[str] = []
        self._pieces: list[str] = []
        self._uses: dict[str, tuple[str, str]] = {}
        """The CLI's name of a use → its tool, and the door's name of it."""
        self._tool_ended = False
        self._answering = False
        self.started = False
        """True once the program was started: from then on something may have been used."""
        self.exchanges = 0
        """Number of the model's answers, those with a tool included. Those of subagents are not reported."""
        self.model = ""
        self.session: str | None = None
        self.warnings: list[str] = []
        self.problem = ""
        """The CLI's own error message."""
        self.result: dict[str, Json] | None = None

    def attend(self, door: OwnTools, transcript: Transcript) -> None:
        self._door, self._notify, self._keep = door, door.report_progress, transcript.write

    def usage(self, seconds: float) -> Usage:
        """Return what was used until now. The CLI reports tokens only at the very end."""
        if not self.started:
            return Usage(seconds=seconds)
        return used_by(self.result).plus(Usage(turns=max(1, self.exchanges), seconds=seconds))

    @property
    def text(self) -> str:
        """The model's last message, after all its tools."""
        return "".join(self._pieces)

    async def take(self, line: str) -> None:
        """Take in a line of its output. What is no record is only kept: programs print other things too."""
        record = record_of(line)
        kind = record.get("type")
        is_text = kind == "message" and record.get("role") == "assistant"
        self._count(answering=is_text or kind == "tool_use", over=kind == "tool_result")
        if is_text:
            self._take_text(str(record.get("content") or ""))
            return
        self.finish()
        self._keep(received_line(line))
        if kind == "tool_use":
            self._notify("tool", _tool_summary(record))
            self._begin_use(record)
        elif kind == "tool_result":
            self._tool_ended = True
            await self._end_use(record)
        elif kind == "error":
            self._take_problem(record)
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
            text = "".join(self._unkept)
            self._unkept.clear()
            self._keep(
                json.dumps(
                    {"type": "message", "role": "assistant", "content": text}, ensure_ascii=False
                )
            )

    def _begin_use(self, record: Mapping[str, Json]) -> None:
        """Let the hook ask for it. It gets no name of the use, so tool and arguments have to do."""
        tool = str(record.get("tool_name"))
        name = nameless_use(tool, dict(mapping_of(record.get("parameters"))))
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

    def _take_text(self, text: str) -> None:
        if self._tool_ended:
            self._pieces.clear()
            self._tool_ended = False
        self._pieces.append(text)
        self._unkept.append(text)
        self._notify("text", text)

    def _take_problem(self, record: Mapping[str, Json]) -> None:
        message = plain_line(str(record.get("message") or ""))
        self._notify("note", message)
        if record.get("severity") == "error":
            self.problem = message
        else:
            self.warnings.append(message)


def used_by(result: Mapping[str, Json] | None) -> Usage:
    """Return what the turn used, subagents included. Without figures it is unknown."""
    stats = mapping_of(result.get("stats")) if result is not None else {}
    models = mapping_of(stats.get("models"))
    if not models:
        return Usage(complete=False)
    total = Usage()
    for model, figures in models.items():
        total = total.plus(_used_of(model, mapping_of(figures)))
    return total


def _used_of(model: str, figures: Mapping[str, Json]) -> Usage:
    read, written = count_of(figures.get("input_tokens")), count_of(figures.get("output_tokens"))
    # Thoughts are paid for as output, and only the total counts them.
    written = max(written, count_of(figures.get("total_tokens")) - read)
    cached = count_of(figures.get("cached"))
    usd = cost_of(model, input_tokens=read, output_tokens=written, cached_tokens=cached)
    nothing = read == 0 and written == 0
    return Usage(
        input_tokens=read,
        output_tokens=written,
        usd=usd or 0.0,
        complete=usd is not None or nothing,
    )


def _tool_summary(record: Mapping[str, Json]) -> str:
    arguments = mapping_of(record.get("parameters"))
    about = next((value for value in arguments.values() if isinstance(value, str)), "")
    return plain_line(f"{record.get('tool_name')} {about}", 200)


LOGIN_HINT = (
    "set GEMINI_API_KEY in the agent's `env`, or log in by running `gemini` once and choosing "
    "'Login with Google'"
)

NOT_LOGGED_IN = 41
BAD_INPUT = 42
BAD_SETTINGS = 52
OUT_OF_TURNS = 53

_STATUSES = (400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504, 529)
_BY_EXIT = {status % 256: status for status in _STATUSES}
"""A failed request ends the CLI with its HTTP status, of which a process can tell eight bits."""
_CODE = re.compile(r'"code"\s*:\s*(\d{3})\b')
_NO_MODEL = re.compile(r"\bnot found\b|is not supported for", re.IGNORECASE)
_NO_KEY = re.compile(r"API[ _]key (not valid|expired|not found)|API_KEY_INVALID", re.IGNORECASE)
_QUOTA = re.compile(r"\bquota\b|RESOURCE_EXHAUSTED|rate limit", re.IGNORECASE)
_REFUSED = re.compile(
    r"(response|prompt) was blocked|PROHIBITED[_ ]CONTENT|blockReason", re.IGNORECASE
)
_LOOP = "Loop detected"


def error_at_end(
    agent: str,
    turn: Turn,
    stream: GeminiStream,
    ended: ProcessExit,
    now: datetime,
    waiting: tuple[str, ...] = (),
) -> PodiumError | None:
    """The error this end stands for; None for a success, which takes a result and an exit 0.

    `waiting` are the approvals it was told to wait for, with nothing left to say.
    """
    if ended.timed_out:
        return out_of_time(agent, ended)
    if ended.exit_code == OUT_OF_TURNS:
        return _out_of_turns(agent, turn)
    if stream.result is None:
        return _without_result(agent, turn, ended)
    if _is_silent(stream) and waiting:
        return None
    if stream.result.get("status") != "success":
        return _of_result(agent, stream, ended, now)
    if ended.exit_code != 0:
        return lost(agent, ended)
    if not may_end_with(stream.text, waiting) and any(
        _LOOP in warning for warning in stream.warnings
    ):
        return AgentLost(f"agent {agent!r} was caught in a loop and stopped itself")
    return None


def gemini_error(agent: str, status: int | None, message: str, now: datetime) -> PodiumError:
    """The error for what the CLI hands on of its provider. It has a status for most, not for all."""
    if _NO_KEY.search(message):
        status = 401
    elif _QUOTA.search(message) and status in (None, 500):
        status = 429
    elif _NO_MODEL.search(message) and status in (None, 500):
        status = 404
    return error_of_status(agent, status, message, login_hint=LOGIN_HINT, now=now)


def refusal_in(agent: str, message: str) -> AgentRefused | None:
    """The model's own no, if the words tell of one."""
    if _REFUSED.search(message):
        return AgentRefused(f"the model of agent {agent!r} refused the request: {message}")
    return None


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


def _without_result(agent: str, turn: Turn, ended: ProcessExit) -> PodiumError:
    if ended.exit_code == NOT_LOGGED_IN:
        return AgentNotLoggedIn(
            f"agent {agent!r} is not logged in{stderr_end(ended)}; {LOGIN_HINT}"
        )
    if ended.exit_code == BAD_INPUT and turn.session is not None:
        return AgentRejected(
            f"agent {agent!r} has no conversation {turn.session!r}; start a new one"
        )
    if ended.exit_code in (BAD_INPUT, BAD_SETTINGS):
        return AgentRejected(f"agent {agent!r} could not start{_stderr_begin(ended)}")
    usage = b"Unknown argument" in ended.stderr or b"Options:" in ended.stderr
    if ended.exit_code == 1 and usage:
        return AgentRejected(
            f"agent {agent!r} does not support an option{stderr_end(ended)}; update Gemini CLI"
        )
    return lost(agent, ended)


def _of_result(agent: str, stream: GeminiStream, ended: ProcessExit, now: datetime) -> PodiumError:
    error = (stream.result or {}).get("error")
    if not isinstance(error, dict):
        return _of_stream(agent, stream.problem)
    message = provider_message(str(error.get("message") or ""))
    refusal = refusal_in(agent, plain_line(message))
    if refusal is not None:
        return refusal
    match = _CODE.search(str(error.get("message") or ""))
    status = int(match[1]) if match else _BY_EXIT.get(ended.exit_code or 0)
    return gemini_error(agent, status, message, now)


def _is_silent(stream: GeminiStream) -> bool:
    """Return whether it failed by the model's answer alone. Errors of the provider come with an `error`."""
    result = stream.result or {}
    return result.get("status") != "success" and not isinstance(result.get("error"), dict)


def _of_stream(agent: str, problem: str) -> PodiumError:
    """The model's answer itself was no answer: blocked, empty or cut off."""
    refusal = refusal_in(agent, problem)
    if refusal is not None:
        return refusal
    return AgentUnavailable(
        f"the model of agent {agent!r} gave no complete answer: {problem or 'no reason was given'}"
    )


def provider_message(message: str) -> str:
    """Return the provider's message, without the CLI's wrapping and without the braces."""
    inner = message.removeprefix("[API Error: ")
    body, _, advice = inner.rpartition("]")
    try:
        response: Json = json.loads(body or inner)
        return str(response["error"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return body or advice


def _stderr_begin(ended: ProcessExit) -> str:
    text = plain_line(ended.stderr[:4_000].decode(errors="replace"))
    return f": {text}" if text else ""
