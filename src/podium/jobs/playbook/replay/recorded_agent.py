"""Agent of a replay: makes the recorded calls of each turn and gives the recorded reply."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from podium.core import errors
from podium.core.decisions import HookAnswer, Usage
from podium.core.errors import AgentLost, NeedsHuman, Passing, RateLimited
from podium.core.events import (
    AgentProgressed,
    AgentReplied,
    AgentStopped,
    AgentSwitched,
    AnyEvent,
    ApprovalExpired,
    ApprovalRequested,
    ModelAnswered,
    NoteTaken,
    RunCancelled,
    RunNeededHuman,
    RunParked,
    RunRetried,
    RunStarted,
    RunWaiting,
    StepBroke,
    StepCompleted,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolRefused,
    ToolRequested,
    UsageRecorded,
)
from podium.core.model import Json
from podium.core.turns import Reply, Turn, TurnStop
from podium.jobs.playbook.replay.recorded_ports import RecordedOutcomes
from podium.jobs.playbook.replay.recording import Tape
from podium.ports import HookDoor, HookServers, Journal
from podium.tools.output_text import CANCELLED

LET_GO = "its process let go of it"
"""Reason of a run that was parked without an error."""
_OWN = (
    AgentProgressed,
    AgentSwitched,
    ModelAnswered,
    ToolRequested,
    ToolRefused,
    ToolCompleted,
    ToolFailed,
)


@dataclass(frozen=True)
class RecordedTurn:
    """One turn to replay. With neither reply nor error it was stopped, or killed."""

    agent: str
    """The agent that answered in the end, after a failover."""
    acts: tuple[tuple[int, AnyEvent], ...]
    """Events that come from the agent, each with its place on the tape."""
    end: int
    """Place of what follows from the end of the turn."""
    replied: AgentReplied | None = None
    stop: TurnStop | None = None
    error: Exception | None = None
    usage: Usage | None = None
    """Usage counted without a reply."""


def part_of(tape: Tape, turn: Turn, agent: str) -> RecordedTurn:
    """Read the recorded part of the current turn."""
    acts: list[tuple[int, AnyEvent]] = []
    end = len(tape.events)
    for at, body in tape.rest():
        if _ends(body, turn):
            end = at
            break
        if isinstance(body, _OWN) and _is_of(body, turn):
            acts.append((_begin_of(tape, at), body))
            agent = getattr(body, "agent", agent)
    return _ended(tape, RecordedTurn(agent, tuple(acts), end))


def _begin_of(tape: Tape, at: int) -> int:
    """Place of the first event of its transaction: a question to people comes before the refusal it leads to."""
    while at and isinstance(tape.events[at - 1].body, ApprovalRequested | ApprovalExpired):
        if tape.events[at - 1].at != tape.events[at].at:
            break
        at -= 1
    return at


def is_call_of(key: str, turn: Turn) -> bool:
    return key.startswith(f"{turn.run_id}:{turn.step_key}:")


def _is_of(body: AnyEvent, turn: Turn) -> bool:
    key = getattr(body, "call", None)
    return not isinstance(key, str) or is_call_of(key, turn)


def _ends(body: AnyEvent, turn: Turn) -> bool:
    match body:
        case UsageRecorded(source=source):
            return source.startswith("agent:")
        case ToolFailed(error=error):
            # Nobody tells the end of a call that was stopped with its turn: it follows from the turn's.
            return error == CANCELLED
        case StepCompleted(step=step) | StepBroke(step=step):
            return step == turn.step_key
        case AgentReplied() | AgentStopped() | NoteTaken():
            return True
    return isinstance(body, RunStarted | RunRetried | RunParked | RunNeededHuman | RunCancelled)


def _ended(tape: Tape, part: RecordedTurn) -> RecordedTurn:
    """Derive the end of the turn from the events after it."""
    for at, body in tape.rest(part.end):
        match body:
            case AgentStopped(stop=stop):
                part = replace(part, stop=stop)
            case UsageRecorded(usage=usage):
                part = replace(part, usage=usage)
            case AgentReplied():
                return replace(part, replied=body)
            case StepBroke(failure=failure):
                error = _raised(failure.kind, failure.message)
                if isinstance(error, Passing):
                    error.retry_at = _waited_until(tape, at)
                return _with_error(part, error)
            case StepCompleted():
                until = _waited_until(tape, at)
                return _with_error(part, RateLimited("it was asked too much", until))
            case RunNeededHuman(reason=reason):
                return _with_error(part, NeedsHuman(reason))
            case RunParked(reason=reason) if reason != LET_GO:
                return _with_error(part, Passing(reason))
            case RunStarted() | RunRetried() | RunCancelled() | RunParked():
                return part
    return part


def _with_error(part: RecordedTurn, error: Exception) -> RecordedTurn:
    error.usage = part.usage  # type: ignore[attr-defined]  # where agents leave what was used
    return replace(part, error=error)


def _raised(kind: str, message: str) -> Exception:
    """Make an error of this class with this message, bypassing its constructor."""
    candidate = getattr(errors, kind, None) or getattr(builtins, kind, None)
    error_class = (
        candidate
        if isinstance(candidate, type) and issubclass(candidate, Exception)
        else RuntimeError
    )
    error = error_class.__new__(error_class)
    error.args = (message,)
    return error


def _waited_until(tape: Tape, at: int) -> datetime | None:
    waits = (body for _, body in tape.rest(at) if isinstance(body, RunWaiting))
    return next((body.deadline for body in waits), None)


_ENDS = (ToolCompleted, ToolFailed, ToolAbandoned, ToolRefused)

CONVERSATION = "recorded"
"""Stands for the conversation of the turn that was recorded: agents that follow playbooks keep theirs."""

Calls = dict[str, "asyncio.Task[HookAnswer]"]
"""Those that were begun in this turn, by their keys."""


class RecordedAgent:
    """Makes the recorded calls through the turn's own hook server, so that every call is decided again."""

    def __init__(
        self,
        name: str,
        tape: Tape,
        outcomes: RecordedOutcomes,
        doors: HookServers,
        journal: Journal,
        call_arguments: Mapping[str, dict[str, Json]],
    ) -> None:
        """`wishes` are the full arguments of calls, by their keys."""
        self._name = name
        self._tape = tape
        self._outcomes = outcomes
        self._doors = doors
        self._journal = journal
        self._call_arguments = call_arguments

    @property
    def name(self) -> str:
        return self._name

    async def ask(self, turn: Turn) -> Reply:
        part = part_of(self._tape, turn, self._name)
        calls: Calls = {}
        try:
            async with self._doors.open(turn, agent=part.agent) as door:
                await self._play(door, turn, part, calls)
                waiting = door.waiting_approvals
        except asyncio.CancelledError as cancelled:
            cancelled.usage = part.usage  # type: ignore[attr-defined]  # where agents leave it
            raise
        finally:
            await _end(calls)
        if part.replied is None:
            raise part.error or AgentLost("the recorded turn brought no answer")
        return _reply(part, part.replied, waiting)

    async def _play(self, door: HookDoor, turn: Turn, part: RecordedTurn, calls: Calls) -> None:
        await self._make_again(door, turn, part)
        for at, body in part.acts:
            await self._tape.reached(at)
            await self._act(door, turn, body, calls)
        await self._tape.reached(part.end)
        if part.replied is None and part.error is None:
            # From here on it was stopped from outside.
            await asyncio.get_running_loop().create_future()

    async def _act(self, door: HookDoor, turn: Turn, body: AnyEvent, calls: Calls) -> None:
        match body:
            case AgentProgressed() | AgentSwitched():
                self._journal.note(turn.run_id, body)
            case ModelAnswered(answer=answer):
                await door.record_answer(answer)
            case ToolRequested():
                self._begin(door, body, calls)
            case ToolRefused():
                await self._ask_again(door, turn, body)
            case ToolCompleted(call=key) | ToolFailed(call=key):
                if key not in calls:  # asked for before a crash: its permit is given back
                    self._begin(door, self._request(key), calls)
                self._outcomes.release(key)
                await calls[key]

    def _begin(self, door: HookDoor, body: ToolRequested, calls: Calls) -> None:
        """Start a call; others may start before it ends."""
        self._outcomes.hold(body.call)
        performing = door.perform(body.tool, self._call_arguments[body.call])
        calls[body.call] = asyncio.create_task(performing)

    async def _ask_again(self, door: HookDoor, turn: Turn, body: ToolRefused) -> None:
        if body.call in self._call_arguments:
            await door.perform(body.tool, self._call_arguments[body.call])
        else:
            # What was refused held a secret, which the trace does not: it cannot be judged again.
            await self._journal.append(turn.run_id, body)

    async def _make_again(self, door: HookDoor, turn: Turn, part: RecordedTurn) -> None:
        """Repeat calls from before a crash: limits count them, and nothing is done twice."""
        later = {body.call for _, body in part.acts if isinstance(body, ToolRequested)}
        for body in self._made_before(turn):
            if body.call not in later and body.call in self._call_arguments:
                await door.perform(body.tool, self._call_arguments[body.call])

    def _made_before(self, turn: Turn) -> Iterator[ToolRequested | ToolRefused]:
        made: dict[str, ToolRequested | ToolRefused] = {}
        ended: set[str] = set()
        for event in self._tape.events[: self._tape.position]:
            body = event.body
            if isinstance(body, RunRetried) and turn.step_key in body.discarded_steps:
                made.clear()
            if isinstance(body, ToolRequested | ToolRefused) and is_call_of(body.call, turn):
                made.setdefault(body.call, body)
            if isinstance(body, _ENDS):
                ended.add(body.call)
        return (body for key, body in made.items() if key in ended)

    def _request(self, key: str) -> ToolRequested:
        bodies = (event.body for event in self._tape.events)
        return next(body for body in bodies if isinstance(body, ToolRequested) and body.call == key)


async def _end(calls: Calls) -> None:
    for call in calls.values():
        call.cancel()
    await asyncio.gather(*calls.values(), return_exceptions=True)


def _reply(part: RecordedTurn, replied: AgentReplied, waiting: tuple[str, ...]) -> Reply:
    return Reply(
        text=replied.text,
        found=replied.found,
        usage=replied.usage,
        agent=replied.agent,
        model=replied.model,
        version=replied.agent_version,
        session=CONVERSATION,
        seconds=replied.seconds,
        transcript=replied.transcript,
        warnings=replied.warnings,
        stopped=part.stop,
        waiting_approvals=waiting,
        # Only agents whose conversation Podium holds have their model's answers recorded.
        keeps_calls=bool(waiting) and any(isinstance(body, ModelAnswered) for _, body in part.acts),
    )
