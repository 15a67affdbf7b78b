"""Recorded surroundings of a run: tool outcomes without effects, full call arguments, time, ids and deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from podium.core.decisions import (
    Budget,
    Call,
    CallOutcome,
    Decision,
    GateContext,
    Permit,
    Quota,
    Receipt,
    Refusal,
    ToolSpec,
    Usage,
    call_fingerprint,
)
from podium.core.errors import BadInput, NotPossibleNow, OutcomeUnknown
from podium.core.events import (
    ApprovalConsumed,
    ApprovalRequested,
    ModelAnswered,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
    UsageRecorded,
)
from podium.core.json_schema import with_defaults
from podium.core.model import Json
from podium.core.processes import ProcessExit, ProcessSpec
from podium.jobs.playbook.replay.recording import Recording, Tape
from podium.ports import Checkpoint, Gate, Ids, Process, ToolDoor
from podium.tools import Registry

if TYPE_CHECKING:
    from podium.tools import ToolScope


CLOSE_SECONDS = 60.0
"""Longest time between the computation of a deadline and its event."""


class RecordedClock:
    """Returns the time of the next event, and durations that were set before."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._duration = 0.0

    def now(self) -> datetime:
        event = self._tape.next or self._tape.events[-1]
        return event.at

    def monotonic(self) -> float:
        lasted, self._duration = self._duration, 0.0
        return lasted

    def set_duration(self, seconds: float) -> None:
        """Set the duration that the next measurement returns: each starts at zero."""
        self._duration = seconds


class RecordedIds:
    """Gives approvals their recorded ids, the same one until the event has happened."""

    def __init__(self, tape: Tape, others: Ids) -> None:
        self._tape = tape
        self._others = others

    def new(self, prefix: str) -> str:
        asked = _next_approval(self._tape) if prefix == "apr" else None
        return asked.approval_id if asked else self._others.new(prefix)


class RecordedDeadlines:
    """Today's gate with the recorded deadlines, if its approval time is unchanged."""

    def __init__(self, gate: Gate, tape: Tape, clock: RecordedClock) -> None:
        self._gate = gate
        self._tape = tape
        self._clock = clock

    def decide(self, call: Call, context: GateContext) -> Decision:
        return self._gate.decide(call, context)

    def quotas_for(self, call: Call, context: GateContext) -> tuple[Quota, ...]:
        return self._gate.quotas_for(call, context)

    def passed_over(self, real_path: str, root: str) -> bool:
        return self._gate.passed_over(real_path, root)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        return self._gate.budgets

    @property
    def approval_seconds(self) -> float:
        today, asked = self._gate.approval_seconds, _next_approval(self._tape)
        if asked is None:
            return today
        recorded = (asked.deadline - self._clock.now()).total_seconds()
        return recorded if abs(recorded - today) < CLOSE_SECONDS else today


def _next_approval(tape: Tape) -> ApprovalRequested | None:
    bodies = (body for _, body in tape.rest())
    return next((body for body in bodies if isinstance(body, ApprovalRequested)), None)


class RecordedOutcomes:
    """Recorded outcomes of calls."""

    def __init__(self, tape: Tape, clock: RecordedClock) -> None:
        self._tape = tape
        self._clock = clock
        self._held: dict[str, asyncio.Event] = {}

    def tools(self, registry: Registry) -> Registry:
        """Build today's registry with handlers that return recorded outcomes."""
        names = [spec.name for spec in registry.specs()]
        return Registry([replace(registry.tool(name), handler=self._act) for name in names])

    def hold(self, key: str) -> None:
        """Let this call last until it is released."""
        self._held[key] = asyncio.Event()

    def release(self, key: str) -> None:
        if key in self._held:
            self._held.pop(key).set()

    async def _act(self, arguments: dict[str, Json], scope: ToolScope) -> CallOutcome:
        if (held := self._held.get(scope.key)) is not None:
            await held.wait()
        for at, body in self._tape.rest():
            match body:
                case ToolCompleted(call=key, result=result) if key == scope.key:
                    self._clock.set_duration(body.seconds)
                    return CallOutcome(ok=True, result=result, usage=self._usage(at, body.tool))
                case ToolFailed(call=key, result=result) if key == scope.key:
                    self._clock.set_duration(body.seconds)
                    usage = self._usage(at, body.tool)
                    return CallOutcome(ok=False, error=body.error, result=result, usage=usage)
                case ToolInDoubt(call=key) if key == scope.key:
                    raise OutcomeUnknown("it was not known whether it happened")
        never: asyncio.Future[CallOutcome] = asyncio.get_running_loop().create_future()
        return await never  # its process was killed

    def _usage(self, at: int, tool: str) -> Usage:
        """Return the call's own usage, recorded right after its end."""
        for _, body in self._tape.rest(at + 1):
            if isinstance(body, UsageRecorded) and body.source == f"tool:{tool}":
                return body.usage
            if not isinstance(body, ApprovalConsumed):
                break
        return Usage()


