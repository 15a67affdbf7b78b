"""Events in the life of a run, its steps, its calls and their approvals."""

from __future__ import annotations

from typing import Literal

from podium.core.decisions import FileVersion, TierTerm
from podium.core.model import EventBody, Json, UtcDatetime
from podium.core.work import Failure


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
    """The owner released the run at a checkpoint; any process may continue it."""

    type: Literal["run_parked"] = "run_parked"
    reason: str


class RunPinned(EventBody):
    """The run uses something that only this host has, such as a workspace."""

    type: Literal["run_pinned"] = "run_pinned"
    host: str


class RunUnpinned(EventBody):
    """The host that a run was pinned to is lost; any other host may continue it."""

    type: Literal["run_unpinned"] = "run_unpinned"
    host: str
    reason: str


class RunWaiting(EventBody):
    type: Literal["run_waiting"] = "run_waiting"
    signal: str
    deadline: UtcDatetime | None = None


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
    """The run continues with flow code that differs from the code it started with."""

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
    """An attempt at a step failed. `final` means the failure is the result of the step."""

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


class ToolRequested(EventBody):
    """A call was requested. Stored before it is performed."""

    type: Literal["tool_requested"] = "tool_requested"
    call: str
    tool: str
    arguments: dict[str, Json]
    digest: str
    tier: str
    rule: str
    reason: str
    approval_id: str | None = None
    observed: bool = False
    files: tuple[FileVersion, ...] = ()
    """Files that its command names, as they were; the digest covers their content."""


class ToolRefused(EventBody):
    """The gate denied the call, or asked a person."""

    type: Literal["tool_refused"] = "tool_refused"
    call: str
    tool: str
    arguments: dict[str, Json]
    effect: Literal["deny", "ask"]
    tier: str
    rule: str
    reason: str
    approval_id: str | None = None


class ToolCompleted(EventBody):
    type: Literal["tool_completed"] = "tool_completed"
    call: str
    tool: str
    result: Json = None
    seconds: float = 0.0
    receipt: int


class ToolFailed(EventBody):
    type: Literal["tool_failed"] = "tool_failed"
    call: str
    tool: str
    error: str
    result: Json = None
    """Its result despite the failure, such as a command's output."""
    seconds: float = 0.0
    receipt: int


class ToolInDoubt(EventBody):
    type: Literal["tool_in_doubt"] = "tool_in_doubt"
    call: str
    tool: str
    receipt: int | None = None


class ToolAbandoned(EventBody):
    type: Literal["tool_abandoned"] = "tool_abandoned"
    call: str
    tool: str
    receipt: int | None = None
    rolled_back: bool = False
    """Its workspace was reset to the start of the turn, which undid its effects."""


class ToolResolved(EventBody):
    """A person recorded whether a call in doubt happened."""

    type: Literal["tool_resolved"] = "tool_resolved"
    call: str
    by: str
    happened: bool


class ApprovalRequested(EventBody):
    type: Literal["approval_requested"] = "approval_requested"
    approval_id: str
    call: str
    tool: str
    summary: str
    digest: str
    tier: str
    arithmetic: tuple[TierTerm, ...] = ()
    approvers: tuple[str, ...] = ()
    deadline: UtcDatetime
    files: tuple[FileVersion, ...] = ()
    """Files that its command names or its write replaces, as they were; an approval covers their content."""
    diff: str = ""
    """Lines that a write removes from and adds to the file it replaces; redacted and bounded."""


class ApprovalGranted(EventBody):
    """A person approved. `complete` is False while more approvals are needed."""

    type: Literal["approval_granted"] = "approval_granted"
    approval_id: str
    by: str
    group: str = ""
    complete: bool = True
    said: str = ""
    authentication: str = ""
    """Proof of who answered. Empty: not recorded."""


class ApprovalRejected(EventBody):
    type: Literal["approval_rejected"] = "approval_rejected"
    approval_id: str
    by: str
    why: str = ""
    authentication: str = ""


class ApprovalExpired(EventBody):
    type: Literal["approval_expired"] = "approval_expired"
    approval_id: str
    why: str = ""
    """Reason when it was closed before its deadline, because its run had ended."""


class ApprovalConsumed(EventBody):
    type: Literal["approval_consumed"] = "approval_consumed"
    approval_id: str
    receipt: int
