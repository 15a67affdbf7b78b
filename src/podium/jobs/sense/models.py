"""Sensing: what was found of a system's state, the plan made of it, what a tick came to."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import Literal

from pydantic import Field

from podium.core.decisions import Usage, digest_of
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime
from podium.core.work import MODES, Mode
from podium.jobs.sense.orders.work_order import Operation
from podium.jobs.sense.tick_report import summary_line

# --- sense -------------------------------------------------------------------------------------

Condition = Literal["ok", "missing", "unreadable", "malformed", "too_large", "binary", "cut"]
"""Condition of a reading. A tick goes on in any case, and the bundle records the condition."""


class Sensed(FrozenModel):
    """One thing a source found, or did not find."""

    source: NonEmpty
    """Name of the source, such as `health`, `acks` or `sessions`."""
    place: NonEmpty
    """Location: a path relative to the root, a URL, or a command."""
    condition: Condition = "ok"
    why: str = ""
    """Description of the problem, for people and planners. Empty when there is none."""
    content: Json = None
    """Content without secrets. Parsed where possible, else text."""
    stale: bool = False
    """It is older than the source allows."""
    seen_at: UtcDatetime | None = None
    """Time of the last change, where it is known."""

    @property
    def provenance(self) -> str:
        """The tag under which what follows from it is traced back."""
        return f"{self.source}:{self.place}"


class Look(FrozenModel):
    """All that one source found in one look."""

    source: NonEmpty
    found: tuple[Sensed, ...] = ()
    total: int = 0
    """Number of things there are; those beyond the newest few are only counted."""
    mark: str = ""
    """Changes exactly when what was found changed. Cheaper than reading: names, sizes, times."""


class Bundle(FrozenModel):
    """State of the system at one time: bounded, without secrets, each part with its source."""

    root: str
    looks: tuple[Look, ...] = ()
    left_out: tuple[str, ...] = ()
    """Parts that did not fit, by provenance."""

    @cached_property
    def digest(self) -> str:
        """Digest of the readings, independent of the time."""
        return digest_of([_lasting(sensed) for look in self.looks for sensed in look.found])

    @cached_property
    def missing(self) -> tuple[Sensed, ...]:
        """Readings whose condition is not "ok"."""
        return tuple(
            sensed for look in self.looks for sensed in look.found if sensed.condition != "ok"
        )

    def sensed_by(self, source: str) -> tuple[Sensed, ...]:
        return tuple(
            sensed for look in self.looks if look.source == source for sensed in look.found
        )

    def count(self, source: str) -> int:
        return sum(look.total for look in self.looks if look.source == source)

    @property
    def provenance(self) -> tuple[str, ...]:
        """Sources whose words are in it."""
        return tuple(dict.fromkeys(sensed.source for look in self.looks for sensed in look.found))


def _lasting(sensed: Sensed) -> Json:
    # What cannot be shown changes too: how large it is stands in the reason.
    why = "" if sensed.condition == "ok" else sensed.why
    return [sensed.source, sensed.place, sensed.condition, why, sensed.stale, sensed.content]


# --- plan --------------------------------------------------------------------------------------

ItemType = Literal["clc_task", "health_fix", "telemetry", "noop", "info"]
Priority = Literal["low", "medium", "high"]
Action = Literal["create_wo", "log", "noop", "alert"]


class Suggestion(FrozenModel):
    """`wo_suggestion` of a plan's item: the work order that somebody thinks is needed."""

    wo_id_hint: NonEmpty
    title: NonEmpty
    summary: str = ""
    tasks: tuple[str, ...] = ()
    ops: tuple[Operation, ...] = ()
    """Beyond plan schema v1: the work as operations, where the planner knows them."""


class PlanItem(FrozenModel):
    """One item of a plan that fits the schema."""

    index: int
    """Its place in the plan, from 0."""
    type: ItemType
    priority: Priority
    target: NonEmpty
    action: Action
    message: str = ""
    """Message for people, where no work order is suggested."""
    wo_suggestion: Suggestion | None = None


