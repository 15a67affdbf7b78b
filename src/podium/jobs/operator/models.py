"""Models of the operator, one per layer: reading, classification, plan, gated plan, answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, ValidationError

from podium.core.approvals import Approver
from podium.core.decisions import Grant, TierTerm, Usage, digest_of
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime
from podium.core.packs import Estimate, TierName
from podium.core.plan_approval import (
    ApprovedCall,
    Outgoing,
    PlanChange,
    PlannedCall,
    PlanQuestion,
    SqlQuery,
    UngroundedArgument,
)


class OperatorMode(StrEnum):
    """Stage up to which a message is processed."""

    ANALYZE = "analyze"
    PLAN = "plan"
    ENQUEUE = "enqueue"
    ENQUEUE_AND_WAIT = "enqueue_and_wait"
    EXECUTE = "execute"

    @property
    def acts(self) -> bool:
        return self not in (OperatorMode.ANALYZE, OperatorMode.PLAN)


class Intent(StrEnum):
    """Decision on a message."""

    EXECUTE = "execute"
    REFUSE = "refuse"
    CLARIFY = "clarify"


class Urgency(StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    CRITICAL = "critical"


class Directive(StrEnum):
    """The prime directives, highest first. A request that conflicts with one is refused."""

    SAFETY = "safety_confidentiality_legal"
    CONTRACT = "contract_correctness"
    CONTINUITY = "operational_continuity"
    REVENUE = "revenue_flow"
    BRAND = "brand_integrity"
    USER_INTENT = "user_intent_and_speed"


class RecordRef(FrozenModel):
    """A record of a pack, as a conversation remembers it."""

    kind: NonEmpty
    id: NonEmpty
    label: str = ""
    """Text of the record itself, for people: untrusted, and never read as a message."""


class ResolvedRecord(RecordRef):
    """A record that fills an argument which the message names by other words, or not at all."""

    field: NonEmpty
    value: Json
    """The argument: the record's id, or a value that the record gives."""


class RecordMention(FrozenModel):
    """Part of a message that names records."""

    start: int
    end: int
    text: str
    records: tuple[RecordRef, ...]
    """Those that it may name."""
    reach: tuple[str, ...] = ()
    """Kinds of values that these lead to, such as `id:job` and `phone`."""


class Message(FrozenModel):
    """Message to the operator, with its context."""

    text: str
    context: dict[str, Json] = Field(default_factory=dict)
    now: UtcDatetime
    """Local time, for words such as `tomorrow`."""
    provenance: tuple[str, ...] = ()
    """Untrusted sources of the text, when no person sent it."""
    full_text: str = ""
    """All that the person said of it, when a conversation went on about it. Empty: `text`."""
    about: str = ""
    """Words that name the records, in place of those of the text: `same for Sarah`."""
    focus: tuple[RecordRef, ...] = ()
    """Records that the conversation was about, the newest first."""
    latest: int = 0
    """How many of these the last message was about."""
    shown: tuple[RecordRef, ...] = ()
    """The list of records that was shown last, in its order."""
    mentions: tuple[RecordMention, ...] = ()
    """Records that its words name."""
    names: tuple[str, ...] = ()
    """Names of people that records have, such as those who do the work."""

    @property
    def shown_text(self) -> str:
        return self.full_text or self.text


class ToolIntent(FrozenModel):
    """Tool or skill that a message asks for, with the arguments found for it."""

    tool: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)
    ungrounded: tuple[UngroundedArgument, ...] = ()
    """Set by judgement alone; a classifier's claim is ignored."""
    records: tuple[ResolvedRecord, ...] = ()
    """Set by resolution alone; a classifier's claim is ignored."""
    source: str = Field(default="", exclude=True)
    """The part of the message that asks for it, as far as the classifier can tell."""


class Conflict(FrozenModel):
    """A directive that a message violates."""

    directive: Directive
    because: NonEmpty
    severity: Literal["blocking"] = "blocking"


class Reading(FrozenModel):
    """Classifier's reading of a message. Nothing in it is believed before Podium has checked it."""

    intent: Intent
    domain: str = "system"
    urgency: Urgency = Urgency.NORMAL
    calls: tuple[ToolIntent, ...] = ()
    """In the order of the message."""
    confidence: float = Field(default=0.0, ge=0, le=1)
    reasoning: str = ""
    question: str = ""
    """With `clarify`: a question that one answer settles."""
    candidates: tuple[str, ...] = ()
    """With `clarify` and `refuse`: tools that may have been meant."""
    not_used: tuple[str, ...] = ()
    """Parts of the message that no call uses."""


