"""Changes of a run's owner: every function here is one part of one transaction.

start ──► queued ──claim──► running ◄──resume── (nobody's)
            ▲                 │ ▲                    ▲
            └──signal, due────┤ └──── retry ── ended │
                              └── owner dead ────────┘
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from podium.core.errors import (
    BadInput,
    FlowChanged,
    FlowUnknown,
    LockHeld,
    NotPossibleNow,
    PodiumError,
    UnknownId,
)
from podium.core.events import (
    RunCancelled,
    RunCancelRequested,
    RunNeededHuman,
    RunQueued,
    RunRetried,
    RunStarted,
    SignalSent,
)
from podium.core.model import Json
from podium.core.work import (
    APPROVAL_SIGNAL,
    MACHINE,
    PULL_SIGNAL,
    QueueSpec,
    Run,
    RunStatus,
    Schedule,
    Signal,
    StepRecord,
    StepStatus,
)
from podium.engine.deadlines import Deadlines, next_after
from podium.engine.definition import RegisteredFlow
from podium.engine.liveness import WorkerRoster
from podium.ports import Clock, Flow, Ids, RunQuery, StoreView, Transaction

ACTIVE = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.NEEDS_HUMAN)


class Ownership:
    """One worker's view of who owns which run, and what it may take."""

    def __init__(
        self,
        worker_id: str,
        clock: Clock,
        ids: Ids,
        roster: WorkerRoster,
        deadlines: Deadlines,
        offers: Sequence[str] = (),
    ) -> None:
        """`offers` names what this process has and others may lack."""
        self.worker_id = worker_id
        self._offers = tuple(offers)
        self._clock = clock
        self._ids = ids
        self._roster = roster
        self._deadlines = deadlines
        self._flows: dict[str, RegisteredFlow] = {}

    def register(self, flow: Flow) -> None:
        self._flows[flow.name] = RegisteredFlow(flow)

    def definition(self, flow: str) -> RegisteredFlow:
        if flow not in self._flows:
            raise FlowUnknown(flow, sorted(self._flows))
        return self._flows[flow]

    def flow_names(self) -> tuple[str, ...]:
        """Every flow that can be hosted here, as `name@version`."""
        return tuple(flow_name(flow, version) for flow, version in self.flow_versions())

    def flow_versions(self) -> list[tuple[str, int]]:
        return sorted((name, flow.version) for name, flow in self._flows.items())

    def new_run(
        self,
        flow: str,
        input: Json,
        *,
        task: str = "",
        queue: str | None = None,
        priority: int = 0,
        dedup_key: str | None = None,
        delay_seconds: float = 0.0,
        settings: dict[str, Json] | None = None,
        run_id: str | None = None,
        parent_id: str | None = None,
    ) -> Run:
        """A run that is not stored yet. Raises for an unknown flow and an input that does not fit."""
        definition = self.definition(flow)
        definition.read_input(input)
        now = self._clock.now()
        return Run(
            id=run_id or self._ids.new("run"),
            flow=flow,
            flow_version=definition.version,
            code_digest=definition.code_digest,
            task=task,
            input=input,
            settings=settings or {},
            queue=queue,
            priority=priority,
            dedup_key=dedup_key,
            parent_id=parent_id,
            created_at=now,
            not_before=now + timedelta(seconds=delay_seconds) if delay_seconds > 0 else None,
            needs=self._offers if queue is None else (),
        )

    def enqueue(self, tx: Transaction, run: Run) -> Run:
        """Store a new run, or give the unfinished one with the same dedup key."""
        if tx.run(run.id) is not None:
            raise BadInput(f"run {run.id!r} already exists; resume it or start another")
        added = tx.add_run(run)
        if added is run:
            tx.append(run.id, queued_event(run))
        return added

    def begin(self, tx: Transaction, run: Run) -> Run:
        """Store a run and take it at once."""
        queued = self.enqueue(tx, run)
        return self.take(tx, queued) if queued is run else queued

    def take_over(self, tx: Transaction, run_id: str, note: str = "", by: str = "") -> Run:
        """Take a run that nobody alive owns, and hand over the guidance it asked for."""
        run = require_run(tx, run_id)
        if run.status.ended:
            hint = f"; `podium retry {run_id}` tries again" if run.failure else ""
            raise NotPossibleNow(f"run {run_id} is {run.status} already{hint}")
        self._refuse_hosted(tx, run)
        definition = self.definition(run.flow)
        if definition.version != run.flow_version:
            raise FlowChanged(_other_version(run, definition))
        if run.status is RunStatus.NEEDS_HUMAN and run.waiting_for:
            self._guide(tx, run, note, by)
        return self.take(tx, run)

    def _guide(self, tx: Transaction, run: Run, note: str, by: str) -> None:
        signal = Signal(
            id=self._ids.new("sig"),
            run_id=run.id,
            name=run.waiting_for or "",
            payload=note,
            sent_by=by,
            sent_at=self._clock.now(),
        )
        self.leave_signal(tx, signal)

    def try_again(self, tx: Transaction, run_id: str, from_step: str | None, by: str) -> Run:
        """Forget steps and take the run, ended or not. What happened stays in its stream."""
        run = require_run(tx, run_id)
        self._refuse_hosted(tx, run)
        if run.status is RunStatus.SUCCEEDED and from_step is None:
            raise NotPossibleNow(
                f"run {run_id} succeeded; to repeat it, name the first step: "
                f"`podium retry {run_id} --from STEP`"
            )
        steps = tx.steps(run_id)
        forgotten = _steps_to_forget(steps, from_step)
        tx.drop_steps(run_id, forgotten)
        for step in steps:
            if step.key in forgotten and step.key.startswith("wait:") and step.output:
                # What it was waiting for has come already and will not come again.
                tx.add_signal(Signal.model_validate(step.output))
        tx.append(run_id, RunRetried(by=by, discarded_steps=tuple(forgotten)))
        fresh = {
            "status": RunStatus.RUNNING,
            "result": None,
            "cancel_requested": False,
            "setbacks": 0,
        }
        tx.save_run(run.model_copy(update=fresh))
        return self.take_over(tx, run_id)

    def claim(self, tx: Transaction, queue: QueueSpec) -> Run | None:
        """Take the next run of a queue. One of another version goes to a person instead."""
        run = tx.claim(self.worker_id, queue, sorted(self._flows), self._clock.now())
        if run is None:
            return None
        definition = self.definition(run.flow)
        if definition.version == run.flow_version:
            tx.append(run.id, RunStarted(owner=self.worker_id, fence=run.fence))
            return run
        parked = run.model_copy(update={"status": RunStatus.NEEDS_HUMAN, "owner": None})
        tx.save_run(parked)
        tx.append(run.id, RunNeededHuman(reason=_other_version(run, definition)))
        return parked

    def leave_signal(self, tx: Transaction, signal: Signal) -> None:
        run = require_run(tx, signal.run_id)
        if run.status.ended:
            raise NotPossibleNow(f"run {run.id} is {run.status} and accepts no more signals")
        tx.append(run.id, SignalSent(name=signal.name, by=signal.sent_by))
        tx.add_signal(signal)

    def request_cancel(self, tx: Transaction, run_id: str, by: str, why: str) -> Run:
        """Keep the wish that a run and its children end; end what nobody hosts right here."""
        run = require_run(tx, run_id)
        if run.status.ended:
            raise NotPossibleNow(f"run {run_id} is {run.status} already")
        tx.append(run_id, RunCancelRequested(by=by, why=why))
        wished = run.model_copy(update={"cancel_requested": True})
        if run.owner is None or self._roster.is_gone(tx, run.owner):
            # Its processes died with its owner. One that is only stopped keeps its own: it ends
            # them, and the run, when it goes on.
            wished = self._end_cancelled(tx, wished)
        tx.save_run(wished)
        for child in tx.runs(RunQuery(parent_id=run_id, statuses=ACTIVE, limit=100_000)):
            if not child.cancel_requested:
                self.request_cancel(tx, child.id, by, f"its parent {run_id} was cancelled")
        return wished

    def _end_cancelled(self, tx: Transaction, run: Run) -> Run:
        """The run as it is when it was cancelled and nobody hosts it; the caller saves it."""
        ended = run.model_copy(
            update={
                "status": RunStatus.CANCELLED,
                "owner": None,
                "fence": run.fence + 1,
                "finished_at": self._clock.now(),
            }
        )
        tx.append(run.id, RunCancelled())
        signal_parents(tx, ended, self._ids)
        return ended

    def queue_orphan(self, tx: Transaction, run: Run) -> None:
        """Queue a run whose owner died; one that was wished to end ends."""
        if run.cancel_requested:
            tx.save_run(self._end_cancelled(tx, run))
        else:
            tx.save_run(run.model_copy(update={"status": RunStatus.QUEUED, "owner": None}))

    def answered(self, view: StoreView) -> list[Run]:
        """List runs of the foreground that nobody hosts, whose answer or next look has come, and that can be hosted here."""
        due = {run.id: run for run in view.due_follow_ups(view.now())}
        runs = [run for run in view.answered_waits() if _is_answered(view, run)]
        runs = [
            run
            for run in {**{run.id: run for run in runs}, **due}.values()
            if self._can_take_up(run)
        ]
        if not runs:
            return []
        alive = self._roster.alive(view)
        return [run for run in runs if run.owner not in alive]

    def queue_answered(self, tx: Transaction, queue: str) -> None:
        """Hand these runs to a queue: from there each is claimed by one worker, and by another when that one dies."""
        for run in self.answered(tx):
            machine = (need for need in run.needs if need.startswith(MACHINE))
            update = {
                "status": RunStatus.QUEUED,
                "queue": queue,
                "owner": None,
                "not_before": None,
                # Whoever hosted it is gone, or will find that it is.
                "fence": run.fence + 1,
                "pinned_to": next(machine, "").removeprefix(MACHINE) or run.pinned_to,
            }
            tx.save_run(run.model_copy(update=update))

    def _can_take_up(self, run: Run) -> bool:
        definition = self._flows.get(run.flow)
        is_supported = definition is not None and definition.version == run.flow_version
        return is_supported and set(run.needs) <= set(self._offers) and not run.cancel_requested

    def served(self, view: StoreView, run: Run) -> bool:
        """Tell whether somebody works on the run, or will when its turn comes."""
        if run.queue is not None:
            return True
        return run.owner is not None and run.owner in self._roster.alive(view)

    def has_chores(self, view: StoreView, *, orphans: bool = True) -> bool:
        now = view.now()
        return (
            any(not schedule.paused and schedule.next_at <= now for schedule in view.schedules())
            or bool(self._due_waits(view, now))
            or (orphans and bool(self._roster.orphans(view)))
        )

    def do_chores(self, tx: Transaction, *, orphans: bool = True) -> list[str]:
        """Queue again what is due and, with `orphans`, what the dead left behind; fire schedules.

        Gives what a person should know: a schedule that cannot be fired is paused.
        """
        now = tx.now()
        for run in self._due_waits(tx, now):
            tx.save_run(run.model_copy(update={"status": RunStatus.QUEUED, "owner": None}))
        for run in self._roster.orphans(tx) if orphans else ():
            self.queue_orphan(tx, run)
        problems = []
        for schedule in tx.schedules():
            if not schedule.paused and schedule.next_at <= now and schedule.flow in self._flows:
                try:
                    self._fire(tx, schedule)
                except PodiumError as error:
                    tx.save_schedule(schedule.model_copy(update={"paused": True}))
                    problems.append(f"schedule {schedule.name!r} is paused: {error}")
        return problems

    def _due_waits(self, view: StoreView, now: datetime) -> list[Run]:
        """Waiting runs of queues that nobody hosts and whose deadline has passed."""
        runs = view.due_waits(self._deadlines.horizon(now))
        return [run for run in runs if run.wake_at and self._deadlines.passed(run.wake_at, now)]

    def _fire(self, tx: Transaction, schedule: Schedule) -> None:
        """Queue the scheduled run and move the schedule on, together: so it fires once."""
        key = f"schedule:{schedule.name}:{schedule.next_at.isoformat()}"
        run = self.new_run(
            schedule.flow, schedule.input, queue=schedule.queue, dedup_key=key, task=schedule.name
        )
        self.enqueue(tx, run)
        later = next_after(schedule, self._clock.now())
        tx.save_schedule(schedule.model_copy(update={"next_at": later}))

    def take(self, tx: Transaction, run: Run) -> Run:
        """Own the run from here on. Whoever owned it before is refused by the fence."""
        taken = run.model_copy(
            update={
                "status": RunStatus.RUNNING,
                "owner": self.worker_id,
                "fence": run.fence + 1,
                "claimed_at": self._clock.now(),
                "finished_at": None,
                "failure": None,
                "waiting_for": None,
                "wake_at": None,
            }
        )
        tx.save_run(taken)
        tx.append(run.id, RunStarted(owner=self.worker_id, fence=taken.fence))
        return taken

    def _refuse_hosted(self, view: StoreView, run: Run) -> None:
        if run.owner is not None and run.owner in self._roster.alive(view):
            raise LockHeld(
                f"run {run.id} is hosted by another process ({run.owner}); "
                f"follow it with `podium logs {run.id} -f`"
            )


