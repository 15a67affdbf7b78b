"""Driver of a replay: the real engine and flow, with nothing behind them that could act."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from podium.agents.budget_tracker import BudgetTracker
from podium.app.app import Podium
from podium.app.approvals import approve, reject
from podium.app.run_control import resolve_call
from podium.core.approvals import Approver
from podium.core.errors import PodiumError
from podium.core.events import (
    AgentAsked,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRejected,
    RunCancelRequested,
    RunParked,
    RunQueued,
    RunRetried,
    RunStarted,
    RunSucceeded,
    SignalSent,
    ToolFailed,
    ToolResolved,
    UsageRecorded,
)
from podium.core.folder_snapshots import FolderChanges, WorkingFolder
from podium.core.model import Json
from podium.engine import EngineSettings, FlowDefinition, LocalEngine
from podium.jobs.playbook.composition import bench_for
from podium.jobs.playbook.deps import AgentSession, PlaybookDeps
from podium.jobs.playbook.events import PlaybookEnded
from podium.jobs.playbook.flow import follow_playbook
from podium.jobs.playbook.profile_gate import off_limits
from podium.jobs.playbook.replay.recorded_agent import LET_GO, RecordedAgent
from podium.jobs.playbook.replay.recorded_store import (
    FROM_OUTSIDE,
    PresenceMark,
    RecordedStore,
    ReplayPresence,
    ReplayState,
)
from podium.jobs.playbook.replay.recorded_tools import (
    RecordedClock,
    RecordedDeadlines,
    RecordedFiles,
    RecordedIds,
    RecordedOutcomes,
    ReplayLauncher,
)
from podium.jobs.playbook.replay.recording import EventDifference, RecordedEvent, Recording, Tape
from podium.jobs.playbook.run_models import PLAYBOOK, PlaybookJob
from podium.ports import Agent, ConfinementProvider, Gate, HookServers, Launcher, Store, ToolDoor
from podium.store import StoreJournal
from podium.tools.output_text import CANCELLED

if TYPE_CHECKING:
    from podium.tools import LocalToolbox, Registry


class ReplayApp(Podium):
    """A Podium for one process of a replayed run: its policy and its tools are today's, and its tools do nothing."""

    def __init__(self, podium: Podium, tape: Tape, record: Store) -> None:
        self.recorded_clock = RecordedClock(tape)
        super().__init__(
            podium.configuration,
            podium.environ,
            clock=self.recorded_clock,
            ids=RecordedIds(tape, podium.ids),
            notify=podium.notify,
        )
        self.outcomes = RecordedOutcomes(tape, self.recorded_clock)
        self._tape = tape
        self._record = record

    async def journal(self) -> StoreJournal:
        return StoreJournal(self._record)

    async def tool_door(
        self,
        root: Path | None = None,
        *,
        attended: bool = False,
        registry: Registry | None = None,
        gate: Gate | None = None,
        mode: str = "",
        confinement_provider: ConfinementProvider | None = None,
        store: Store | None = None,
    ) -> ToolDoor:
        door = await super().tool_door(
            root,
            attended=attended,
            registry=registry,
            gate=RecordedDeadlines(gate or self.gate, self._tape, self.recorded_clock),
            mode=mode,
            confinement_provider=confinement_provider,
            store=store or self._record,
        )
        return RecordedFiles(door, self._tape)

    def toolbox_behind(
        self,
        door: ToolDoor,
        root: Path | None = None,
        registry: Registry | None = None,
        *,
        gate: Gate | None = None,
        confinement_provider: ConfinementProvider | None = None,
        launcher: Launcher | None = None,
    ) -> LocalToolbox:
        return super().toolbox_behind(
            door,
            root,
            self.outcomes.tools(registry or self.registry),
            gate=gate,
            confinement_provider=confinement_provider,
            launcher=launcher or ReplayLauncher(),
        )


