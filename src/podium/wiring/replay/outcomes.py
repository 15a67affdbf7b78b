"""Tools that do nothing: each call ends as it ended when the run was recorded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from podium.domain.errors import NotPossibleNow, OutcomeUnknown
from podium.domain.events import (
    ApprovalConsumed,
    ApprovalRequested,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRequested,
    UsageRecorded,
)
from podium.domain.gating import Call, Outcome, Permit, Receipt, Refusal, Usage
from podium.domain.launching import Ended, Spawn
from podium.domain.model import Json
from podium.ports import Checkpoint, Process, ToolDoor
from podium.tools import Registry
from podium.wiring.replay.tape import Tape
from podium.wiring.replay.timing import RecordedClock

if TYPE_CHECKING:
    from podium.tools import ToolScope


class Outcomes:
    """What became of every call."""

    def __init__(self, tape: Tape, clock: RecordedClock) -> None:
        self._tape = tape
        self._clock = clock
        self._held: dict[str, asyncio.Event] = {}

    def tools(self, registry: Registry) -> Registry:
        """The same tools as registered today, with other hands."""
        names = [spec.name for spec in registry.specs()]
        return Registry([replace(registry.tool(name), handler=self._act) for name in names])

    def hold(self, key: str) -> None:
        """Let this call last until it is released."""
        self._held[key] = asyncio.Event()

    def release(self, key: str) -> None:
        if key in self._held:
            self._held.pop(key).set()

    async def _act(self, arguments: dict[str, Json], scope: ToolScope) -> Outcome:
        if (held := self._held.get(scope.key)) is not None:
            await held.wait()
        for at, body in self._tape.rest():
            match body:
                case ToolCompleted(call=key, result=result) if key == scope.key:
                    self._clock.let_last(body.seconds)
                    return Outcome(ok=True, result=result, usage=self._usage(at, body.tool))
                case ToolFailed(call=key, result=result) if key == scope.key:
                    self._clock.let_last(body.seconds)
                    usage = self._usage(at, body.tool)
                    return Outcome(ok=False, error=body.error, result=result, usage=usage)
                case ToolInDoubt(call=key) if key == scope.key:
                    raise OutcomeUnknown("it was not known whether it happened")
        never: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        return await never  # its process was killed

    def _usage(self, at: int, tool: str) -> Usage:
        """What the call itself cost, told right behind its end."""
        for _, body in self._tape.rest(at + 1):
            if isinstance(body, UsageRecorded) and body.source == f"tool:{tool}":
                return body.usage
            if not isinstance(body, ApprovalConsumed):
                break
        return Usage()


class RecordedFiles:
    """A door before the door: calls come to it with the files that their commands named then."""

    def __init__(self, door: ToolDoor, tape: Tape) -> None:
        self._door = door
        self._tape = tape

    async def request(self, call: Call) -> Permit | Refusal:
        return await self._door.request(self._as_it_was(call))

    async def look_back(self, run_id: str, step_key: str) -> None:
        await self._door.look_back(run_id, step_key)

    async def settle(
        self, permit: Permit, outcome: Outcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        return await self._door.settle(permit, outcome, checkpoint)

    async def abandon(self, permit: Permit) -> Receipt:
        return await self._door.abandon(permit)

    def _as_it_was(self, call: Call) -> Call:
        """The content of files is no part of a trace, and they may be others by now."""
        for _, body in self._tape.rest():
            if isinstance(body, ToolRequested | ApprovalRequested) and body.call == call.key:
                return call.model_copy(update={"files": body.files})
        return call.model_copy(update={"files": ()})


class NoLauncher:
    """Starts nothing."""

    async def start(self, spawn: Spawn) -> Process:
        raise NotPossibleNow("a replay starts no process")

    async def run(self, spawn: Spawn) -> Ended:
        raise NotPossibleNow("a replay starts no process")

    async def on_terminal(self, spawn: Spawn) -> tuple[str, ...]:
        raise NotPossibleNow("a replay starts no process")