def _is_answered(view: StoreView, run: Run) -> bool:
    """Return whether what it waits for is the answer that has come."""
    prefixes = (APPROVAL_SIGNAL, PULL_SIGNAL)
    sent = (name for _, name in view.untaken_signals([run.id]) if name.startswith(prefixes))
    return run.awaits(sent)


def flow_name(flow: str, version: int) -> str:
    """A flow with the version whose code its runs need."""
    return f"{flow}@{version}"


def require_run(view: StoreView, run_id: str) -> Run:
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", run_id)
    return run


def queued_event(run: Run) -> RunQueued:
    return RunQueued(
        flow=run.flow,
        flow_version=run.flow_version,
        task=run.task,
        queue=run.queue,
        parent_id=run.parent_id,
    )


def signal_parents(tx: Transaction, run: Run, ids: Ids) -> None:
    """Signal a run's end to its parent and its followers, in the transaction that ends it."""
    if run.finished_at is None:
        return
    waiting_ids = (run.parent_id, *run.followers) if run.parent_id else run.followers
    for run_id in waiting_ids:
        tx.add_signal(
            Signal(
                id=ids.new("sig"),
                run_id=run_id,
                name=f"child:{run.id}",
                payload=run.model_dump(mode="json"),
                sent_by=run.id,
                sent_at=run.finished_at,
            )
        )


def follow(tx: Transaction, run: Run, follower: str) -> None:
    """Let another run be told of this one's end as well."""
    if follower not in (run.parent_id, *run.followers):
        tx.save_run(run.model_copy(update={"followers": (*run.followers, follower)}))


def _steps_to_forget(steps: Sequence[StepRecord], from_step: str | None) -> list[str]:
    if from_step is None:
        failed = [index for index, step in enumerate(steps) if step.status is StepStatus.FAILED]
        return [step.key for step in steps[failed[-1] :]] if failed else []
    for index, step in enumerate(steps):
        if step.key == from_step:
            return [step.key for step in steps[index:]]
    keys = ", ".join(step.key for step in steps) or "none"
    raise BadInput(f"the run has no recorded step {from_step!r}; recorded: {keys}")


def _other_version(run: Run, definition: RegisteredFlow) -> str:
    return (
        f"run {run.id} was started by version {run.flow_version} of flow {run.flow!r}, but this is "
        f"version {definition.version}; finish it with the Podium that started it, or start a new run"
    )
