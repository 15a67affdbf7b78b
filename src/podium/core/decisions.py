"""Decisions of the gate, the context they are made in, records of calls, and the names of budget counters.

Whoever records usage, of a tool or of an agent's turn, counts under these names; whoever judges
a budget reads them. A day is a day in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import Field

from podium.core.approvals import Approval, ApprovalStatus, Grant
from podium.core.budgets import Budget, BudgetState, Quota, QuotaState, Usage, spent_since
from podium.core.calls import (
    Access,
    Call,
    FileVersion,
    PathArgument,
    PathUse,
    PlanPosition,
    Receipt,
    Tier,
    TierTerm,
    ToolSpec,
    call_fingerprint,
    undo_counter,
    undone_by,
)
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime, canonical_json, digest_of
from podium.core.processes import NetworkPolicy

__all__ = [
    "Access",
    "Approval",
    "ApprovalStatus",
    "Budget",
    "BudgetState",
    "BuiltInRule",
    "Call",
    "CallOutcome",
    "CallRecord",
    "CallStatus",
    "Decision",
    "Effect",
    "FileVersion",
    "GateContext",
    "Grant",
    "HookAnswer",
    "PathArgument",
    "PathUse",
    "Permit",
    "PlanPosition",
    "Quota",
    "QuotaState",
    "Receipt",
    "Refusal",
    "Tier",
    "TierTerm",
    "ToolSpec",
    "Usage",
    "Zone",
    "ZoneKind",
    "call_fingerprint",
    "canonical_json",
    "digest_of",
    "spent_since",
    "undo_counter",
    "undone_by",
]


class Effect(StrEnum):
    """The three answers of the gate."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class BuiltInRule(StrEnum):
    """Names under which Podium itself says no. No rule of a policy may take one of them."""

    GATE_ERROR = "gate-error"
    NO_RULE = "no-rule"
    UNKNOWN_TOOL = "unknown-tool"
    UNKNOWN_MODE = "unknown-mode"
    UNDECIDABLE_COMMAND = "undecidable-command"
    PRIVILEGE = "privilege"
    SHELL_INDIRECTION = "shell-indirection"
    DANGEROUS_VARIABLE = "dangerous-variable"
    GIT_FIREWALL = "git-firewall"
    DESTRUCTIVE_COMMAND = "destructive-command"
    OUTSIDE_WORKSPACE = "outside-workspace"
    UNREACHABLE_HOST = "unreachable-host"
    """The network of a confined run does not lead there."""
    CALL_CHANGED = "call-changed"
    """Done before, and what it names has changed since."""
    UNDONE_ALREADY = "undone-already"
    """Marks a reversal of something that was reversed already, or is being reversed."""
    HOOK_DOOR = "hook-door"
    """The hook door could not make a call of what it was told."""
    CLOSED_DOOR = "closed-door"
    """A door that lets nothing pass."""


ZoneKind = Literal["safe", "forbidden", "read-only", "plain"]


class Zone(FrozenModel):
    """A place with a name: calls that touch it are judged by it."""

    name: NonEmpty
    paths: tuple[str, ...]
    """Globs from the workspace on, or absolute. Each covers all beneath it."""
    but_not: tuple[str, ...] = ()
    """Globs of places among these that are not meant."""
    kind: ZoneKind = "plain"
    read_tier: Tier | None = None
    """Reading in it is at least of this tier."""
    write_tier: Tier | None = None

    @property
    def guards(self) -> bool:
        """Tell whether it forbids or raises something, rather than only giving a place a name."""
        tiered = self.read_tier is not None or self.write_tier is not None
        return self.kind in ("forbidden", "read-only") or (self.kind == "plain" and tiered)


class Decision(FrozenModel):
    """The gate's answer, with the rule that gave it."""

    effect: Effect
    rule: str
    reason: str
    tier: Tier
    arithmetic: tuple[TierTerm, ...] = ()
    approvers: tuple[str, ...] = ()
    """For `ask`: the groups that must approve, in order."""


class GateContext(FrozenModel):
    """The snapshot that `decide` judges a call in. Nothing is read beyond it."""

    tool: ToolSpec | None
    """None: the registry does not know it."""
    mode: str = "supervised"
    attended: bool = False
    """A person is at the door right now."""
    root: str = ""
    """Real path of the workspace."""
    confined: bool = False
    """The kernel keeps what the call starts to the workspace and a git directory of its own."""
    holds_zones: bool = False
    """With `confined`: places with plain names that zones close can only be read, whatever the words of a command say."""
    undoable: bool = True
    """With `confined`: what its processes remove can be brought back."""
    network: NetworkPolicy = "open"
    """With `confined`: what its processes may connect to, and `hosts` which ones by name."""
    hosts: tuple[str, ...] = ()
    budgets: tuple[BudgetState, ...] = ()
    quotas: tuple[QuotaState, ...] = ()
    approval: Approval | None = None
    """A granted approval for this call's digest, if there is one."""
    now: UtcDatetime


