"""`ClaudeCliAgent`: Claude Code asked over its own protocol, and the error of the tree that its end means."""

from __future__ import annotations

import json
import re
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.claude.command import (
    CONFIG,
    PATIENCE,
    TOOLBOX,
    ClaudeSettings,
    argv_for,
    environment_for,
    has_login_in,
    login_in,
    mcp_only_switches,
    schema_for,
    translate,
    unknown_own_tools,
)
from podium.agents.headless.claude.session import (
    INTRODUCTION,
    ClaudeDoor,
    ClaudeSession,
    ClaudeStream,
)
from podium.agents.headless.home import CliLogin, Home, private_home
from podium.agents.headless.own_tools import (
    NoOwnTools,
    OwnTools,
    in_empty_folder,
    may_end_silently,
    toolbox_server,
    with_door_outcome,
    without_own_tools,
)
from podium.agents.kinds import ABOUT
from podium.agents.outcome import (
    accounted,
    error_of_status,
    lost,
    may_end_with,
    missing_tools,
    out_of_time,
    plain_line,
    reset_time,
    stderr_end,
)
from podium.agents.program import Needs, confinement_for, confinement_warnings, untried
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    ContextOverflow,
    PodiumError,
    RateLimited,
    ReplyInvalid,
    ToolMissing,
)
from podium.core.model import Json
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.core.turns import Reply, Turn
from podium.ports import HookDoor, Process, Transcript

LOGIN_HINT = (
    "set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN (`claude setup-token` makes one) in the "
    "agent's `env`, or log in by running `claude` and typing /login"
)

_NOT_LOGGED_IN = re.compile(
    r"not logged in|/login|invalid api key|token has expired", re.IGNORECASE
)
_BAD_START = re.compile(
    r"error: (unknown option|option |missing required)|session id", re.IGNORECASE
)
_NO_CREDIT = re.compile(r"credit balance|usage limit|hit your .{0,40}limit", re.IGNORECASE)
_CUT_SHORT = re.compile(r"output token (maximum|limit)", re.IGNORECASE)
_RESETS = re.compile(
    r"resets\s+(?:at\s+)?(1[0-2]|[1-9])(?::([0-5]\d))?\s*(am|pm)\s*\(([\w/+-]{1,60})\)",
    re.IGNORECASE,
)


def error_at_end(
    agent: str,
    stream: ClaudeStream,
    ended: ProcessExit,
    now: datetime,
    waiting: tuple[str, ...] = (),
) -> PodiumError | None:
    """The error this end stands for; None for a success: a result that says something, and exit 0.

    `waiting` are the approvals that the turn was told to end and wait for.
    """
    if ended.timed_out:
        return out_of_time(agent, ended)
    if stream.failure is not None:
        status, message, retry_at = stream.failure
        return _of_status(agent, status, message, now, stream.limit_ends or retry_at)
    if stream.is_overspent:
        return BudgetSpent(
            f"agent {agent!r} used more than the {stream.most_tokens} tokens allowed in one turn",
            scope="step",
            measure="tokens",
            used=stream.counted.input_tokens + stream.counted.output_tokens,
            limit=stream.most_tokens or 0,
        )
    if stream.result is None:
        return _without_result(agent, ended)
    # Failures of the provider come as `subtype: success`; only `is_error` tells.
    if stream.result.get("is_error") is not False or stream.result.get("subtype") != "success":
        return _of_result(agent, stream.result, stream.limit_ends, now)
    if stream.refused or stream.result.get("stop_reason") == "refusal":
        return _refusal(agent, stream.result)
    if stream.result.get("num_turns") == 0:
        return AgentRejected(
            f"agent {agent!r} read the prompt as one of its own commands and did not call its model"
            f"{_detail(text_of(stream.result))}; begin the prompt differently"
        )
    if ended.exit_code != 0:
        return lost(agent, ended)
    has_payload = stream.result.get("structured_output") is not None
    if not has_payload and not may_end_with(text_of(stream.result), waiting):
        return AgentLost(f"agent {agent!r} ended its turn without a reply")
    return None


def text_of(result: dict[str, Json]) -> str:
    """Return the text of a result: the answer, or what went wrong."""
    text = result.get("result")
    if isinstance(text, str):
        return text
    errors = result.get("errors")
    return "; ".join(str(error) for error in errors) if isinstance(errors, list) else ""


def _without_result(agent: str, ended: ProcessExit) -> PodiumError:
    if ended.exit_code and _BAD_START.search(stderr_end(ended)):
        return AgentRejected(
            f"agent {agent!r} could not be started with its options{stderr_end(ended)}; "
            "an older Claude Code may not support all of them: update it"
        )
    return lost(agent, ended)