class IntentClassification(FrozenModel):
    """Layer 1's answer: a reading checked against the registry and the directives."""

    classification_id: NonEmpty
    intent: Intent
    domain: str
    urgency: Urgency
    tool_candidates: tuple[str, ...]
    required_fields: tuple[str, ...]
    missing_evidence: tuple[str, ...]
    risk_tier: TierName
    risk_reason: str
    confidence: float = Field(ge=0, le=1)
    reasoning: str
    wishes: tuple[ToolIntent, ...] = ()
    arithmetic: tuple[TierTerm, ...] = ()
    question: str = ""
    conflict: Conflict | None = None
    classifier: str = ""
    """Classifier that read the message: `embedded`, or the name of a model."""
    not_used: tuple[str, ...] = ()
    """Parts of the message that no call uses."""
    options: tuple[RecordRef, ...] = ()
    """Records of which one is meant."""
    option_field: str = ""
    """Argument that the chosen one fills."""


class PlanStep(FrozenModel):
    """One call of a plan.

    In `arguments` an object {"$from": [step, "field"]} stands for a field of an earlier step's result,
    and {"$from": [[step, "field"], …]} for a list of such.
    """

    number: int
    """From 1."""
    tool: NonEmpty
    arguments: dict[str, Json]
    tier: TierName
    arithmetic: tuple[TierTerm, ...] = ()
    undo: str | None = None
    undo_until: str = ""
    """How long it can be undone, such as `until it is accepted`."""
    outgoing: Outgoing | None = None
    """Content that it sends out of the machine, as it was at `previewed_at` of the plan."""
    idempotent: bool = False
    estimate: Estimate = Estimate()
    verification: tuple[SqlQuery, ...] = ()
    ungrounded: tuple[UngroundedArgument, ...] = ()
    """Arguments that nobody said: with any of these a person is asked, whatever the tier."""
    records: tuple[ResolvedRecord, ...] = ()
    """Records that were looked up for arguments."""


class PlannedDependency(FrozenModel):
    """Step that is required first, and the reason."""

    tool: NonEmpty
    depends_on: NonEmpty
    reason: str


PlanStatus = Literal["ready", "rejected", "awaiting_approval"]


class RunPlan(FrozenModel):
    """Layer 2's answer: an ordered, validated sequence of calls. Nothing has run."""

    plan_id: NonEmpty
    classification_id: NonEmpty
    status: PlanStatus
    domain: str
    tool_sequence: tuple[str, ...]
    dependencies: tuple[PlannedDependency, ...] = ()
    estimated_risk: TierName
    requires_approval: bool
    required_fields: tuple[str, ...] = ()
    missing_evidence: tuple[str, ...] = ()
    confidence: float = Field(ge=0, le=1)
    message: str = ""
    pack: str
    pack_digest: str
    steps: tuple[PlanStep, ...] = ()
    estimate: Estimate = Estimate()
    approvals: tuple[str, ...] = ()
    """Groups that must approve the plan, in order. Empty: one person."""
    irreversible: tuple[str, ...] = ()
    """Tools of the plan that cannot be undone."""
    safer_alternative: str = ""
    summary: str = ""
    """What it does, in one line of plain English."""
    rejected_because: str = ""
    undoes: str = ""
    """The receipt this plan reverses, as `RUN#NUMBER`."""
    previewed_at: UtcDatetime | None = None
    """Time before which nothing of `outgoing` was read. What changes afterwards is not what people saw."""
    changes: tuple[PlanChange, ...] = ()
    """Differences to the plan that a person edited into this one."""
    edited_from: str = ""
    """The approval that was edited."""

    @property
    def ungrounded(self) -> bool:
        """True if anything in it was not said by the person it is done for."""
        return any(step.ungrounded for step in self.steps)

    @property
    def plan_hash(self) -> str:
        """Digest that an approval is bound to: the calls, their pack, and what they reverse."""
        steps = [[step.number, step.tool, step.arguments, str(step.tier)] for step in self.steps]
        records = [
            [step.number, record.field, record.kind, record.id, record.label]
            for step in self.steps
            for record in step.records
        ]
        return digest_of(
            {
                "pack": [self.pack, self.pack_digest],
                "steps": steps,
                "approvals": self.approvals,
                "undoes": self.undoes,
                # Left out when there are none: plans from before records were looked up keep their hash.
                **({"records": records} if records else {}),
            }
        )


CheckName = Literal[
    "schema_correct", "provable_by_receipt", "worker_safe", "approval_obtained", "safer_alternative"
]


class GateReport(FrozenModel):
    """Results of the five checks of the quality gate. `reasons` has a sentence for each."""

    schema_correct: bool
    provable_by_receipt: bool
    worker_safe: bool
    approval_obtained: bool
    safer_alternative: str | None = None
    """A suggestion; it blocks nothing."""
    reasons: dict[CheckName, str] = Field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """True if the plan may be run once people agree."""
        return self.schema_correct and self.provable_by_receipt and self.worker_safe

    @property
    def passed(self) -> bool:
        return self.sound and self.approval_obtained


