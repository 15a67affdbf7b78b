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
from podium.jobs.sense.tick_summary import summary_line

# --- sense -------------------------------------------------------------------------------------

Condition = Literal["ok", "missing", "unreadable", "malformed", "too_large", "binary", "cut"]
"""How something was found. Whatever it is, a tick goes on, and the bundle says so."""


class Sensed(FrozenModel):
    """One thing a source found, or did not find."""

    source: NonEmpty
    """Name of the source, such as `health`, `acks` or `sessions`."""
    place: NonEmpty
    """Where it was looked for: a path from the root on, a URL, a command."""
    condition: Condition = "ok"
    why: str = ""
    """What is wrong, in words for people and planners. Empty when nothing is."""
    content: Json = None
    """What it says, without secrets. Parsed where it could be, else text."""
    stale: bool = False
    """It is older than the source allows."""
    seen_at: UtcDatetime | None = None
    """When it was last changed, where that is known."""

    @property
    def provenance(self) -> str:
        """The tag under which what follows from it is traced back."""
        return f"{self.source}:{self.place}"


class Look(FrozenModel):
    """All that one source found in one look."""

    source: NonEmpty
    found: tuple[Sensed, ...] = ()
    total: int = 0
    """How many things there are; those beyond the newest few are only counted."""
    mark: str = ""
    """Changes exactly when what was found changed. Cheaper than reading: names, sizes, times."""


class Bundle(FrozenModel):
    """What is known of the system at one moment: bounded, without secrets, each part with its source."""

    root: str
    looks: tuple[Look, ...] = ()
    left_out: tuple[str, ...] = ()
    """What did not fit, by provenance."""

    @cached_property
    def digest(self) -> str:
        """Of what was found, not of when it was looked for."""
        return digest_of([_lasting(each) for look in self.looks for each in look.found])

    @cached_property
    def missing(self) -> tuple[Sensed, ...]:
        """What could not be read as it should."""
        return tuple(each for look in self.looks for each in look.found if each.condition != "ok")

    def found(self, source: str) -> tuple[Sensed, ...]:
        return tuple(each for look in self.looks if look.source == source for each in look.found)

    def count(self, source: str) -> int:
        return sum(look.total for look in self.looks if look.source == source)

    @property
    def provenance(self) -> tuple[str, ...]:
        """Sources whose words are in it."""
        return tuple(dict.fromkeys(each.source for look in self.looks for each in look.found))


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
    """What people are to be told of it, where no work order is suggested."""
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
        """What it is about, whatever words it has: at most one of a subject waits at a time."""
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
        """As programs read it: the counts the parser has always printed, and what is behind them."""
        return {
            "candidate_count": len(self.candidates),
            "candidates": [_candidate_record(each) for each in self.candidates],
            "skipped": len(self.skipped_items),
            "skipped_items": [each.model_dump(mode="json") for each in self.skipped_items],
            "alerts": [each.target for each in self.alerts],
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
        "ops": [each.model_dump(mode="json", exclude_defaults=True) for each in suggestion.ops],
    }


class PlannerStatus(StrEnum):
    """How the planner fared, as `GMX_Call_Status` says it."""

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
    """Why there is no plan of the planner's own, in words. Empty: there is one, or nobody was asked yet."""
    if status not in _NO_PLAN:
        return ""
    return f"no plan was made: {_NO_PLAN[status]}" + (f": {why}" if why else "")


class Planned(FrozenModel):
    """What came of asking the planner."""

    status: PlannerStatus
    planner: str = ""
    why: str = ""
    """Why it is no OK."""
    plan: ParsedPlan = ParsedPlan()
    document: Json = None
    """The plan as it was given."""
    usage: Usage = Usage()


# --- what became of it -------------------------------------------------------------------------

CandidateState = Literal["logged", "filed", "waiting", "approved", "delivered", "rejected", "expired", "refused", "held back"]  # fmt: skip
"""logged: only told of (sensing). filed: a file to review. approved: a dry run heard a yes, and moves nothing."""


class CandidateStanding(FrozenModel):
    """Where a candidate stands."""

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
    """Why no operations could be made of its words, says the agent that was to make them. Empty: it did not."""


def no_operations(standing: CandidateStanding) -> str:
    """What the agent said that was to make operations of a candidate's words, and made none."""
    return f"the writer cannot make any: {standing.cannot}" if standing.cannot else ""


class TickOutcome(FrozenModel):
    """What one tick came to: the line of the log and of the telemetry are readings of it."""

    tick: int
    """How many ticks this root has seen, this one included."""
    at: UtcDatetime
    seconds: float = 0.0
    mode: Mode
    digest: str = ""
    changed: bool = False
    planner: str = ""
    status: PlannerStatus
    why: str = ""
    counts: dict[str, int] = Field(default_factory=dict)
    """How many things each source has."""
    missing: tuple[str, ...] = ()
    """What could not be read as it should, in words."""
    candidates: tuple[CandidateStanding, ...] = ()
    skipped_items: tuple[SkippedItem, ...] = ()
    notices: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    """Sources that changed since they were last looked at: why there is a new plan."""
    plan_changes: tuple[str, ...] = ()
    """What differs from the plan before, in lines."""
    idle_ticks: int = 0
    """How many ticks of this root asked no planner."""
    usage: Usage = Usage()
    """Of this tick."""
    tokens: int = 0
    """Of all ticks of this root."""
    run_id: str = ""

    @property
    def created(self) -> tuple[str, ...]:
        """Work orders that this tick put into the inbox."""
        return tuple(each.wo_id for each in self.candidates if each.state == "delivered")

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
    """What a root's loop remembers from tick to tick."""

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
    """Why it is no OK."""
    planned_at: UtcDatetime | None = None
    failures: int = 0
    """How often in a row the planner gave no plan of its own."""
    last_plan: tuple[PlanItem, ...] = ()
    notices: tuple[str, ...] = ()
    """What people were told with the last plan."""
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
    """What people are to be told, in every mode."""
    return tuple(_notice(item, plan.context_summary) for item in plan.alerts)


def _notice(item: PlanItem, summary: str) -> str:
    """An alert in its own words; where it has none, in those of the whole plan."""
    said = item.wo_suggestion
    words = f"{said.title}: {said.summary}".strip(": ") if said else item.message
    words = words or " ".join(summary.split()) or "the plan does not say why"
    return f"[{item.priority}] {item.target}: {words}"


def plan_changes(before: Sequence[PlanItem], now: Sequence[PlanItem]) -> tuple[str, ...]:
    """What is new, gone and different since the last plan, a line each."""
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