def _of_result(
    agent: str, result: dict[str, Json], limit_ends: datetime | None, now: datetime
) -> PodiumError:
    message = text_of(result)
    reason = result.get("terminal_reason")
    status = result.get("api_error_status")
    if reason in ("max_turns", "budget_exhausted"):
        return _spent(agent, str(reason), message)
    if reason == "structured_output_retry_exhausted":
        return ReplyInvalid(
            f"agent {agent!r} gave no answer that matches its contract{_detail(message)}"
        )
    if reason == "prompt_too_long" or status == 413:
        return ContextOverflow(
            f"the conversation is too long for agent {agent!r}{_detail(message)}"
        )
    if result.get("stop_reason") == "refusal":
        return _refusal(agent, result)
    if isinstance(status, int):
        return _of_status(agent, status, message, now, limit_ends)
    return _without_status(agent, result, message, limit_ends or _reset_in(message, now))


def _of_status(
    agent: str, status: int | None, message: str, now: datetime, retry_at: datetime | None
) -> PodiumError:
    # An account without credit is answered like a wrong request.
    counted_as = 429 if status == 400 and _NO_CREDIT.search(message[:1_000]) else status
    return error_of_status(
        agent,
        counted_as,
        message,
        login_hint=LOGIN_HINT,
        now=now,
        retry_at=retry_at or _reset_in(message, now),
    )


def _without_status(
    agent: str, result: dict[str, Json], message: str, retry_at: datetime | None
) -> PodiumError:
    """The provider gave no status: it was not reached, or the CLI itself gave up."""
    if _NOT_LOGGED_IN.search(message[:1_000]):
        return AgentNotLoggedIn(f"agent {agent!r} is not logged in{_detail(message)}; {LOGIN_HINT}")
    if _NO_CREDIT.search(message[:1_000]):
        return RateLimited(f"agent {agent!r} has used up its limit{_detail(message)}", retry_at)
    if _CUT_SHORT.search(message[:1_000]):
        return AgentRejected(
            f"the answer of agent {agent!r} exceeds its model's output limit{_detail(message)}"
        )
    if result.get("terminal_reason") == "api_error":
        return AgentUnavailable(f"agent {agent!r} cannot reach its model{_detail(message)}")
    if "No conversation found" in message:
        return AgentRejected(
            f"agent {agent!r} cannot find the conversation to resume{_detail(message)}; "
            "start a new conversation"
        )
    return AgentLost(f"agent {agent!r} gave up without an answer{_detail(message)}")


def _spent(agent: str, reason: str, message: str) -> BudgetSpent:
    measure = "turns" if reason == "max_turns" else "usd"
    return BudgetSpent(
        f"agent {agent!r} stopped at the turn's limit{_detail(message)}",
        scope="step",
        measure=measure,
    )


def _refusal(agent: str, result: dict[str, Json]) -> AgentRefused:
    return AgentRefused(
        f"the model of agent {agent!r} refused the request{_detail(text_of(result))}"
    )


def _detail(message: str) -> str:
    plain = plain_line(message)
    return f": {plain}" if plain else ""


def _reset_in(text: str, now: datetime) -> datetime | None:
    """Read the end of a limit, as "resets 3am (Europe/Berlin)" or in the words that others use too."""
    match = _RESETS.search(text[:1_000])
    if match is None:
        return reset_time(text, now)
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "pm" else 0)
    try:
        there = now.astimezone(ZoneInfo(match[4]))
        then = there.replace(hour=hour, minute=int(match[2] or 0), second=0, microsecond=0)
    except (LookupError, ValueError, OSError):  # no such zone, or no such minute
        return None
    later = then if then > there else then + timedelta(days=1)
    return later.astimezone(now.tzinfo)


TRIED_VERSION = ABOUT["claude"].tried
INSTALL = "npm install -g @anthropic-ai/claude-code"
STDERR_BYTES = 200_000
CONVERSATIONS = f"{CONFIG}/projects"


