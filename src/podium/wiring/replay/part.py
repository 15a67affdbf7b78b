"""An agent's part in a recorded turn: what it did, in order, and how the turn ended."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, replace
from datetime import datetime

from podium.domain import errors
from podium.domain.asking import Stop, Turn
from podium.domain.errors import NeedsHuman, Passing, RateLimited
from podium.domain.events import (
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
    ToolCompleted,
    ToolFailed,
    ToolRefused,
    ToolRequested,
    UsageRecorded,
)
from podium.domain.gating import Usage
from podium.tools.wording import CANCELLED
from podium.wiring.replay.tape import Tape

LET_GO = "its process let go of it"
"""Why a run is parked although nothing went wrong."""
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
class Part:
    """One turn, as its agent has to play it. With neither reply nor error it was stopped, or killed."""

    agent: str
    """Who it was in the end, where one could step in for another."""
    acts: tuple[tuple[int, AnyEvent], ...]
    """Events that come from the agent, each with its place on the tape."""
    end: int
    """Place of what follows from the end of the turn."""
    replied: AgentReplied | None = None
    stop: Stop | None = None
    error: Exception | None = None
    usage: Usage | None = None
    """What was counted although no reply came."""


def part_of(tape: Tape, turn: Turn, agent: str) -> Part:
    """The part of the turn that is asked now."""
    acts: list[tuple[int, AnyEvent]] = []
    end = len(tape.events)
    for at, body in tape.rest():
        if _ends(body, turn):
            end = at
            break
        if isinstance(body, _OWN) and _is_of(body, turn):
            acts.append((_begin_of(tape, at), body))
            agent = getattr(body, "agent", agent)
    return _ended(tape, Part(agent, tuple(acts), end))


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


def _ended(tape: Tape, part: Part) -> Part:
    """How the turn ended, as what came behind it tells."""
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


def _with_error(part: Part, error: Exception) -> Part:
    error.usage = part.usage  # type: ignore[attr-defined]  # where agents leave what was used
    return replace(part, error=error)


def _raised(kind: str, message: str) -> Exception:
    """An error of this class that says this, whatever its class wants to be made of."""
    found = getattr(errors, kind, None) or getattr(builtins, kind, None)
    known = found if isinstance(found, type) and issubclass(found, Exception) else RuntimeError
    error = known.__new__(known)
    error.args = (message,)
    return error


def _waited_until(tape: Tape, at: int) -> datetime | None:
    waits = (body for _, body in tape.rest(at) if isinstance(body, RunWaiting))
    return next((body.deadline for body in waits), None)