class Candidate(FrozenModel):
    """A work order that could be made, with the item it comes from."""

    wo_id: NonEmpty
    item: PlanItem

    @property
    def suggestion(self) -> Suggestion:
        if self.item.wo_suggestion is None:
            raise ValueError(f"item {self.item.index} suggests no work order")
        return self.item.wo_suggestion

    @property
    def subject(self) -> str:
        """Subject of the work order, independent of its text: at most one per subject waits at a time."""
        return f"{self.item.target}/{self.suggestion.wo_id_hint}"


class SkippedItem(FrozenModel):
    """An item that gives no candidate, and why."""

    index: int
    reason: NonEmpty
    title: str = ""


class ParsedPlan(FrozenModel):
    """A plan as far as it can be used. A broken document has an error and nothing else."""

    timestamp: str = ""
    source: str = ""
    context_summary: str = ""
    items: tuple[PlanItem, ...] = ()
    """Every item that fits the schema, whatever becomes of it."""
    candidates: tuple[Candidate, ...] = ()
    skipped_items: tuple[SkippedItem, ...] = ()
    error: str = ""

    @property
    def alerts(self) -> tuple[PlanItem, ...]:
        return tuple(item for item in self.items if item.action == "alert")

    def record(self) -> dict[str, Json]:
        """Return the JSON record: the counts the parser has always printed, and their details."""
        return {
            "candidate_count": len(self.candidates),
            "candidates": [_candidate_record(candidate) for candidate in self.candidates],
            "skipped": len(self.skipped_items),
            "skipped_items": [item.model_dump(mode="json") for item in self.skipped_items],
            "alerts": [alert.target for alert in self.alerts],
            "context_summary": self.context_summary,
            **({"error": self.error} if self.error else {}),
        }


def _candidate_record(candidate: Candidate) -> dict[str, Json]:
    item, suggestion = candidate.item, candidate.suggestion
    return {
        "wo_id": candidate.wo_id,
        "type": item.type,
        "priority": item.priority,
        "target": item.target,
        "title": suggestion.title,
        "summary": suggestion.summary,
        "tasks": list(suggestion.tasks),
        "ops": [op.model_dump(mode="json", exclude_defaults=True) for op in suggestion.ops],
    }


class PlannerStatus(StrEnum):
    """Outcome of asking the planner, named as in `GMX_Call_Status`."""

    OK = "OK"
    MOCK = "MOCK"
    """It is not there, so an empty plan stood in for its own."""
    ERROR = "ERROR"
    """It failed, hung or talked nonsense; an empty plan stood in too."""
    SKIPPED = "SKIPPED"
    """It was not asked: nothing has changed, or `why` says what keeps the loop from asking."""


_NO_PLAN = {
    PlannerStatus.MOCK: "the planner is missing",
    PlannerStatus.ERROR: "the planner failed",
}


def no_plan(status: PlannerStatus | None, why: str = "") -> str:
    """Return the reason why the planner gave no plan of its own. Empty: it gave one, or was not asked yet."""
    if status not in _NO_PLAN:
        return ""
    return f"no plan was made: {_NO_PLAN[status]}" + (f": {why}" if why else "")


class Planned(FrozenModel):
    """Result of asking the planner."""

    status: PlannerStatus
    planner: str = ""
    why: str = ""
    """Reason for any status but OK."""
    plan: ParsedPlan = ParsedPlan()
    document: Json = None
    """The plan as it was given."""
    usage: Usage = Usage()


# --- what became of it -------------------------------------------------------------------------

CandidateState = Literal["logged", "filed", "waiting", "approved", "delivered", "rejected", "expired", "refused", "held back"]  # fmt: skip
"""logged: only told of (sensing). filed: a file to review. approved: a dry run heard a yes, and moves nothing."""


class CandidateStatus(FrozenModel):
    """Status of a candidate."""

    wo_id: NonEmpty
    state: CandidateState
    why: str = ""
    run_id: str = ""
    approval_id: str = ""
    file: str = ""
    """From the root on, where there is one."""
    title: str = ""
    target: str = ""
    tier: str = ""
    zones: tuple[str, ...] = ()
    cannot: str = ""
    """Reason of the writer why it could not derive operations. Empty: it could, or was not asked."""


def no_operations(status: CandidateStatus) -> str:
    """Return the reason why the writer derived no operations from a candidate's text."""
    return f"the writer cannot plan any: {status.cannot}" if status.cannot else ""


