"""Replies as agents really give them, whole and broken, each with what is right to make of it.

The cases lie beside this file, one family to a file. They were judged by hand: what a careful
person would take for the answer, and where they would rather ask again.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, RootModel, model_validator

from podium.core.model import FrozenModel, Json, NonEmpty


class Verdict(BaseModel):
    """Of a reviewer."""

    verdict: Literal["APPROVE", "REJECT", "ESCALATE"]
    feedback: str = ""


class WorkDone(BaseModel):
    """Of a developer."""

    status: Literal["success", "failed"]
    commit_hash: str
    backlog_items: list[str] = []


class WorkOrder(BaseModel):
    """Work that somebody should do."""

    title: str
    summary: str
    tasks: list[str]


class PlanItem(BaseModel):
    """One thing that was noticed."""

    type: Literal["clc_task", "health_fix", "telemetry", "noop", "info"]
    priority: Literal["low", "medium", "high"]
    target: str
    action: Literal["create_wo", "log", "noop", "alert"]
    wo_suggestion: WorkOrder | None = None


class Plan(BaseModel):
    """Of a planner that watches a system."""

    context_summary: str
    items: list[PlanItem]


class Intent(BaseModel):
    """Intent of a person's request to an operator."""

    intent: Literal["execute", "refuse", "clarify"]
    domain: str
    confidence: float
    tool_candidates: list[str] = []
    requires_approval: bool = False
    reasoning: str = ""


class Note(BaseModel):
    """A contract in which nothing is required: almost any object fits it."""

    title: str = ""
    tags: list[Json] = []


class Exact(BaseModel):
    """A contract that allows no other keys."""

    model_config = ConfigDict(extra="forbid")

    answer: int


class ClosedVerdict(Verdict):
    """A verdict that allows no other keys."""

    model_config = ConfigDict(extra="forbid")


class Step(BaseModel):
    """One step of what is to be done."""

    id: int
    action: str
    files: list[str] = []


class Steps(BaseModel):
    """A plan of nested steps."""

    title: str
    steps: list[Step]
    risk: Literal["low", "medium", "high"] = "low"


class Labels(BaseModel):
    """Lists, and nothing but lists."""

    tags: list[str]
    scores: list[float] = []


class Summary(BaseModel):
    """A contract in which all may be left out."""

    summary: str | None = None
    commit: str | None = None
    notes: str | None = None


class Went(BaseModel):
    """One of two ends."""

    kind: Literal["ok"]
    value: int


class Failed(BaseModel):
    """The other."""

    kind: Literal["err"]
    message: str


class Outcome(BaseModel):
    """A union of objects."""

    result: Went | Failed


class SourceFile(BaseModel):
    """A file as text, with all that text may hold."""

    path: str
    content: str


class Measure(BaseModel):
    """Numbers."""

    count: int
    ratio: float = 0.0
    ok: bool = True


class Answer(BaseModel):
    """A text."""

    answer: str


class Tree(BaseModel):
    """A contract whose parts fit it too."""

    verdict: Literal["APPROVE", "REJECT"]
    child: Tree | None = None


class Anything(RootModel[dict[str, Json]]):
    """Any object at all."""


CONTRACTS: dict[str, type[BaseModel]] = {
    "verdict": Verdict,
    "work": WorkDone,
    "order": WorkOrder,
    "plan": Plan,
    "intent": Intent,
    "note": Note,
    "exact": Exact,
    "closed verdict": ClosedVerdict,
    "steps": Steps,
    "labels": Labels,
    "summary": Summary,
    "outcome": Outcome,
    "file": SourceFile,
    "measure": Measure,
    "answer": Answer,
    "tree": Tree,
    "anything": Anything,
}
"""Model of a case's payload, by its `contract`."""

BLOCKS = {"block": "POLI:MSG", "plan block": "<PLAN>"}
"""Cases with these contracts are about a tagged block: their payload is its `header` and `body`."""


class Expected(FrozenModel):
    """Expected result: this payload, or no payload for this reason."""

    payload: Json = None
    found: Literal["strict", "repaired"] = "strict"
    error: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Expected:
        if (self.payload is None) == (self.error is None):
            raise ValueError("a case expects either a payload or an error")
        return self


class ReplyCase(FrozenModel):
    """One reply. `text` may hold anything but half of a surrogate pair."""

    family: NonEmpty
    name: NonEmpty
    contract: NonEmpty
    text: str
    nonce: str | None = None
    expect: Expected


def reply_cases(family: str | None = None) -> list[ReplyCase]:
    """All cases, or those of one family, in the order of their files."""
    folder = files(__package__)
    sources = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".jsonl")),
        key=lambda one: one.name,
    )
    cases = [
        ReplyCase.model_validate_json(line)
        for source in sources
        for line in source.read_text(encoding="utf-8").splitlines()
    ]
    return [case for case in cases if family is None or case.family == family]