class RecordedFiles:
    """Wraps a tool door: calls get the files that their commands named when recorded."""

    def __init__(self, door: ToolDoor, tape: Tape) -> None:
        self._door = door
        self._tape = tape

    async def request(self, call: Call) -> Permit | Refusal:
        return await self._door.request(self._as_it_was(call))

    async def look_back(self, run_id: str, step_key: str) -> None:
        await self._door.look_back(run_id, step_key)

    async def settle(
        self, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        return await self._door.settle(permit, outcome, checkpoint)

    async def abandon(self, permit: Permit) -> Receipt:
        return await self._door.abandon(permit)

    def _as_it_was(self, call: Call) -> Call:
        """Restore the recorded files of a call: a trace has no file contents, and they may have changed."""
        for _, body in self._tape.rest():
            if isinstance(body, ToolRequested | ApprovalRequested) and body.call == call.key:
                return call.model_copy(update={"files": body.files})
        return call.model_copy(update={"files": ()})


class ReplayLauncher:
    """Starts nothing."""

    async def start(self, spawn: ProcessSpec) -> Process:
        raise NotPossibleNow("a replay starts no process")

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        raise NotPossibleNow("a replay starts no process")

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        raise NotPossibleNow("a replay starts no process")


def call_arguments_in(
    recording: Recording, specs: Sequence[ToolSpec]
) -> dict[str, dict[str, Json]]:
    """Key of a call → its arguments. Raises `BadInput` for a call that was let pass and is not whole.

    A refused call may be missing: it contained a secret.
    """
    answered = dict(_answered_arguments(recording, {spec.name: spec for spec in specs}))
    arguments: dict[str, dict[str, Json]] = {}
    for event in recording.events:
        body = event.body
        if not isinstance(body, ToolRequested | ToolRefused):
            continue
        fingerprint = _fingerprint_in(body.call)
        if call_fingerprint(body.tool, body.arguments) == fingerprint:
            arguments[body.call] = body.arguments
        elif fingerprint in answered:
            arguments[body.call] = answered[fingerprint]
        elif isinstance(body, ToolRequested):
            raise BadInput(
                f"{recording.name}: event {event.seq}: these are not all the arguments that {body.tool!r} was called "
                "with: they were too large to be kept, or the trace was edited; it cannot be replayed"
            )
    return arguments


def _answered_arguments(
    recording: Recording, specs: Mapping[str, ToolSpec]
) -> Iterator[tuple[str, dict[str, Json]]]:
    """List the arguments of models' calls by call fingerprint."""
    for event in recording.events:
        if not isinstance(event.body, ModelAnswered):
            continue
        for call in event.body.answer.calls:
            if isinstance(call.arguments, dict):
                yield call_fingerprint(call.tool, call.arguments), call.arguments
                if (spec := specs.get(call.tool)) is not None:
                    whole = with_defaults(spec.input_schema, call.arguments)
                    yield call_fingerprint(call.tool, whole), call.arguments


def _fingerprint_in(key: str) -> str:
    """The middle of `run:step:fingerprint.index`; a step's name may hold colons too."""
    return key.rpartition(":")[2].partition(".")[0]
