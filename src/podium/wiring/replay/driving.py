"""Drives a replay: the real engine and the real flow, with people and other processes as they were recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from podium.domain.approvals import Approver
from podium.domain.errors import PodiumError
from podium.domain.events import (
    AgentAsked,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRejected,
    RunCancelRequested,
    RunParked,
    RunQueued,
    RunRetried,
    RunStarted,
    SignalSent,
    ToolFailed,
    ToolResolved,
    UsageRecorded,
)
from podium.domain.model import Json
from podium.domain.playbook_runs import PLAYBOOK, Ground, PlaybookJob
from podium.engine import EngineSettings, FlowDefinition, LocalEngine
from podium.flows import Purse
from podium.flows.playbook.kit import Bench, PlaybookKit
from podium.flows.playbook.story import follow_playbook
from podium.ports import Agent, HookDoors
from podium.tools.wording import CANCELLED
from podium.usecases import approve, reject, resolve_call
from podium.wiring.playbooking import bench_for
from podium.wiring.podium import Podium
from podium.wiring.profile_gate import off_limits
from podium.wiring.replay.comparing import Difference
from podium.wiring.replay.marks import Mark, Marks
from podium.wiring.replay.part import LET_GO
from podium.wiring.replay.reading import Recorded
from podium.wiring.replay.recorded_agent import RecordedAgent
from podium.wiring.replay.recorded_store import FROM_OUTSIDE, RecordedStore, Room
from podium.wiring.replay.stage import RecordedGrounds, Stage
from podium.wiring.replay.timing import RecordedClock

STALLED_SECONDS = 60.0
"""A replay has nothing to wait for; one that stands still for so long is not going to go on."""

Act = Callable[[], Awaitable[object]]


class Driver:
    """One replay, from the first event to the last, or to the first that differs."""

    def __init__(
        self,
        podium: Podium,
        room: Room,
        job: PlaybookJob,
        settings: Mapping[str, Json],
        wishes: Mapping[str, dict[str, Json]],
    ) -> None:
        """`settings` are the terms that the run was started under."""
        self._podium = podium
        self._room = room
        self._tape = room.tape
        self._run_id = room.tape.recording.run_id
        self._job = job
        self._settings = dict(settings)
        self._wishes = wishes
        self._marks = Marks()
        self._outside = RecordedStore(room)
        """What people and other processes write through."""
        self._store: RecordedStore | None = None
        self._engine: LocalEngine | None = None
        self._letting_go: asyncio.Task[None] | None = None

    async def drive(self) -> None:
        try:
            while (event := self._tape.next) is not None and self._tape.difference is None:
                await self._on(event)
        finally:
            await self._kill()
            await self._outside.close()

    async def _on(self, event: Recorded) -> None:
        place, act = self._tape.place, self._from_outside(event)
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                if act is not None:
                    await act()
                await self._tape.moved(place)
        except TimeoutError:
            self._differs(event, "nothing happened any more where this was recorded")
        except PodiumError as error:
            self._differs(event, f"this could not happen again: {error}")

    def _differs(self, event: Recorded, why: str) -> None:
        self._tape.differs(Difference(seq=event.seq, type=event.body.type, why=why))

    def _from_outside(self, event: Recorded) -> Act | None:
        """What somebody did, so that this event came. None: the run itself did it."""
        body, store, clock, ids = event.body, self._outside, self._clock, self._podium.ids
        match body:
            case RunQueued():
                return lambda: self._start(body)
            case RunStarted():
                return self._take_over
            case RunRetried():
                return lambda: self._retry(body)
            case SignalSent(name=name, by=by):
                if self._is_followed_by_start():
                    return lambda: self._take_over(by)
                return lambda: self._bystander().signal(self._run_id, name, by=by)
            case RunCancelRequested(by=by, why=why):
                return lambda: self._bystander().cancel(self._run_id, by=by, why=why)
            case ApprovalGranted(approval_id=approval, by=by, said=said):
                groups = {body.group: (by,)} if body.group else None
                yes = Approver(name=by, authentication=body.authentication)
                return lambda: approve(
                    store, clock, ids, approval, by=yes, groups=groups, said=said
                )
            case ApprovalRejected(approval_id=approval, by=by, why=why):
                no = Approver(name=by, authentication=body.authentication)
                return lambda: reject(store, clock, ids, approval, by=no, why=why)
            case ApprovalExpired(approval_id=approval) if self._is_alone(event):
                return lambda: self._come_too_late(approval)
            case ToolResolved(call=call, by=by, happened=happened):
                return lambda: resolve_call(store, clock, call, happened=happened, by=by)
        if self._is_let_go_here():
            return self._let_go
        if body.type in FROM_OUTSIDE:
            # Nothing follows from it but that it stands there.
            return lambda: store.write(lambda tx: tx.append(self._run_id, body))
        return None

    # --- processes ---------------------------------------------------------------------------

    async def _start(self, queued: RunQueued) -> None:
        engine = await self._new_process()
        await engine.start(
            PLAYBOOK,
            self._job.model_dump(mode="json"),
            task=queued.task,
            queue=queued.queue,
            settings=self._settings,
            run_id=self._run_id,
        )

    async def _take_over(self, by: str = "") -> None:
        engine = await self._new_process()
        await engine.resume(self._run_id, by=by)

    async def _retry(self, retried: RunRetried) -> None:
        engine = await self._new_process()
        first = retried.discarded_steps[0] if retried.discarded_steps else None
        await engine.retry(self._run_id, from_step=first, by=retried.by)

    async def _let_go(self) -> None:
        """End the process politely, beside whatever follows from it."""
        if self._letting_go is None and self._engine is not None:
            self._letting_go = asyncio.create_task(self._engine.close())

    async def _new_process(self) -> LocalEngine:
        await self._kill()
        self._store = RecordedStore(self._room)
        stage = Stage(self._podium, self._tape, self._store)
        self._engine = self._engine_on(self._store, stage)
        body = follow_playbook(self._kit(stage, self._store))
        self._engine.register(FlowDefinition(PLAYBOOK, body, input_type=PlaybookJob))
        return self._engine

    async def _kill(self) -> None:
        """End the process that is there, as `kill -9` would."""
        engine, self._engine = self._engine, None
        letting_go, self._letting_go = self._letting_go, None
        if self._store is not None:
            await self._store.close()
        if engine is not None:
            await engine.abandon()
        if letting_go is not None:
            with suppress(PodiumError):
                await letting_go

    def _kit(self, stage: Stage, store: RecordedStore) -> PlaybookKit:
        budgets = (*stage.gate.budgets, *stage.settings.budgets.budgets())

        async def bench(job: PlaybookJob, ground: Ground) -> Bench:
            journal = await stage.journal()

            def agent(doors: HookDoors) -> Agent:
                return RecordedAgent(
                    self._agent_name, self._tape, stage.outcomes, doors, journal, self._wishes
                )

            return await bench_for(stage, job, ground, agent)

        return PlaybookKit(
            store=store,
            clock=stage.clock,
            purse=Purse(store, stage.clock, budgets),
            grounds=RecordedGrounds(self._tape.recording),
            off_limits=off_limits,
            bench=bench,
        )

    def _engine_on(self, store: RecordedStore, stage: Stage) -> LocalEngine:
        return LocalEngine(
            store,
            clock=stage.clock,
            ids=self._podium.ids,
            presence=Mark(self._marks),
            settings=EngineSettings(tick_seconds=0.05, gather_seconds=0.0),
        )

    def _bystander(self) -> LocalEngine:
        """Another process, which hosts nothing."""
        return self._engine_on(self._outside, Stage(self._podium, self._tape, self._outside))

    @property
    def _agent_name(self) -> str:
        """A program may bring an agent that goes by another name than the job's."""
        bodies = (event.body for event in self._tape.events)
        return next(
            (each.agent for each in bodies if isinstance(each, AgentAsked)), self._job.agent
        )

    @property
    def _clock(self) -> RecordedClock:
        return RecordedClock(self._tape)

    # --- what the tape tells -----------------------------------------------------------------

    def _is_followed_by_start(self) -> bool:
        """Guidance comes in one transaction with the new process that takes it."""
        (_, _), *rest = self._tape.rest()
        return bool(rest) and isinstance(rest[0][1], RunStarted)

    def _is_alone(self, event: Recorded) -> bool:
        """Whether somebody answered too late, rather than the run asking once more."""
        place = self._tape.place + 1
        events = self._tape.events
        return place >= len(events) or events[place].at != event.at

    async def _come_too_late(self, approval: str) -> None:
        ids = self._podium.ids
        with suppress(PodiumError):
            await approve(self._outside, self._clock, ids, approval, by="")

    def _is_let_go_here(self) -> bool:
        """Whether all that is left before the run is parked follows from its process being ended."""
        for _, body in self._tape.rest():
            match body:
                case RunParked(reason=reason):
                    return reason == LET_GO
                case ToolFailed(error=error) if error == CANCELLED:
                    continue
                case UsageRecorded(source=source) if source.startswith("agent:"):
                    continue
            break
        return False