class ClaudeCliAgent:
    """One process a turn, in a private home that keeps the run's conversations.

    Every use of a tool is put before the turn's door first, in this process and over the CLI's own
    pipe: there is no hook program that could be late, crash or be taken away.
    """

    def __init__(self, options: AgentOptions, deps: AgentDeps) -> None:
        """Raises `BadInput` for options that it does not have."""
        self._hands = ClaudeSettings.of(options).hands
        self._options = options
        self._deps = deps

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        deps = self._deps
        began = deps.clock.monotonic()
        stream = ClaudeStream(deps.clock, turn.limits.tokens)
        with accounted(self.name, lambda: stream.used(deps.clock.monotonic() - began)):
            return await self._ask(turn, stream)

    async def _ask(self, turn: Turn, stream: ClaudeStream) -> Reply:
        deps, name = self._deps, self.name
        with (
            private_home(deps, turn, name, keep=(CONVERSATIONS,), logins=self._logins()) as home,
            deps.transcripts.open(turn, name) as transcript,
        ):
            turn = home.turn
            async with self._door(turn) as door:
                stream.notify = door.report_progress
                ended = await self._converse(turn, home, door, stream, transcript)
        reply = self._reply(turn, stream, ended, door, transcript.path)
        return home.signed(with_door_outcome(reply, turn, door))

    def _door(self, turn: Turn) -> AbstractAsyncContextManager[HookDoor]:
        if self._hands:
            return self._deps.doors.open(turn, agent=self.name, translate=translate)
        return self._deps.doors.open(without_own_tools(turn), agent=self.name)

    async def _converse(
        self, turn: Turn, home: Home, door: HookDoor, stream: ClaudeStream, transcript: Transcript
    ) -> ProcessExit:
        process = await self._start(await self._spawn(turn, home, door))
        stream.asked = True
        hands: OwnTools = door if self._hands else NoOwnTools(door, TOOLBOX)
        try:
            gatekeeper = ClaudeDoor(
                hands, turn.workspace, takes_answers=schema_for(turn) is not None
            )
            await ClaudeSession(process, gatekeeper, hands, stream, transcript).hold()
        finally:
            # Also when cancelled: nobody gets on before the whole tree is dead.
            ended = await process.end()
        return ended

    async def _start(self, spawn: ProcessSpec) -> Process:
        try:
            return await self._deps.launcher.start(spawn)
        except ToolMissing as missing:
            raise ToolMissing(
                f"agent {self.name!r} needs Claude Code: {missing}; `{INSTALL}` installs it"
            ) from missing

    async def _spawn(self, turn: Turn, home: Home, door: HookDoor) -> ProcessSpec:
        needs = Needs(
            writable=home.folders,
            hosts=ABOUT["claude"].hosts,
            base_url=self._options.base_url,
            command=self._options.command or ABOUT["claude"].program,
        )
        cwd, tools, patience = turn.workspace, None, {}
        if not self._hands:
            server = toolbox_server(self.name, self._deps, door)
            cwd, tools = in_empty_folder(turn, home).workspace, mcp_only_switches(home, server)
            patience = PATIENCE
        return ProcessSpec(
            argv=argv_for(self._options, turn, tools),
            cwd=cwd,
            env={**environment_for(self._options, home), **patience},
            stdin=_opening(turn.prompt_for(native=schema_for(turn) is not None)),
            interactive=True,
            limits=ProcessLimits(seconds=turn.limits.seconds, output_bytes=STDERR_BYTES),
            confinement=await confinement_for(self._deps, turn, door, needs),
        )

    def _logins(self) -> tuple[CliLogin, ...]:
        if has_login_in(self._options.env):
            return ()
        configured = self._deps.environ.get("CLAUDE_CONFIG_DIR")
        folder = Path(configured) if configured else self._deps.user_home / CONFIG
        return (login_in(folder),)

    def _reply(
        self,
        turn: Turn,
        stream: ClaudeStream,
        ended: ProcessExit,
        door: HookDoor,
        transcript: str,
    ) -> Reply:
        result = stream.result or {}
        silently, now = may_end_silently(door), self._deps.clock.now()
        error = error_at_end(self.name, stream, ended, now, silently)
        if error is not None:
            error.usage = stream.used(ended.seconds)
            raise error
        payload = result.get("structured_output") if turn.contract is not None else None
        return Reply(
            text=text_of(result),
            payload=payload,
            found="none" if payload is None else "native",
            usage=stream.used(ended.seconds),
            agent=self.name,
            model=stream.model or self._options.model,
            version=stream.version,
            session=stream.session,
            seconds=ended.seconds,
            transcript=transcript,
            warnings=(
                *untried(self.name, stream.version, TRIED_VERSION),
                *self._missing_tools(turn),
                *confinement_warnings(self.name, ended),
            ),
            waiting_approvals=door.waiting_approvals,
        )

    def _missing_tools(self, turn: Turn) -> tuple[str, ...]:
        if self._hands:
            return unknown_own_tools(self.name, turn)
        return missing_tools(self.name, turn.own_tools or ())


def _opening(prompt: str) -> bytes:
    """Return the first input: the request to ask before every tool, and the prompt."""
    # A prompt that begins with a slash would be taken for one of its commands.
    text = f"\n{prompt}" if prompt.startswith("/") else prompt
    introduction = {"type": "control_request", "request_id": "hello", "request": INTRODUCTION}
    message = {"type": "user", "message": {"role": "user", "content": text}}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (introduction, message))
