"""Judgement: call, tier, decision, budget, usage, quota, approval."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Literal

from pydantic import Field

from podium.domain.launching import NetworkPolicy
from podium.domain.model import Json, Moment, NonEmpty, Noun


class Tier(IntEnum):
    """Risk, computed and never self-reported."""

    T0 = 0
    """Reads and analysis."""
    T1 = 1
    """Local artefacts that are easily undone."""
    T2 = 2
    """Changes to a repository, a schema or shared state."""
    T3 = 3
    """Words or effects that leave the machine."""
    T4 = 4
    """What cannot be taken back."""

    def __str__(self) -> str:
        return self.name


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
    """What it would reverse was reversed, or is being reversed."""
    HOOK_DOOR = "hook-door"
    """The hook door could not make a call of what it was told."""
    CLOSED_DOOR = "closed-door"
    """A door that lets nothing pass."""


class Access(StrEnum):
    """What a call wants to do with a path."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"


class PathUse(Noun):
    """A path a call touches, after symlinks and `..` are resolved."""

    argument: str
    given: str
    real: str
    """Absolute real path; for a path that does not exist yet, of its nearest real parent plus the rest."""
    access: Access


ZoneKind = Literal["safe", "forbidden", "read-only", "plain"]


class Zone(Noun):
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
        """Whether it forbids or raises something, rather than only giving a place a name."""
        tiered = self.read_tier is not None or self.write_tier is not None
        return self.kind in ("forbidden", "read-only") or (self.kind == "plain" and tiered)


class PathArgument(Noun):
    """Which argument of a tool is a path, and what is done with it."""

    name: NonEmpty
    access: Access
    glob_argument: str | None = None
    """The tool reads the files beneath the path that this argument names, all without it."""


class FileSeen(Noun):
    """A file of the workspace that a command names, as it was when the call was made."""

    path: str
    """Relative to the workspace."""
    sha256: str
    """Of its content; of its first megabyte, size and time of change when it is larger."""


class ToolSpec(Noun):
    """What the registry knows of a tool. The handler is not part of it."""

    name: NonEmpty
    description: str = ""
    input_schema: dict[str, Json] = Field(default_factory=lambda: {"type": "object"})
    tier: Tier
    receipt_fields: tuple[str, ...] = ()
    """Fields of the result that go on the receipt."""
    idempotent: bool = False
    """Doing it twice under one key is the same as once; a crash in between is then no doubt."""
    timeout_seconds: float = 60.0
    undo: str | None = None
    """Name of the tool that reverses this one, if any."""
    paths: tuple[PathArgument, ...] = ()
    command_argument: str | None = None
    """The argument that holds an argv list or a shell line, if any."""
    observed_only: bool = False
    """True: agents have it themselves, Podium judges and records it and cannot perform it."""
    approvals: tuple[str, ...] = ()
    """Groups that must approve, in order. Empty: one approval by anybody allowed to."""
    tier_argument: str | None = None
    """The argument that says what was computed of something it hands on, such as the tier of a work order."""
    in_dry_run: Literal["nothing", "ask", "act"] = "nothing"
    """What a dry run does with it: nothing; asks people, records their answer and does nothing; or does it,
    because all it makes is for people to review."""

    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))


class PlanPlace(Noun):
    """Where a call stands in the plan that its run is for."""

    step: int
    """From 1."""
    approval_id: str | None = None
    """The approval that released the plan, if it needed one."""
    undoes: str = ""
    """The receipt that this call reverses, as `RUN#NUMBER`."""
    planned_at: Moment | None = None
    """When the plan was shown: what is changed later was not what people said yes to."""