class RecordedGrounds:
    """A folder that nobody looks into: what was different in the end is what the trace says."""

    def __init__(self, recording: Recording) -> None:
        self._changes = _changes_in(recording)

    async def prepare(
        self, run_id: str, root: str, is_closed: Callable[[str], bool], *, as_copy: bool
    ) -> WorkingFolder:
        return WorkingFolder(root=root, is_copy=as_copy)

    async def changes(
        self, ground: WorkingFolder, root: str, is_closed: Callable[[str], bool]
    ) -> FolderChanges:
        return self._changes

    async def leave(self, ground: WorkingFolder) -> None:
        return


def _changes_in(recording: Recording) -> FolderChanges:
    """Whole where the run succeeded; else the names alone, which is all that its end tells."""
    found = FolderChanges()
    for event in recording.events:
        match event.body:
            case PlaybookEnded(changed=paths, trespasses=trespasses, unknown=unknown):
                found = FolderChanges(paths=paths, trespasses=trespasses, unknown=unknown)
            case RunSucceeded(result={"changes": dict(changes)}):
                found = FolderChanges.model_validate(changes)
    return found


STALLED_SECONDS = 60.0
"""A replay has nothing to wait for; one that stands still for so long is not going to go on."""

Act = Callable[[], Awaitable[object]]


class ReplayDriver:
    """One replay, from the first event to the last, or to the first that differs."""

    def __init__(
        self,
        podium: Podium,
        room: ReplayState,
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
        self._marks = ReplayPresence()
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

    async def _on(self, event: RecordedEvent) -> None:
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

    def _differs(self, event: RecordedEvent, why: str) -> None:
        self._tape.differs(EventDifference(seq=event.seq, type=event.body.type, why=why))

    def _from_outside(self, event: RecordedEvent) -> Act | None:
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
                    store, clock, ids, approval, by=yes, groups=groups, comment=said
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
        stage = ReplayApp(self._podium, self._tape, self._store)
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

    def _kit(self, stage: ReplayApp, store: RecordedStore) -> PlaybookDeps:
        budgets = (*stage.gate.budgets, *stage.settings.budgets.budgets())

        async def bench(job: PlaybookJob, ground: WorkingFolder) -> AgentSession:
            journal = await stage.journal()

            def agent(doors: HookServers) -> Agent:
                return RecordedAgent(
                    self._agent_name, self._tape, stage.outcomes, doors, journal, self._wishes
                )

            return await bench_for(stage, job, ground, agent)

        return PlaybookDeps(
            store=store,
            clock=stage.clock,
            purse=BudgetTracker(store, stage.clock, budgets),
            grounds=RecordedGrounds(self._tape.recording),
            off_limits=off_limits,
            bench=bench,
        )

    def _engine_on(self, store: RecordedStore, stage: ReplayApp) -> LocalEngine:
        return LocalEngine(
            store,
            clock=stage.clock,
            ids=self._podium.ids,
            presence=PresenceMark(self._marks),
            settings=EngineSettings(tick_seconds=0.05, gather_seconds=0.0),
        )

    def _bystander(self) -> LocalEngine:
        """Another process, which hosts nothing."""
        return self._engine_on(self._outside, ReplayApp(self._podium, self._tape, self._outside))

    @property
    def _agent_name(self) -> str:
        """A program may bring an agent that goes by another name than the job's."""
        bodies = (event.body for event in self._tape.events)
        return next(
            (body.agent for body in bodies if isinstance(body, AgentAsked)), self._job.agent
        )

    @property
    def _clock(self) -> RecordedClock:
        return RecordedClock(self._tape)

    # --- what the tape tells -----------------------------------------------------------------

    def _is_followed_by_start(self) -> bool:
        """Guidance comes in one transaction with the new process that takes it."""
        (_, _), *rest = self._tape.rest()
        return bool(rest) and isinstance(rest[0][1], RunStarted)

    def _is_alone(self, event: RecordedEvent) -> bool:
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