class TickOutcome(FrozenModel):
    """Result of one tick; the lines in the log and the telemetry are derived from it."""

    tick: int
    """Number of ticks of this root, this one included."""
    at: UtcDatetime
    seconds: float = 0.0
    mode: Mode
    digest: str = ""
    changed: bool = False
    planner: str = ""
    status: PlannerStatus
    why: str = ""
    counts: dict[str, int] = Field(default_factory=dict)
    """Source → number of things it has."""
    missing: tuple[str, ...] = ()
    """Readings with problems, each with its reason."""
    candidates: tuple[CandidateStatus, ...] = ()
    skipped_items: tuple[SkippedItem, ...] = ()
    notices: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    """Sources that changed since they were last looked at: why there is a new plan."""
    plan_changes: tuple[str, ...] = ()
    """Differences from the plan before, one per line."""
    idle_ticks: int = 0
    """Number of ticks of this root that asked no planner."""
    usage: Usage = Usage()
    """Of this tick."""
    tokens: int = 0
    """Of all ticks of this root."""
    run_id: str = ""

    @property
    def created(self) -> tuple[str, ...]:
        """Work orders that this tick put into the inbox."""
        return tuple(
            candidate.wo_id for candidate in self.candidates if candidate.state == "delivered"
        )

    def summary(self) -> str:
        """The SUMMARY line, without its time."""
        return summary_line(
            mode=self.mode,
            tick=self.tick,
            counts=self.counts,
            idle_ticks=self.idle_ticks,
            tokens=self.tokens,
            status=self.status,
            candidates=len(self.candidates),
            skipped=len(self.skipped_items),
            no_plan=_NO_PLAN.get(self.status, "").removeprefix("the ").replace(" ", "_"),
            created=self.created,
        )


class SenseMemory(FrozenModel):
    """Memory of a root's loop between ticks."""

    ticks: int = 0
    idle_ticks: int = 0
    tokens: int = 0
    marks: dict[str, str] = Field(default_factory=dict)
    """Source → its mark at the last look."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Source → how many things it had then."""
    digest: str = ""
    """Of the bundle that was planned for last."""
    status: PlannerStatus | None = None
    why: str = ""
    """Reason for any status but OK."""
    planned_at: UtcDatetime | None = None
    failures: int = 0
    """Number of times in a row that the planner gave no plan of its own."""
    last_plan: tuple[PlanItem, ...] = ()
    notices: tuple[str, ...] = ()
    """Notices of the last plan."""
    run_id: str = ""
    """The run that a tick has under way, for the next one to see after."""
    pending: dict[str, str] = Field(default_factory=dict)
    """Candidates that had not ended at the last look: work order → run."""


def lower_mode(configured: Mode, wished: str) -> Mode:
    """The stricter of the configured mode and one that was wished for. What is no mode is the strictest."""
    if not wished:
        return configured
    if wished not in MODES:
        return MODES[0]
    return next(mode for mode in MODES if mode in (configured, wished))


def notices_of(plan: ParsedPlan) -> tuple[str, ...]:
    """Return the messages for people, in every mode."""
    return tuple(_notice(item, plan.context_summary) for item in plan.alerts)


def _notice(item: PlanItem, summary: str) -> str:
    """An alert in its own words; where it has none, in those of the whole plan."""
    suggestion = item.wo_suggestion
    text = f"{suggestion.title}: {suggestion.summary}".strip(": ") if suggestion else item.message
    text = text or " ".join(summary.split()) or "the plan gives no reason"
    return f"[{item.priority}] {item.target}: {text}"


def plan_changes(before: Sequence[PlanItem], now: Sequence[PlanItem]) -> tuple[str, ...]:
    """Return the items that are new, gone or different since the last plan, one per line."""
    old, new = {_key(item): item for item in before}, {_key(item): item for item in now}
    lines = [f"new: {key} ({item.priority})" for key, item in new.items() if key not in old]
    lines += [f"gone: {key}" for key in old if key not in new]
    for key, item in new.items():
        was = old.get(key)
        if was is not None and was.priority != item.priority:
            lines.append(f"changed: {key} is {item.priority}, was {was.priority}")
    return tuple(lines)


def _key(item: PlanItem) -> str:
    hint = item.wo_suggestion.wo_id_hint if item.wo_suggestion else item.type
    return f"{item.action} {item.target}/{hint}"