class Call(Noun):
    """A wish to use a tool, normalised: arguments complete, paths real, command split."""

    run_id: str
    step_key: str
    index: int
    """How many calls with the same tool and arguments came before it in this step."""
    tool: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)
    paths: tuple[PathUse, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    """The simple commands the call would start, each as argv. Empty when it starts none."""
    undecidable: str = ""
    """Why the command line could not be split into simple commands; empty when it could."""
    files: tuple[FileSeen, ...] = ()
    """Files of the workspace that the commands name."""
    role: str = ""
    agent: str = ""
    provenance: tuple[str, ...] = ()
    """Untrusted sources that led to this call."""
    observed: bool = False
    """True: a CLI performs it in its workspace; False: Podium performs it."""
    root: str = ""
    """Real path of the workspace it is made in. Empty: that of the door it comes to."""
    plan: PlanPlace | None = None
    """Set for a call of a plan: a yes to the plan is a yes to it, if the door finds it there."""

    @property
    def key(self) -> str:
        """The idempotency key: run : step : call.

        It names what is wished for and not when it was: an agent that is asked again after a crash
        may word its calls in another order, and each still finds its own record.
        """
        return f"{self.run_id}:{self.step_key}:{self.fingerprint}.{self.index}"

    @cached_property
    def fingerprint(self) -> str:
        """Short digest of tool and arguments."""
        return call_fingerprint(self.tool, self.arguments)

    def digest(self, spec: ToolSpec | None = None, spec_digest: str = "") -> str:
        """What an approval is bound to: the tool as registered, the arguments, what they touch.

        The content of files that a command names is part of it. `spec_digest` is the spec's own, for
        who knows it already.
        """
        if not self.files:
            return self.meaning(spec, spec_digest)
        files = [file.model_dump(mode="json") for file in self.files]
        return digest_of({**self._meant(spec, spec_digest), "files": files})

    def meaning(self, spec: ToolSpec | None = None, spec_digest: str = "") -> str:
        """The digest without the content of files: a command that was done may have changed those."""
        return digest_of(self._meant(spec, spec_digest))

    def _meant(self, spec: ToolSpec | None, spec_digest: str) -> dict[str, Json]:
        return {
            "tool": self.tool,
            "spec": spec_digest or (spec.digest() if spec else ""),
            "arguments": self.arguments,
            "paths": [path.model_dump(mode="json") for path in self.paths],
            "commands": self.commands,
            "run": self.run_id,
            "root": self.root,
        }


class TierTerm(Noun):
    """One line of the tier's arithmetic: the tier is the highest of them."""

    tier: Tier
    because: str


class Decision(Noun):
    """The gate's answer, with the rule that gave it."""

    effect: Effect
    rule: str
    reason: str
    tier: Tier
    arithmetic: tuple[TierTerm, ...] = ()
    approvers: tuple[str, ...] = ()
    """For `ask`: the groups that must approve, in order."""


class Usage(Noun):
    """What something cost. Figures that are not known are zero and `complete` is False."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    turns: int = 0
    seconds: float = 0.0
    complete: bool = True

    def plus(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
            turns=self.turns + other.turns,
            seconds=self.seconds + other.seconds,
            complete=self.complete and other.complete,
        )


def spent_since(before: Usage, now: Usage) -> Usage:
    """The difference of two sums."""
    return Usage(
        input_tokens=now.input_tokens - before.input_tokens,
        output_tokens=now.output_tokens - before.output_tokens,
        usd=now.usd - before.usd,
        turns=now.turns - before.turns,
        seconds=now.seconds - before.seconds,
        complete=now.complete,
    )


class Budget(Noun):
    """A limit on usage over a scope. None means no limit of that kind."""

    scope: Literal["call", "step", "run", "day"]
    usd: float | None = None
    tokens: int | None = None
    turns: int | None = None
    seconds: float | None = None


class BudgetState(Noun):
    """A budget and what has been used of it, as read from the store."""

    budget: Budget
    used: Usage = Usage()


class Quota(Noun):
    """How often something may be done within a window, over all processes."""

    name: NonEmpty
    limit: int
    seconds: float


class QuotaState(Noun):
    """A quota and how often it was used within its window."""

    quota: Quota
    used: int


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
    said: str = ""
    """What people said with their yes; the answer, when a question was asked."""
    plan_hash: str = ""
    """Set for a yes to a whole plan: it is held by the plan's run, and used up by the last of its calls."""
    plan_calls: int = 0
    """How many calls the plan has."""


class GateContext(Noun):
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
    network: NetworkPolicy = "open"
    """With `confined`: what its processes may connect to, and `hosts` which ones by name."""
    hosts: tuple[str, ...] = ()
    budgets: tuple[BudgetState, ...] = ()
    quotas: tuple[QuotaState, ...] = ()
    approval: Approval | None = None
    """A granted approval for this call's digest, if there is one."""
    now: Moment


class CallStatus(StrEnum):
    """A call's life after the gate let it pass (or not)."""

    REQUESTED = "requested"
    COMPLETED = "completed"
    FAILED = "failed"
    REFUSED = "refused"
    IN_DOUBT = "in_doubt"
    ABANDONED = "abandoned"


class Outcome(Noun):
    """How a performed call ended."""

    ok: bool
    result: Json = None
    error: str = ""
    duration_seconds: float = 0.0
    usage: Usage = Usage()
    unknown: bool = False
    """Nobody can say whether it did what it was asked for: it must not be asked for again under another key."""


class CallRecord(Noun):
    """What is kept of a call, by its idempotency key."""

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
    agent: str = ""
    """Who wished for it, and in which part."""
    role: str = ""
    approval_id: str | None = None
    undoes: str = ""
    """The receipt that it reverses, as `RUN#NUMBER`."""
    outcome: Outcome | None = None
    receipt_number: int | None = None
    requested_at: Moment
    settled_at: Moment | None = None


class Permit(Noun):
    """Leave to act once, for exactly this call."""

    call: Call
    digest: str
    decision: Decision
    approval_id: str | None = None
    settled: Outcome | None = None
    """The outcome when this very call was settled before: do not act again."""
    said: str = ""
    """What people said with the yes that this rests on."""


class Refusal(Noun):
    """No, or not yet. `say` is what the agent is told."""

    call: Call
    decision: Decision
    say: str
    approval_id: str | None = None
    """Set when a person was asked: end the turn and wait for this approval."""
    deadline: Moment | None = None


class DoorAnswer(Noun):
    """What a turn's door says to a wish. With deny and ask nothing ran and nothing may."""

    decision: Effect
    say: str = ""
    """With deny and ask: the words for the agent."""
    call: str = ""
    """With allow: the key of the call."""
    outcome: Outcome | None = None
    """How the call ended, when Podium performed it."""
    approval_id: str | None = None

    @property
    def allowed(self) -> bool:
        return self.decision is Effect.ALLOW


class Receipt(Noun):
    """Proof that a call was performed: chained per run, sealed with a key outside the database."""

    run_id: str
    number: int
    call_key: str
    tool: str
    digest: str
    status: Literal["completed", "failed", "in_doubt", "abandoned"]
    tier: Tier
    rule: str
    agent: str = ""
    """Whose wish it was; empty when no agent's."""
    role: str = ""
    approval_id: str | None = None
    approved_by: tuple[str, ...] = ()
    fields: dict[str, Json] = Field(default_factory=dict)
    """The result's `receipt_fields`."""
    error: str = ""
    usage: Usage = Usage()
    undo: dict[str, Json] | None = None
    """Call that would reverse this one, if the tool can say."""
    requested_at: Moment
    settled_at: Moment
    previous: str = ""
    """Seal of the receipt before it; empty for the first."""
    seal: str = ""


def undo_counter(name: str) -> str:
    """The counter that is above zero from the moment that a reversal of `RUN#NUMBER` is permitted."""
    return f"undo:{name}"


def undone_by(receipts: Iterable[Receipt], name: str) -> Receipt | None:
    """The receipt that proves the reversal of the one called `RUN#NUMBER`, if there is one."""
    return next(
        (
            each
            for each in receipts
            if each.status == "completed" and each.fields.get("undoes") == name
        ),
        None,
    )


def call_fingerprint(tool: str, arguments: dict[str, Json]) -> str:
    """Short digest of what is wished for."""
    return digest_of([tool, arguments]).removeprefix("sha256:")[:12]


# Made once: `json.dumps` would make one for every value.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Json) -> str:
    """One text for one value: keys sorted, no blanks, no NaN."""
    return _CANONICAL.encode(value)


def digest_of(value: Json) -> str:
    """SHA-256 of the canonical JSON, as `sha256:…`."""
    return "sha256:" + hashlib.sha256(canonical_json(value).encode()).hexdigest()
