"""State transitions of an approval, as pure functions.

    pending ──grant──► granted ──reserve──► reserved ──consume──► consumed
       │ (each of the chain in order)          │                     │
       ├──reject──► rejected                   └──release──► granted ◄──revive
       ├──expire──► expired  (also from granted)
       └──close───► expired, with a reason: its run ended first

Each step raises `NotPossibleNow` when the state does not allow it, so that whoever comes second
in a race is told, inside the transaction that decides the race.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from podium.core.approvals import IN_NAMESPACE, Approver
from podium.core.decisions import Approval, ApprovalStatus, Grant
from podium.core.errors import NotPossibleNow
from podium.core.model import EventBody
from podium.core.run_events import ApprovalExpired

APPROVAL_TEXT = re.compile(r"^\s*APPROVE:\s*(?P<id>[A-Za-z0-9_]+)\s*$", re.IGNORECASE)
"""The form of an approval typed by a person anywhere."""


def approval_named_in(text: str) -> str | None:
    """The id in `APPROVE: <id>`, or None when the text is something else."""
    match = APPROVAL_TEXT.match(text)
    return match["id"] if match else None


def approver_of(by: Approver | str) -> Approver:
    """Somebody by their proof, or by the word of a program of one's own."""
    return Approver(name=by) if isinstance(by, str) else by


def grant(
    approval: Approval,
    by: Approver | str,
    now: datetime,
    groups: Mapping[str, tuple[str, ...]] | None = None,
) -> Approval:
    """Record one person's yes. `groups` says who belongs to which group of approvers.

    Every yes of a chain comes from another person by another proof: two names behind one token, or behind the
    shared secret of a chat, are one person.
    """
    _still_open(approval, now)
    approver = approver_of(by)
    by = approver.name
    if any(_is_same_person(earlier, approver) for earlier in approval.grants):
        raise NotPossibleNow(
            f"{by!r} has already approved {approval.id}; the next approval must come from another person"
        )
    if approver.credential and any(
        earlier.credential == approver.credential for earlier in approval.grants
    ):
        raise NotPossibleNow(
            f"{approver.credential!r} has already approved {approval.id} under another name; the next approval needs "
            "the credential of another person"
        )
    if len(approval.approvers) > 1 and approver.credential.startswith(IN_NAMESPACE):
        raise NotPossibleNow(
            f"approval {approval.id} needs {len(approval.approvers)} people, and in a user namespace (such as in a "
            f"container) the operating system does not prove that this is {by!r}; sign in with `podium login`"
        )
    group = approval.approvers[len(approval.grants)] if approval.approvers else ""
    if group and by not in (groups or {}).get(group, ()):
        raise NotPossibleNow(
            f"approval {approval.id} waits for a member of {group!r}, and {by!r} is not one; "
            "members are listed under `approvers` in podium.yaml"
        )
    proof = approver.model_dump(exclude={"name"})
    grants = (*approval.grants, Grant(by=by, group=group, at=now, **proof))
    complete = len(grants) >= max(1, len(approval.approvers))
    status = ApprovalStatus.GRANTED if complete else ApprovalStatus.PENDING
    return approval.model_copy(update={"grants": grants, "status": status})


def _is_same_person(earlier: Grant, approver: Approver) -> bool:
    return _plain_name(earlier.by) == _plain_name(approver.name)


def _plain_name(name: str) -> str:
    """A name without what only looks different: `Ann` is `ann`."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


def reject(approval: Approval, by: Approver | str, now: datetime, why: str) -> Approval:
    """Record a no. It is final."""
    _still_open(approval, now)
    approver = approver_of(by)
    update = {"rejected_by": approver.name, "rejected_how": approver.authentication, "why": why}
    return approval.model_copy(update={"status": ApprovalStatus.REJECTED, **update})


def reserve(approval: Approval, call_key: str, digest: str, now: datetime) -> Approval:
    """Hold a granted approval for one call. Any other digest, or a late one, is refused."""
    if approval.status is not ApprovalStatus.GRANTED:
        raise NotPossibleNow(f"approval {approval.id} is {approval.status}, not granted")
    if approval.digest != digest:
        raise NotPossibleNow(f"approval {approval.id} is for a different call; any edit voids it")
    if approval.deadline <= now:
        raise NotPossibleNow(f"approval {approval.id} expired at {approval.deadline.isoformat()}")
    return approval.model_copy(update={"status": ApprovalStatus.RESERVED, "reserved_by": call_key})


def hold_plan(approval: Approval, now: datetime) -> Approval:
    """Hold a granted approval of a plan for the plan's run, from its first call to its last."""
    if approval.status is ApprovalStatus.RESERVED and approval.reserved_by == approval.run_id:
        return approval
    return reserve(approval, approval.run_id, approval.digest, now)


def consume(approval: Approval, call_key: str, receipt_number: int) -> Approval:
    """Use up a reserved approval, in the transaction that writes the receipt."""
    if approval.status is not ApprovalStatus.RESERVED or approval.reserved_by != call_key:
        raise NotPossibleNow(f"approval {approval.id} is not held by call {call_key}")
    return approval.model_copy(
        update={"status": ApprovalStatus.CONSUMED, "receipt_number": receipt_number}
    )


def release(approval: Approval, call_key: str) -> Approval:
    """Give a reserved approval back, when it is certain that the call did not happen."""
    if approval.status is not ApprovalStatus.RESERVED or approval.reserved_by != call_key:
        raise NotPossibleNow(f"approval {approval.id} is not held by call {call_key}")
    return approval.model_copy(update={"status": ApprovalStatus.GRANTED, "reserved_by": None})


def revive(approval: Approval, call_key: str) -> Approval:
    """Let a used approval be granted again, when all that its one call did was rolled back."""
    if approval.status is not ApprovalStatus.CONSUMED or approval.reserved_by != call_key:
        raise NotPossibleNow(f"approval {approval.id} was not used by call {call_key}")
    update = {"status": ApprovalStatus.GRANTED, "reserved_by": None, "receipt_number": None}
    return approval.model_copy(update=update)


def expire(approval: Approval, now: datetime) -> Approval | None:
    """The approval as expired, or None when it is not due."""
    open_still = approval.status in (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)
    if not open_still or approval.deadline > now:
        return None
    return approval.model_copy(update={"status": ApprovalStatus.EXPIRED})


class ApprovalRecord(Protocol):
    """The part of a transaction that an approval's end is written to."""

    def save_approval(self, approval: Approval) -> None: ...
    def append(self, run_id: str, body: EventBody) -> int: ...


def store_expired(tx: ApprovalRecord, approval: Approval, now: datetime) -> Approval:
    """The approval, stored as expired when it is due; else the very one that was given."""
    expired = expire(approval, now)
    if expired is None:
        return approval
    tx.save_approval(expired)
    tx.append(expired.run_id, ApprovalExpired(approval_id=expired.id))
    return expired


def close(tx: ApprovalRecord, approval: Approval, why: str) -> Approval:
    """Store a pending approval as expired before its deadline, because `why`."""
    closed = approval.model_copy(update={"status": ApprovalStatus.EXPIRED, "why": why})
    tx.save_approval(closed)
    tx.append(closed.run_id, ApprovalExpired(approval_id=closed.id, why=why))
    return closed


def _still_open(approval: Approval, now: datetime) -> None:
    if approval.status is not ApprovalStatus.PENDING:
        raise NotPossibleNow(f"approval {approval.id} is {approval.status} already")
    if approval.deadline <= now:
        raise NotPossibleNow(
            f"approval {approval.id} expired at {approval.deadline.isoformat()}; "
            "resume the run to be asked again"
        )
