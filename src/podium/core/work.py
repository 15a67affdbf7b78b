"""Work: task, run, step, signal, schedule, queue, and the settings recorded with a run."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict, Field

from podium.core.budgets import Budget
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime

TIMER = "timer:"
"""Waits whose name begins so are for nothing but time to pass."""
APPROVAL_SIGNAL = "approval:"
"""Signals whose name begins so answer an approval."""
PULL_SIGNAL = "pull_request:"
"""Waits whose name begins so are for news of a pull request: whoever serves queues continues them by itself."""
PULL_RETRY = ":retry"
"""Those whose name ends so are for time to pass, because the forge asked for it."""
MACHINE = "machine:"
"""Beginning of the need of a run that can go on only on the machine that it was started on."""
RATE_LIMIT = f"{TIMER}rate-limit:"
"""Of these, waits for an agent that may be asked again then."""
AGENT_LOST = f"{TIMER}agent-lost:"
"""Of these, pauses before an agent that was lost is asked again."""


class Role(FrozenModel):
    """A part an agent plays in a flow, such as `developer` or `auditor`."""

    name: NonEmpty
    description: str = ""
    allowed_tools: tuple[str, ...] | None = None
    """Names of tools this role may ask for. None means all that the gate allows."""


class Task(FrozenModel):
    """A person's task, in their own words."""

    text: NonEmpty
    asked_by: str = ""
    provenance: tuple[str, ...] = ()
    """Source of the text when not from a person at an interface, such as `github:issue/12`."""


class RunStatus(StrEnum):
    """Status of a run. Only the last three are ends."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    NEEDS_HUMAN = "needs_human"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in _ENDED


_ENDED = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED})


class Failure(FrozenModel):
    """A stored error: its class and its message."""

    kind: str
    message: str
    exit_code: int = 1


class Run(FrozenModel):
    """One execution of a durable flow.

    `fence` rises with every claim; a write under an older fence is refused.
    """

    id: NonEmpty
    flow: NonEmpty
    flow_version: int = 1
    code_digest: str = ""
    """Digest of the flow's source when the run started."""
    task: str = ""
    input: Json = None
    settings: dict[str, Json] = Field(default_factory=dict)
    status: RunStatus = RunStatus.QUEUED
    queue: str | None = None
    """None: started in the foreground by one process. Else served by workers."""
    priority: int = 0
    """Higher goes first."""
    dedup_key: str | None = None
    parent_id: str | None = None
    followers: tuple[str, ...] = ()
    """Other runs that are told of its end: they asked for it under the same dedup key."""
    created_at: UtcDatetime
    not_before: UtcDatetime | None = None
    claimed_at: UtcDatetime | None = None
    finished_at: UtcDatetime | None = None
    owner: str | None = None
    fence: int = 0
    cancel_requested: bool = False
    waiting_for: str | None = None
    wake_at: UtcDatetime | None = None
    setbacks: int = 0
    """Number of passing errors that interrupted it since its last finished step."""
    setback_steps: int = 0
    """Number of steps that were recorded when that was counted."""
    pinned_to: str | None = None
    """The host that holds what the run has begun, such as its workspace. None: any host may go on with it."""
    needs: tuple[str, ...] = ()
    """Names of what the process that started it in the foreground had: only a worker that offers all of it takes it up."""
    result: Json = None
    failure: Failure | None = None

    def awaits(self, signals: Iterable[str]) -> bool:
        """Return whether it waits for one of these signals."""
        return not set(signals).isdisjoint((self.waiting_for or "").split(", "))

    @property
    def follows_pull_request(self) -> bool:
        """Tell whether it waits for nothing but news of its pull request."""
        names = (self.waiting_for or "").split(", ")
        return self.status is RunStatus.WAITING and all(n.startswith(PULL_SIGNAL) for n in names)

    @property
    def only_sleeps(self) -> bool:
        """Tell whether it waits for nothing but time to pass, and goes on by itself then."""
        names = (self.waiting_for or "").split(", ")
        return self.status is RunStatus.WAITING and all(name.startswith(TIMER) for name in names)


class StepStatus(StrEnum):
    """Status of a step, recorded when the step ends; that of a wait also when it starts."""

    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"