class GatedPlan(FrozenModel):
    """Layer 3's input: a plan that passed the gate. `plan_hash` must be the plan's own."""

    plan: RunPlan
    plan_hash: NonEmpty
    report: GateReport
    approval_id: str | None = None
    """With T2 and more: the approval that released exactly this plan."""
    max_tool_calls: int = Field(default=50, ge=1)


class CallResult(FrozenModel):
    """Result of one call of a plan, by its receipt."""

    number: int
    tool: str
    status: Literal["completed", "failed", "in_doubt", "skipped"]
    receipt: int | None = None
    """Its number in the run's chain."""
    fields: dict[str, Json] = Field(default_factory=dict)
    error: str = ""
    usd: float = 0.0
    seconds: float = 0.0
    approved_by: tuple[str, ...] = ()


AnswerStatus = Literal[
    "analyzed",
    "planned",
    "clarify",
    "refused",
    "quality_gate_failed",
    "awaiting_approval",
    "enqueued",
    "succeeded",
    "failed",
    "in_doubt",
    "cancelled",
    "error",
]


class OperatorAnswer(FrozenModel):
    """Answer of the operator to a message, rendered as five blocks."""

    mode: OperatorMode | None
    """None: the given mode is invalid."""
    status: AnswerStatus
    message: str
    exit_code: int
    classification: IntentClassification | None = None
    plan: RunPlan | None = None
    gate: GateReport | None = None
    action_id: str | None = None
    """Id to approve, with `awaiting_approval`."""
    deadline: UtcDatetime | None = None
    grants: tuple[Grant, ...] = ()
    run_id: str | None = None
    results: tuple[CallResult, ...] = ()
    reason: str = ""
    """Reason of the status, when the classification does not give it."""
    next_actions: tuple[str, ...] = ()
    options: tuple[RecordRef, ...] = ()
    """With `clarify`: records of which one is meant, in the order of their numbers."""
    suggestions: tuple[str, ...] = ()
    """Tools asked for and approved before in similar words. Never an approval."""
    reading_usage: Usage = Usage()
    """Usage of reading the message, where a model was asked."""


class Habit(FrozenModel):
    """An earlier message with its result."""

    at: UtcDatetime
    pack: str
    said: str
    tools: tuple[str, ...]
    status: str
    approved_by: tuple[str, ...] = ()


class OperatorJob(FrozenModel):
    """Input of a run of the operator."""

    plan: RunPlan
    asked_by: str = ""
    approver: Approver | None = None
    """Approver beforehand, with their proof. None: the person who asked, as in runs from before this was recorded."""
    explicit_approval: bool = False
    """Approval of this very plan by the person who asked, beforehand. It counts for no chain of approvers."""
    max_tool_calls: int = Field(default=50, ge=1)
    provenance: tuple[str, ...] = ()
    pack_folder: str = ""
    """Folder of the pack, when it did not come with Podium."""


def record_line(record: ResolvedRecord) -> str:
    """`quote_id: quote 'Sarah Chen, 1850, draft' (quote_31d0aa7b2c)`. The text between quotes is the record's own."""
    label = f" {record.label!r}" if record.label else ""
    return f"{record.field}: {record.kind.replace('_', ' ')}{label} ({record.id})"


def question_about(plan: RunPlan) -> PlanQuestion:
    """Build the question of a plan to its approvers."""
    calls = tuple(
        ApprovedCall(
            number=step.number,
            tool=step.tool,
            tier=step.tier,
            arguments=step.arguments,
            undo=step.undo,
            undo_until=step.undo_until,
            outgoing=step.outgoing,
            ungrounded=step.ungrounded,
            records=tuple(record_line(record) for record in step.records),
        )
        for step in plan.steps
    )
    return PlanQuestion(
        message=plan.message,
        calls=calls,
        irreversible=plan.irreversible,
        undoes=plan.undoes,
        estimate=plan.estimate,
        safer_alternative=plan.safer_alternative,
        changes=plan.changes,
        edited_from=plan.edited_from,
    )


def why_asked(plan: RunPlan) -> str:
    """Explain why a person is asked about a plan."""
    if not plan.ungrounded:
        return f"{plan.estimated_risk} needs a person"
    lines = [argument.line for step in plan.steps for argument in step.ungrounded]
    return "; ".join(dict.fromkeys(lines))


def planned_call(run_input: Json, plan_hash: str, number: int) -> PlannedCall | None:
    """Call of this number, if this input of a run is the plan of this hash."""
    try:
        plan = OperatorJob.model_validate(run_input).plan
    except ValidationError:
        return None
    step = next((step for step in plan.steps if step.number == number), None)
    if plan.plan_hash != plan_hash or step is None:
        return None
    return PlannedCall(number=number, tool=step.tool, arguments=step.arguments)
