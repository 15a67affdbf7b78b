"""The life of a run: its steps, signals and children."""

from __future__ import annotations

from typing import Literal

from podium.domain.event_body import EventBody
from podium.domain.model import Json, Moment
from podium.domain.work import Failure


class RunQueued(EventBody):
    type: Literal["run_queued"] = "run_queued"
    flow: str
    flow_version: int
    task: str = ""
    queue: str | None = None
    parent_id: str | None = None


class RunStarted(EventBody):
    """A process took the run. `fence` above 1 means it is not the first."""

    type: Literal["run_started"] = "run_started"
    owner: str
    fence: int


class RunParked(EventBody):
    """The owner let go of the run at a checkpoint; any process may take it on."""

    type: Literal["run_parked"] = "run_parked"
    reason: str


class RunPinned(EventBody):
    """The run has begun something that only this host has, such as a workspace."""

    type: Literal["run_pinned"] = "run_pinned"
    host: str


class RunUnpinned(EventBody):
    """The host that a run was pinned to is lost; any other may go on with it."""

    type: Literal["run_unpinned"] = "run_unpinned"
    host: str
    reason: str


class RunWaiting(EventBody):
    type: Literal["run_waiting"] = "run_waiting"
    signal: str
    deadline: Moment | None = None


class RunSucceeded(EventBody):
    type: Literal["run_succeeded"] = "run_succeeded"
    result: Json = None


class RunFailed(EventBody):
    type: Literal["run_failed"] = "run_failed"
    failure: Failure


class RunNeededHuman(EventBody):
    type: Literal["run_needed_human"] = "run_needed_human"
    reason: str


class RunCancelRequested(EventBody):
    type: Literal["run_cancel_requested"] = "run_cancel_requested"
    by: str
    why: str = ""


class RunCancelled(EventBody):
    type: Literal["run_cancelled"] = "run_cancelled"


class RunRetried(EventBody):
    type: Literal["run_retried"] = "run_retried"
    by: str
    discarded_steps: tuple[str, ...] = ()


class FlowCodeChanged(EventBody):
    """The run goes on under flow code whose source differs from when it started."""

    type: Literal["flow_code_changed"] = "flow_code_changed"
    recorded: str
    current: str


class StepStarted(EventBody):
    type: Literal["step_started"] = "step_started"
    step: str
    attempt: int = 1


class StepCompleted(EventBody):
    type: Literal["step_completed"] = "step_completed"
    step: str
    seconds: float = 0.0


class StepBroke(EventBody):
    """An attempt at a step raised. `final` means the failure is the step's record."""

    type: Literal["step_broke"] = "step_broke"
    step: str
    attempt: int
    failure: Failure
    final: bool


class SignalSent(EventBody):
    type: Literal["signal_sent"] = "signal_sent"
    name: str
    by: str


class SignalReceived(EventBody):
    type: Literal["signal_received"] = "signal_received"
    name: str
    step: str


class WaitExpired(EventBody):
    type: Literal["wait_expired"] = "wait_expired"
    name: str
    step: str


class ChildStarted(EventBody):
    type: Literal["child_started"] = "child_started"
    child_id: str
    flow: str
