"""Recorded surroundings of a run: a store that compares events, tool outcomes without effects, call arguments, time, ids and deadlines."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

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
    EventBody,
    ModelAnswered,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
    UsageRecorded,
    read_body,
)
from podium.core.json_schema import with_defaults
from podium.core.model import Json, json_of
from podium.core.processes import ProcessExit, ProcessSpec
from podium.core.work import WorkerHeartbeat
from podium.jobs.playbook.replay.recording import (
    EventDifference,
    Recording,
    Tape,
    as_recorded,
    difference,
)
from podium.ports import Checkpoint, Gate, Ids, Process, StoreView, ToolDoor, Transaction
from podium.testing import MemoryStore
from podium.tools import Registry

if TYPE_CHECKING:
    from podium.tools import ToolScope


T = TypeVar("T")

FROM_OUTSIDE = frozenset(
    {
        "run_queued",
        "run_started",
        "run_unpinned",
        "run_cancel_requested",
        "run_retried",
        "flow_code_changed",
        "signal_sent",
        "tool_resolved",
        "approval_granted",
        "approval_rejected",
    }
)
"""Events of people and other processes. Events of the run wait for them."""


class _NotYet(Exception):
    """An event from outside comes first. The transaction is retried after it."""


class _Overtaken(Exception):
    """The run wanted to record that it waits, and no longer does."""


class _RecordDiffers(Exception):
    def __init__(self, difference: EventDifference) -> None:
        super().__init__()
        self.difference = difference


class ReplayState:
    """Shared state of all processes of a replayed run: the record and the tape."""

    def __init__(
        self,
        tape: Tape,
        memory: MemoryStore,
        clean: Callable[[str], str],
        rebuilt: tuple[str, ...] = (),
    ) -> None:
        """`clean` removes secrets from JSON, as it was done when the trace was written; `rebuilt` are fields
        that may differ."""
        self.rebuilt = rebuilt
        self.tape = tape
        self.memory = memory
        self.clean = clean
        self.lock = asyncio.Lock()

    async def commit(
        self, work: Callable[[Transaction], T], *, again: bool
    ) -> tuple[bool, T | None]:
        """Do the work if its events are the next ones on the tape. False: not now, or never."""

        def held_against_the_tape(tx: Transaction) -> tuple[T, list[dict[str, Json]]]:
            watched = RecordedTx(tx, self, again)
            return work(cast("Transaction", watched)), watched.lines

        try:
            result, lines = await self.memory.write(held_against_the_tape)
        except _NotYet:
            return False, None
        except _Overtaken:
            return True, None
        except _RecordDiffers as differs:
            self.tape.differs(differs.difference)
            return False, None
        self.tape.advance(lines)
        return True, result


class RecordedTx:
    """A transaction that may only append the next events of the tape. Delegates everything else."""

    def __init__(self, inner: Transaction, state: ReplayState, again: bool) -> None:
        self._inner = inner
        self._state = state
        self._again = again
        self.lines: list[dict[str, Json]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def append(self, run_id: str, body: EventBody) -> int:
        events, position = self._state.tape.events, self._state.tape.position + len(self.lines)
        if position >= len(events):
            raise _NotYet
        expected = events[position]
        if body.type != expected.body.type and expected.body.type in FROM_OUTSIDE:
            raise _NotYet
        if body.type == "run_waiting" != expected.body.type and self._again:
            raise _Overtaken
        data = json.loads(self._state.clean(json_of(body)))
        line = {"run": run_id, "seq": expected.seq, "at": expected.data["at"], **data}
        taken = as_recorded(line, expected.data, body.type)
        mismatch = difference(taken, expected.data)
        if mismatch and not all(field.field in self._state.rebuilt for field in mismatch.fields):
            raise _RecordDiffers(mismatch)
        self.lines.append(taken)
        return self._inner.append(run_id, read_body(_body_of(taken)))


def _body_of(line: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in line.items() if name not in ("run", "seq", "at")}


class RecordedStore:
    """The store of one process of the run. After that process has ended it refuses everything."""

    def __init__(self, state: ReplayState) -> None:
        self._state = state
        self._notes: deque[tuple[str, EventBody]] = deque()
        self._flushing: set[asyncio.Task[None]] = set()
        self._ended = False

    async def write(self, work: Callable[[Transaction], T]) -> T:
        again = False
        while True:
            async with self._state.lock:
                self._refuse_ended()
                if not self._state.tape.is_over and await self._write_notes(again):
                    done, result = await self._state.commit(work, again=again)
                    if done:
                        return cast("T", result)
            again = True
            if not self._ended:
                await self._state.tape.wait_for_change()

    async def read(self, work: Callable[[StoreView], T]) -> T:
        return await self._state.memory.read(work)

    def require_space(self) -> None:
        """Memory is not what runs out here."""

    def release_reserve(self) -> bool:
        return False

    def note(self, run_id: str, body: EventBody) -> None:
        self._notes.append((run_id, body))
        task = asyncio.get_running_loop().create_task(self._flush())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)

    def changes(self) -> AsyncIterator[None]:
        return self._state.memory.changes()

    async def close(self) -> None:
        """Close as if the process was killed: unwritten notes are lost."""
        self._ended = True
        self._notes.clear()
        self._state.tape.wake_waiters()
        await asyncio.gather(*self._flushing, return_exceptions=True)

    async def _write_notes(self, again: bool) -> bool:
        while self._notes:
            run_id, body = self._notes[0]
            done, _ = await self._state.commit(lambda tx: tx.append(run_id, body), again=again)  # noqa: B023 - awaited here
            if not done or self._ended:
                return False
            self._notes.popleft()
        return True

    async def _flush(self) -> None:
        with suppress(NotPossibleNow):
            await self.write(lambda tx: None)

    def _refuse_ended(self) -> None:
        if self._ended:
            raise NotPossibleNow("this process of the replayed run has ended")


class ReplayPresence:
    """Presence of the processes of one replay, in memory."""

    def __init__(self) -> None:
        self.alive: set[str] = set()


class ReplayWorkerPresence:
    """Presence of one process; see `Presence`."""

    def __init__(self, presence: ReplayPresence) -> None:
        self._presence = presence
        self._held = ""

    async def enter(self, worker_id: str) -> None:
        self._held = worker_id
        self._presence.alive.add(worker_id)

    async def leave(self) -> None:
        self._presence.alive.discard(self._held)

    def present(self, view: StoreView, workers: list[WorkerHeartbeat]) -> set[str]:
        return {worker.id for worker in workers} & self._presence.alive

    def is_gone(self, view: StoreView, worker: WorkerHeartbeat | None) -> bool:
        return worker is None or worker.id not in self._presence.alive

    def sweep(self) -> None:
        return


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
                f"{recording.name}: event {event.seq}: the arguments of {body.tool!r} are incomplete (too large to be "
                "recorded, or the trace was edited), so the trace cannot be replayed"
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