class StepRecord(FrozenModel):
    """Record of a step: one row for each run and key."""

    run_id: str
    key: str
    status: StepStatus
    ordinal: int = 0
    """The place in the order in which steps were first recorded."""
    attempts: int = 1
    output: Json = None
    failure: Failure | None = None
    started_at: UtcDatetime
    finished_at: UtcDatetime | None = None
    deadline: UtcDatetime | None = None


class Signal(FrozenModel):
    """A message for a run: an approval, an answer, a child's end."""

    id: NonEmpty
    run_id: str
    name: str
    payload: Json = None
    sent_by: str = ""
    sent_at: UtcDatetime


class QueueSpec(FrozenModel):
    """Limits of a queue. They apply across all processes that use the store."""

    name: NonEmpty
    concurrency: int | None = None
    """Runs of this queue that may run at once, everywhere. None: no limit."""
    worker_concurrency: int = 4
    """Runs of this queue that one worker hosts at once."""
    rate_limit: int | None = None
    """Number of runs that may start within `rate_seconds`."""
    rate_seconds: float = 1.0
    labels: tuple[str, ...] = ()
    """Labels that a worker must offer to serve it, such as `gpu` or `repo=app`."""


class QueueCounts(FrozenModel):
    """Number of a queue's runs in each status that is not an end."""

    queue: str
    queued: int = 0
    delayed: int = 0
    """Queued, but not to be started yet. Not counted in `queued`."""
    running: int = 0
    waiting: int = 0
    needs_human: int = 0
    oldest_queued_at: UtcDatetime | None = None
    """Creation time of the oldest of those that could start now."""


class Schedule(FrozenModel):
    """A run started again and again, by interval or by cron expression."""

    name: NonEmpty
    flow: NonEmpty
    input: Json = None
    queue: NonEmpty
    every_seconds: float | None = None
    cron: str | None = None
    next_at: UtcDatetime
    paused: bool = False


class WorkerHeartbeat(FrozenModel):
    """A process that hosts runs, with its last heartbeat."""

    id: NonEmpty
    host: str
    pid: int
    started_at: UtcDatetime
    beat_at: UtcDatetime
    queues: tuple[str, ...] = ()
    """Queues it serves. A process that only hosts what it was started for serves none."""
    labels: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    """Flows it can host, each as `name@version`."""
    hosting: int = 0
    """Runs it works on."""
    room: int = 0
    """Runs it would work on at most, over all its queues."""
    load: float = 0.0
    """Processes of its host that wanted a core, in the last minute, for each core."""
    podium: str = ""
    """Version of Podium it runs."""
    answered_queue: str = ""
    """Queue into which it takes answered runs of the foreground that nobody hosts. Empty: it takes none."""
    offers: tuple[str, ...] = ()
    """Names of what this process has, such as `variable:OPENAI_API_KEY`; compared with what runs need."""

    def serves(self, run: Run) -> bool:
        """Return whether it would claim this run of a queue."""
        return run.queue in self.queues and self._knows(run)

    def takes_up(self, run: Run) -> bool:
        """Return whether it would take up this run of the foreground once it is answered."""
        return bool(self.answered_queue) and self._knows(run) and not self.lacks(run)

    def lacks(self, run: Run) -> list[str]:
        """List what the run needs and this process does not have."""
        return sorted(set(run.needs) - set(self.offers))

    def _knows(self, run: Run) -> bool:
        return f"{run.flow}@{run.flow_version}" in self.flows


Mode = Literal["sensing", "dry-run", "supervised", "autonomous"]

MODES: tuple[Mode, ...] = ("sensing", "dry-run", "supervised", "autonomous")
"""From the strictest to the most trusting."""


class RunSettings(FrozenModel):
    """Settings recorded with a run. Today's settings may tighten them, never loosen them."""

    model_config = ConfigDict(extra="ignore")

    mode: Mode | None = None
    """None: the run recorded none, so today's holds."""
    budgets: tuple[Budget, ...] = ()
    """Limits beside today's: of two, the lower one is reached first."""

    def mode_with(self, today: str) -> str:
        """The stricter of the recorded mode and today's. What is no mode is left to the gate's no."""
        if self.mode is None or today not in MODES:
            return today
        return next(mode for mode in MODES if mode in (self.mode, today))


def run_settings_of(run: Run | None) -> RunSettings:
    """The terms a run recorded; of a call outside any run, none."""
    return RunSettings() if run is None else RunSettings.model_validate(run.settings)
