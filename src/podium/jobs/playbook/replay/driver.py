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
from podium.jobs.playbook.composition import agent_session
from podium.jobs.playbook.deps import AgentSession, PlaybookDeps
from podium.jobs.playbook.events import PlaybookEnded
from podium.jobs.playbook.flow import follow_playbook
from podium.jobs.playbook.models import PLAYBOOK, PlaybookJob
from podium.jobs.playbook.profile_gate import off_limits
from podium.jobs.playbook.replay.recorded_agent import LET_GO, RecordedAgent
from podium.jobs.playbook.replay.recorded_ports import (
    FROM_OUTSIDE,
    RecordedClock,
    RecordedDeadlines,
    RecordedFiles,
    RecordedIds,
    RecordedOutcomes,
    RecordedStore,
    ReplayLauncher,
    ReplayPresence,
    ReplayState,
    ReplayWorkerPresence,
)
from podium.jobs.playbook.replay.recording import EventDifference, RecordedEvent, Recording, Tape
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


class RecordedFolders:
    """Working folders that are never read: the changes are those of the trace."""

    def __init__(self, recording: Recording) -> None:
        self._changes = _changes_in(recording)

    async def prepare(
        self, run_id: str, root: str, is_closed: Callable[[str], bool], *, as_copy: bool
    ) -> WorkingFolder:
        return WorkingFolder(root=root, is_copy=as_copy)

    async def changes(
        self, folder: WorkingFolder, root: str, is_closed: Callable[[str], bool]
    ) -> FolderChanges:
        return self._changes

    async def leave(self, folder: WorkingFolder) -> None:
        return


def _changes_in(recording: Recording) -> FolderChanges:
    """Read the changes: complete if the run succeeded, else only the names."""
    result = FolderChanges()
    for event in recording.events:
        match event.body:
            case PlaybookEnded(changed=paths, trespasses=trespasses, unknown=unknown):
                result = FolderChanges(paths=paths, trespasses=trespasses, unknown=unknown)
            case RunSucceeded(result={"changes": dict(changes)}):
                result = FolderChanges.model_validate(changes)
    return result


STALLED_SECONDS = 60.0
"""A replay has nothing to wait for; one that stands still for so long is not going to go on."""

Act = Callable[[], Awaitable[object]]


class ReplayDriver:
    """One replay, from the first event to the last, or to the first that differs."""

    def __init__(
        self,
        podium: Podium,
        state: ReplayState,
        job: PlaybookJob,
        settings: Mapping[str, Json],
        call_arguments: Mapping[str, dict[str, Json]],
    ) -> None:
        """`settings` are those the run was started with."""
        self._podium = podium
        self._state = state
        self._tape = state.tape
        self._run_id = state.tape.recording.run_id
        self._job = job
        self._settings = dict(settings)
        self._call_arguments = call_arguments
        self._presence = ReplayPresence()
        self._outside = RecordedStore(state)
        """Store of people and other processes."""
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
        position, act = self._tape.position, self._from_outside(event)
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                if act is not None:
                    await act()
                await self._tape.moved(position)
        except TimeoutError:
            self._differs(event, "the replay had no event here")
        except PodiumError as error:
            self._differs(event, f"this event could not be replayed: {error}")

    def _differs(self, event: RecordedEvent, why: str) -> None:
        self._tape.differs(EventDifference(seq=event.seq, type=event.body.type, why=why))

    def _from_outside(self, event: RecordedEvent) -> Act | None:
        """Return the act of a person or another process that caused this event. None: the run itself did."""
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
            case ApprovalGranted(approval_id=approval, by=by, said=comment):
                groups = {body.group: (by,)} if body.group else None
                yes = Approver(name=by, authentication=body.authentication)
                return lambda: approve(
                    store, clock, ids, approval, by=yes, groups=groups, comment=comment
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
            # It has no effect but the event itself.
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
        """End the process gracefully, in the background."""
        if self._letting_go is None and self._engine is not None:
            self._letting_go = asyncio.create_task(self._engine.close())

    async def _new_process(self) -> LocalEngine:
        await self._kill()
        self._store = RecordedStore(self._state)
        app = ReplayApp(self._podium, self._tape, self._store)
        self._engine = self._engine_on(self._store, app)
        body = follow_playbook(self._deps(app, self._store))
        self._engine.register(FlowDefinition(PLAYBOOK, body, input_type=PlaybookJob))
        return self._engine

    async def _kill(self) -> None:
        """End the current process, as `kill -9` would."""
        engine, self._engine = self._engine, None
        letting_go, self._letting_go = self._letting_go, None
        if self._store is not None:
            await self._store.close()
        if engine is not None:
            await engine.abandon()
        if letting_go is not None:
            with suppress(PodiumError):
                await letting_go

    def _deps(self, app: ReplayApp, store: RecordedStore) -> PlaybookDeps:
        budgets = (*app.gate.budgets, *app.settings.budgets.budgets())

        async def open_session(job: PlaybookJob, folder: WorkingFolder) -> AgentSession:
            journal = await app.journal()

            def agent(doors: HookServers) -> Agent:
                return RecordedAgent(
                    self._agent_name, self._tape, app.outcomes, doors, journal, self._call_arguments
                )

            return await agent_session(app, job, folder, agent)

        return PlaybookDeps(
            store=store,
            clock=app.clock,
            budget_tracker=BudgetTracker(store, app.clock, budgets),
            folders=RecordedFolders(self._tape.recording),
            off_limits=off_limits,
            open_session=open_session,
        )

    def _engine_on(self, store: RecordedStore, app: ReplayApp) -> LocalEngine:
        return LocalEngine(
            store,
            clock=app.clock,
            ids=self._podium.ids,
            presence=ReplayWorkerPresence(self._presence),
            settings=EngineSettings(tick_seconds=0.05, gather_seconds=0.0),
        )

    def _bystander(self) -> LocalEngine:
        """Build the engine of another process, which hosts nothing."""
        return self._engine_on(self._outside, ReplayApp(self._podium, self._tape, self._outside))

    @property
    def _agent_name(self) -> str:
        """Return the recorded agent's name, which may differ from the job's."""
        bodies = (event.body for event in self._tape.events)
        return next(
            (body.agent for body in bodies if isinstance(body, AgentAsked)), self._job.agent
        )

    @property
    def _clock(self) -> RecordedClock:
        return RecordedClock(self._tape)

    # --- state of the tape --------------------------------------------------------------------

    def _is_followed_by_start(self) -> bool:
        """Check if the next event starts a process: a note comes in one transaction with it."""
        (_, _), *rest = self._tape.rest()
        return bool(rest) and isinstance(rest[0][1], RunStarted)

    def _is_alone(self, event: RecordedEvent) -> bool:
        """Check if somebody answered too late, rather than the run asking once more."""
        position = self._tape.position + 1
        events = self._tape.events
        return position >= len(events) or events[position].at != event.at

    async def _come_too_late(self, approval: str) -> None:
        ids = self._podium.ids
        with suppress(PodiumError):
            await approve(self._outside, self._clock, ids, approval, by="")

    def _is_let_go_here(self) -> bool:
        """Check if all events up to the parking follow from the end of its process."""
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
