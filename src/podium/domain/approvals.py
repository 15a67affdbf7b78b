"""A question to a person about one call or plan. Its life stands in `approving`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from podium.domain.model import Json, Moment, NonEmpty, Noun
from podium.domain.tiers import Tier, TierTerm


class Grant(Noun):
    """One person's yes."""

    by: str
    group: str = ""
    at: Moment


class ApprovalStatus(StrEnum):
    """An approval's life. Only `granted` lets a call pass, once."""

    PENDING = "pending"
    GRANTED = "granted"
    RESERVED = "reserved"
    CONSUMED = "consumed"
    REJECTED = "rejected"
    EXPIRED = "expired"


class Approval(Noun):
    """A question to a person about exactly one digest, answered at most once, before its deadline."""

    id: NonEmpty
    run_id: str
    call_key: str
    digest: str
    tool: str
    summary: str
    """What will happen, in a line or more, without secrets."""
    arguments: dict[str, Json] = Field(default_factory=dict)
    tier: Tier
    arithmetic: tuple[TierTerm, ...] = ()
    reason: str = ""
    status: ApprovalStatus = ApprovalStatus.PENDING
    approvers: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    requested_at: Moment
    deadline: Moment
    reserved_by: str | None = None
    """Key of the call that holds it between request and settle."""
    receipt_number: int | None = None
    rejected_by: str = ""
    why: str = ""
    """Why it was rejected; of an expired one, why it was closed before its deadline."""
    edited_into: str = ""
    """The run that asks about what a person made of it; it was stored with the rejection."""
    said: str = ""
    """What people said with their yes; the answer, when a question was asked."""
    diff: str = ""
    """Unified diff of the file that a write replaces, redacted and bounded. The digest holds the old content's hash."""
    plan_hash: str = ""
    """Set for a yes to a whole plan: it is held by the plan's run, and used up by the last of its calls."""
    plan_calls: int = 0
    """How many calls the plan has."""