class CallStatus(StrEnum):
    """Status of a call after the gate's decision."""

    REQUESTED = "requested"
    COMPLETED = "completed"
    FAILED = "failed"
    REFUSED = "refused"
    IN_DOUBT = "in_doubt"
    ABANDONED = "abandoned"


class CallOutcome(FrozenModel):
    """Outcome of a performed call."""

    ok: bool
    result: Json = None
    error: str = ""
    duration_seconds: float = 0.0
    usage: Usage = Usage()
    unknown: bool = False
    """Nobody can say whether it did what it was asked for: it must not be asked for again under another key."""


class CallRecord(FrozenModel):
    """Record of a call, by its idempotency key."""

    key: str
    run_id: str
    step_key: str
    tool: str
    digest: str
    meaning: str = ""
    """The digest without the content of files that the command names. Empty: it names none."""
    status: CallStatus
    decision: Decision
    arguments: dict[str, Json] = Field(default_factory=dict)
    observed: bool = False
    disposable: bool = False
    """All that it can change lies in a workspace that can be rolled back, and the kernel held it there."""
    agent: str = ""
    """The agent that asked for it, and its role."""
    role: str = ""
    approval_id: str | None = None
    undoes: str = ""
    """The receipt that it reverses, as `RUN#NUMBER`."""
    outcome: CallOutcome | None = None
    receipt_number: int | None = None
    requested_at: UtcDatetime
    settled_at: UtcDatetime | None = None


class Permit(FrozenModel):
    """Leave to act once, for exactly this call."""

    call: Call
    digest: str
    decision: Decision
    approval_id: str | None = None
    settled: CallOutcome | None = None
    """The outcome when this very call was settled before: do not act again."""
    said: str = ""
    """Comment of people on the approval that this rests on."""


class Refusal(FrozenModel):
    """No, or not yet. `say` is what the agent is told."""

    call: Call
    decision: Decision
    say: str
    approval_id: str | None = None
    """Set when a person was asked: end the turn and wait for this approval."""
    deadline: UtcDatetime | None = None


class HookAnswer(FrozenModel):
    """Answer of a turn's hook server. With deny and ask nothing ran and nothing may."""

    decision: Effect
    say: str = ""
    """With deny and ask: the words for the agent."""
    call: str = ""
    """With allow: the key of the call."""
    outcome: CallOutcome | None = None
    """Outcome of the call, when Podium performed it."""
    approval_id: str | None = None
    mistake: bool = False
    """With deny: there is no such call. Nobody forbids anything; written rightly it would be judged."""

    @property
    def allowed(self) -> bool:
        return self.decision is Effect.ALLOW


MEASURES = ("input_tokens", "output_tokens", "usd", "turns", "seconds")
"""The figures of `Usage` that are counted."""

CountedScope = Literal["step", "run", "day"]


class UsageSums(NamedTuple):
    """One record of usage, as sums over many of them need it."""

    position: int
    at: datetime
    flow: str
    source: str
    """`agent:NAME` or `tool:NAME`."""
    usd: float
    tokens: int
    complete: bool
    """True if all of its figures are known."""


_SCOPES: tuple[CountedScope, ...] = ("step", "run", "day")


def usage_counter(
    measure: str, scope: CountedScope, run_id: str, step_key: str, at: datetime
) -> str:
    """Name of one counter, such as `usd:run:run_…` or `turns:day:2031-05-04`."""
    if scope == "day":
        return f"{measure}:day:{at.date().isoformat()}"
    if scope == "run":
        return f"{measure}:run:{run_id}"
    return f"{measure}:step:{run_id}:{step_key}"


def usage_counted(
    counted: Callable[[str], float], scope: CountedScope, run_id: str, step_key: str, at: datetime
) -> Usage:
    """Usage of a scope; `counted` gives the sum of a counter."""
    figures = {
        measure: counted(usage_counter(measure, scope, run_id, step_key, at))
        for measure in MEASURES
    }
    return Usage.model_validate(figures)


def counts_of(
    usage: Usage, run_id: str, step_key: str, at: datetime
) -> Iterator[tuple[str, float]]:
    """Counter names and what to add to each; figures that are zero are left out."""
    for measure in MEASURES:
        amount = float(getattr(usage, measure))
        if amount:
            for scope in _SCOPES:
                yield usage_counter(measure, scope, run_id, step_key, at), amount
