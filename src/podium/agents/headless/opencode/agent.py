"""`OpencodeCliAgent`: opencode, one process a turn, whose plugin asks Podium first; and the error that its end means."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.git_identity import identity_for
from podium.agents.headless.home import Home, home_off_loop
from podium.agents.headless.opencode.home import (
    CONVERSATIONS,
    environment_for,
    grantable_tools,
    lay_out,
    login_of,
    model_of,
    own_options,
    refuse_what_it_would_obey,
    translate,
)
from podium.agents.headless.opencode.stream import OpencodeStream, Patience, Spending
from podium.agents.kinds import ABOUT
from podium.agents.outcome import (
    accounted,
    after_seconds,
    error_of_status,
    lost,
    may_end_with,
    missing_tools,
    out_of_time,
    plain_line,
)
from podium.agents.program import (
    Needs,
    confinement_for,
    confinement_warnings,
    hear_out,
    received_line,
    untried,
    version_of,
)
from podium.core.decisions import Usage
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    ContextOverflow,
    PodiumError,
    TimedOut,
    ToolMissing,
)
from podium.core.events import ProgressKind
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.core.turns import Reply, Turn, unknown_names
from podium.platform.completion import in_thread
from podium.ports import HookDoor, Transcript

LOGIN_HINT = "log in with `opencode auth login`, or set the provider's key in the agent's `env`"
GOOD_REASONS = ("stop", "length")


def error_at_end(
    agent: str,
    stream: OpencodeStream,
    ended: ProcessExit,
    now: datetime,
    waiting: tuple[str, ...] = (),
) -> PodiumError | None:
    """None only when it both ended well and finished a last step: neither alone is an answer.

    `waiting` are the approvals it was told to wait for: then it has nothing left to say.
    """
    if ended.timed_out:
        return out_of_time(agent, ended)
    if stream.failure is not None:
        return error_of(agent, stream.failure, now)
    if ended.exit_code != 0:
        return _without_record(agent, ended)
    if may_end_with("", waiting):
        return None
    if stream.reason == "content-filter":
        return AgentRefused(f"agent {agent!r}: its provider blocked the answer")
    if stream.reason not in GOOD_REASONS:
        how = f"its last step ended with {stream.reason!r}" if stream.reason else "no step finished"
        return AgentLost(f"agent {agent!r} gave no answer: {plain_line(how)}")
    return None


def error_of(agent: str, failure: dict[str, Any], now: datetime) -> PodiumError:
    """The error for one that opencode names."""
    name = str(failure.get("name", ""))
    details = failure.get("data")
    data: dict[str, Any] = details if isinstance(details, dict) else {}
    message = str(data.get("message") or name or json.dumps(failure)[:1_000])
    reason = plain_line(message)
    match name:
        case "ContextOverflowError":
            return ContextOverflow(f"the conversation is too long for agent {agent!r}: {reason}")
        case "ProviderAuthError":
            return AgentNotLoggedIn(f"agent {agent!r} is not logged in: {reason}; {LOGIN_HINT}")
        case "APIError":
            return _api_error(agent, data, message, now)
        case "ContentFilterError":
            return AgentRefused(f"agent {agent!r}: its provider blocked the answer: {reason}")
        case "ProviderModelNotFoundError" | "ModelNotFoundError":
            return AgentRejected(f"agent {agent!r} does not know its model: {reason}")
    return AgentLost(f"agent {agent!r} failed: {reason}")


def _api_error(agent: str, data: dict[str, Any], message: str, now: datetime) -> PodiumError:
    status = data.get("statusCode")
    body = str(data.get("responseBody") or "")[:20_000]
    if not isinstance(status, int):
        return AgentUnavailable(f"agent {agent!r} cannot reach its model: {plain_line(message)}")
    return error_of_status(
        agent,
        status,
        message if message in body else f"{message} {body}",
        login_hint=LOGIN_HINT,
        now=now,
        retry_at=_retry_at(data.get("responseHeaders"), now),
    )


def _retry_at(headers: object, now: datetime) -> datetime | None:
    value = headers.get("retry-after") if isinstance(headers, dict) else None
    try:
        return after_seconds(float(str(value)), now)
    except ValueError:
        return None


def _without_record(agent: str, ended: ProcessExit) -> PodiumError:
    text = ended.stderr[-4_000:].decode(errors="replace")
    if "Session not found" in text:
        return AgentRejected(f"agent {agent!r} no longer has this conversation; start a new one")
    if "Model not found" in text or "ProviderModelNotFoundError" in text:
        return AgentRejected(f"agent {agent!r} does not know its model{_tail(text)}")
    return lost(agent, ended)


def _tail(text: str) -> str:
    end = plain_line(text[-1_000:])
    return f": {end}" if end else ""


TRIED_VERSION = ABOUT["opencode"].tried
STDERR_BYTES = 200_000


class OpencodeCliAgent:
    """Asks `opencode run`, in a private home that keeps the run's conversations.

    Every use of a tool is put before the turn's door by a plugin. Without the plugin, and whenever
    it gets no answer, opencode has no tools.
    """

    def __init__(self, options: AgentOptions, deps: AgentDeps) -> None:
        self._options = options
        self._own = own_options(options)
        self._deps = deps
        self._command = options.command or ("opencode",)

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        clock, options = self._deps.clock, self._options
        patience = Patience(self._own.retries, self._own.longest_wait_seconds)
        spending = Spending(self.name, options.model, turn.limits)
        stream = OpencodeStream(self.name, patience, _to_nobody, clock.now, spending=spending)
        began = clock.monotonic()
        with accounted(self.name, lambda: _broken_off(stream.usage(clock.monotonic() - began))):
            return await self._ask(turn, stream)

    async def _ask(self, turn: Turn, stream: OpencodeStream) -> Reply:
        deps, name = self._deps, self.name
        refuse_what_it_would_obey(name, Path(turn.workspace))
        version = await self._version(turn.workspace)
        logins = login_of(self._options, deps)
        async with home_off_loop(deps, turn, name, keep=(CONVERSATIONS,), logins=logins) as home:
            turn = home.turn
            with deps.transcripts.open(turn, name) as transcript:
                async with deps.doors.open(turn, agent=name, translate=translate) as door:
                    stream.notify = door.report_progress
                    stream.expect, stream.expect_no_more = door.expect, door.expect_no_more
                    layout = (home, turn, self._options, self._own, deps, door.hook_env, version)
                    await in_thread(lay_out, *layout)
                    ended = await self._run(
                        await self._spawn(turn, home, door), stream, door, transcript
                    )
                    waiting = door.waiting_approvals
        return home.signed(self._reply(turn, stream, ended, version, waiting, transcript.path))

    async def _version(self, cwd: str) -> str:
        try:
            return await version_of(self._deps.launcher, self._command, cwd)
        except ToolMissing as missing:
            cure = "`npm install -g opencode-ai` installs it"
            raise ToolMissing(f"agent {self.name!r} needs opencode: {missing}; {cure}") from None

    async def _spawn(self, turn: Turn, home: Home, door: HookDoor) -> ProcessSpec:
        identity = await identity_for(self._deps, self._options.env, turn.workspace)
        # A title of its own keeps it from asking the model for one.
        talk = ("-s", turn.session) if turn.session is not None else ("--title", "podium")
        model = model_of(self._options)
        needs = Needs(
            writable=home.folders,
            hosts=ABOUT["opencode"].hosts,
            base_url=self._options.base_url,
            command=self._options.command or ABOUT["opencode"].program,
        )
        return ProcessSpec(
            argv=(
                *self._command,
                *("run", "--format", "json", "--agent", "build"),
                *(("-m", model) if model else ()),
                *talk,
            ),
            cwd=turn.workspace,
            env=environment_for(self._options, home, identity),
            stdin=turn.prompt.encode(errors="replace"),
            interactive=True,
            limits=ProcessLimits(seconds=turn.limits.seconds, output_bytes=STDERR_BYTES),
            confinement=await confinement_for(self._deps, turn, door, needs),
        )

    async def _run(
        self, spawn: ProcessSpec, stream: OpencodeStream, door: HookDoor, transcript: Transcript
    ) -> ProcessExit:
        """Listen until it is over, or has said nothing for too long."""
        process = await self._deps.launcher.start(spawn)
        stream.started = True
        process.close_input()
        loop, patience = asyncio.get_running_loop(), self._own.silence_seconds
        silence = asyncio.timeout(patience)

        async def take(line: str) -> None:
            if not line.startswith('{"podium":{"kind":"delta"'):
                transcript.write(received_line(line))
            for done in stream.hear(line):
                await door.settle(done.ref, ok=done.ok, result=done.result, error=done.error)
            silence.reschedule(None if stream.running else loop.time() + patience)

        try:
            async with silence:
                return await hear_out(process, take)
        except TimeoutError:
            if not silence.expired():
                raise
            raise AgentUnavailable(
                f"agent {self.name!r} has received nothing from its model for {patience:g} s"
            ) from None

    def _reply(
        self,
        turn: Turn,
        stream: OpencodeStream,
        ended: ProcessExit,
        version: str,
        waiting: tuple[str, ...],
        transcript: str,
    ) -> Reply:
        usage = stream.usage(ended.seconds)
        error = error_at_end(self.name, stream, ended, self._deps.clock.now(), waiting)
        if error is not None:
            broke_off = isinstance(error, AgentLost | TimedOut)
            error.usage = _broken_off(usage) if broke_off else usage
            raise error
        cut = ("the answer was cut off at the model's output limit",)
        return Reply(
            text=stream.text,
            usage=usage,
            agent=self.name,
            model=stream.spending.model,
            version=version,
            session=stream.session,
            seconds=ended.seconds,
            transcript=transcript,
            warnings=(
                *untried(self.name, version, TRIED_VERSION),
                *missing_tools(
                    self.name, unknown_names(turn.own_tools, grantable_tools(self._options))
                ),
                *stream.spending.warnings,
                *(f"opencode was kept from loading {path!r}" for path in stream.blocked_code),
                *(cut if stream.reason == "length" else ()),
                *confinement_warnings(self.name, ended),
            ),
            waiting_approvals=waiting,
        )


def _to_nobody(kind: ProgressKind, text: str) -> None:
    """There is no door yet through which anybody could be told."""


def _broken_off(usage: Usage) -> Usage:
    """Of an answer that broke off nobody knows it all."""
    return usage.model_copy(update={"complete": False})
