"""A question to a person about one call or plan. Its life stands in `approving`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from podium.core.calls import Tier, TierTerm
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime


class Authentication(StrEnum):
    """Proof of who answers. Empty in records: it was not recorded, as before this was known."""

    OS_USER = "os_user"
    """The operating-system user of the process at the command line."""
    TOKEN = "token"  # noqa: S105 — a word of the record
    """A personal token of the console: by `podium login`, or sent with a request."""
    CONSOLE_SESSION = "console_session"
    """A browser's session that began with a personal token."""
    CARD_LINK = "card_link"
    """The link of a notice, for one card."""
    CHAT = "chat"
    """A sender of a chat, as its service proved."""


IN_NAMESPACE = "os:namespace"
"""Beginning of the credential of an operating-system user in a user namespace."""


class Approver(FrozenModel):
    """Somebody who answers an approval, and how it was proved that it is them."""

    name: str
    authentication: str = ""
    """An `Authentication`. Empty: by a program of one's own, which vouches for the name itself."""
    credential: str = ""
    """The credential, without its secret, such as `token:1c0ffee1` or `os:1000`. Empty: nothing to compare."""
    account: str = ""
    """The operating-system user of the process at a command line; empty for all who came from elsewhere."""

    @property
    def how(self) -> str:
        """The proof in words, such as `token 1c0ffee1 in account ann`."""
        return authentication_text(self.authentication, self.credential, self.account)


class Grant(FrozenModel):
    """The approval of one person."""

    by: str
    group: str = ""
    at: UtcDatetime
    authentication: str = ""
    """Proof of who said it, as an `Authentication`. Empty: not recorded."""
    credential: str = ""
    """The credential; see `Approver`."""
    account: str = ""

    @property
    def how(self) -> str:
        """The proof in words; empty where none was recorded."""
        return authentication_text(self.authentication, self.credential, self.account)


def authentication_text(authentication: str, credential: str, account: str) -> str:
    """Say how somebody was authenticated, for people."""
    if authentication != Authentication.TOKEN:
        return authentication.replace("_", " ")
    inside = f" in account {account}" if account else ""
    return f"{credential.replace(':', ' ') or authentication}{inside}"


class ApprovalStatus(StrEnum):
    """Status of an approval. Only `granted` lets a call pass, once."""

    PENDING = "pending"
    GRANTED = "granted"
    RESERVED = "reserved"
    CONSUMED = "consumed"
    REJECTED = "rejected"
    EXPIRED = "expired"


class Approval(FrozenModel):
    """A question to a person about exactly one digest, answered at most once, before its deadline."""

    id: NonEmpty
    run_id: str
    call_key: str
    digest: str
    tool: str
    summary: str
    """Description of the call, in a line or more, without secrets."""
    arguments: dict[str, Json] = Field(default_factory=dict)
    tier: Tier
    arithmetic: tuple[TierTerm, ...] = ()
    reason: str = ""
    status: ApprovalStatus = ApprovalStatus.PENDING
    approvers: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    requested_at: UtcDatetime
    deadline: UtcDatetime
    reserved_by: str | None = None
    """Key of the call that holds it between request and settle."""
    receipt_number: int | None = None
    rejected_by: str = ""
    rejected_how: str = ""
    """Authentication of whoever rejected it, as an `Authentication`. Empty: not recorded."""
    why: str = ""
    """Reason of the rejection; of an expired one, why it was closed before its deadline."""
    edited_into: str = ""
    """The run that asks about what a person made of it; it was stored with the rejection."""
    said: str = ""
    """Comment of people on their approval; the answer, when a question was asked."""
    diff: str = ""
    """Unified diff of the file that a write replaces, redacted and bounded. The digest holds the old content's hash."""
    plan_hash: str = ""
    """Set for a yes to a whole plan: it is held by the plan's run, and used up by the last of its calls."""
    plan_calls: int = 0
    """Number of calls of the plan."""
