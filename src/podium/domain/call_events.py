"""The life of a call at the gate, and of the approvals that it needs."""

from __future__ import annotations

from typing import Literal

from podium.domain.event_body import EventBody
from podium.domain.gating import FileSeen, TierTerm
from podium.domain.model import Json, Moment


class ToolRequested(EventBody):
    """Durable before the act."""

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
    files: tuple[FileSeen, ...] = ()
    """Files that its command names, as they were: the digest covers their content."""


class ToolRefused(EventBody):
    """The gate said deny, or ask and a person was asked."""

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
    """What it gave all the same, such as a command's output."""
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
    """Its workspace was put back to where the turn began, and all that it did with it."""


class ToolResolved(EventBody):
    """A person said what became of a call in doubt."""

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
    deadline: Moment
    files: tuple[FileSeen, ...] = ()
    """Files that its command names or its write replaces, as they were: a yes is one to their content."""
    diff: str = ""
    """Lines that a write removes from and adds to the file it replaces; redacted and bounded."""


class ApprovalGranted(EventBody):
    """One yes. `complete` is False while others of the chain are still to come."""

    type: Literal["approval_granted"] = "approval_granted"
    approval_id: str
    by: str
    group: str = ""
    complete: bool = True
    said: str = ""
    authentication: str = ""
    """How it was proved who said it. Empty: not recorded."""


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
    """Set when it was closed before its deadline: its run had ended."""


class ApprovalConsumed(EventBody):
    type: Literal["approval_consumed"] = "approval_consumed"
    approval_id: str
    receipt: int
