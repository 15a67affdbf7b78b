"""Contracts of the pipeline's roles: the replies of agents at the end of their turns."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
from pydantic.json_schema import SkipJsonSchema

from podium.core.model import Json, NonEmpty

REJECTIONS = frozenset({"REJECT", "FAIL"})
"""Verdicts that send work back, and so need words that say why."""

_Line = Annotated[str, Field(min_length=1, max_length=2_000)]


class SkillProposal(BaseModel):
    """Something learned that future agents could use."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: _Line
    when: str = ""
    steps: tuple[_Line, ...] = Field(min_length=1, max_length=30)


class Answer(BaseModel):
    """Fields that every reply may have."""

    model_config = ConfigDict(extra="forbid")

    backlog_items: tuple[_Line, ...] = Field(default=(), max_length=50)
    """Ideas for later that would lead away from the task."""
    lessons: tuple[_Line, ...] = Field(default=(), max_length=20)
    """Lessons for the next agent that works here."""
    feedback: dict[str, Json] | str | None = None
    """Remarks besides the result: an unclear plan, debts, missing documentation."""
    skill: SkipJsonSchema[SkillProposal | None] = None
    """A way of solving something that is worth keeping. Shown to who changes code, taken from all."""


def feedback_points(feedback: Json) -> list[str]:
    """Points of the feedback in plain text: each member of an object is a point of its own."""
    if not isinstance(feedback, dict):
        return [feedback] if isinstance(feedback, str) and feedback.strip() else []
    return [f"{name}: {_value_text(value)}" for name, value in feedback.items()]


def _value_text(value: Json) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_value_text(item)}" for name, item in value.items())
    if isinstance(value, list):
        return "; ".join(map(_value_text, value))
    return value if isinstance(value, str) else json.dumps(value)


class Report(Answer):
    """Investigator and Researcher."""

    report_path: NonEmpty


class Plan(Answer):
    """Architect. Without a plan, `feedback` says why there is nothing to plan."""

    plan_path: str = ""
    document: str = ""
    """The plan itself, for Podium to write. Empty: the agent has written it to `plan_path`."""

    @model_validator(mode="after")
    def _has_a_plan_or_says_why_not(self) -> Plan:
        if not (self.plan_path or self.document.strip() or feedback_points(self.feedback)):
            raise ValueError("give the plan, or say in feedback why there is nothing to plan")
        return self


class DisputedCheck(BaseModel):
    """A check that is wrong for this project, in the eyes of who works on it."""

    model_config = ConfigDict(extra="forbid")

    check: Annotated[str, Field(min_length=1, max_length=500)]
    why: _Line


class ProposedTest(BaseModel):
    """A command that proves a fix, in the eyes of who made it: a check of the project with paths or names of tests."""

    model_config = ConfigDict(extra="forbid")

    command: Annotated[str, Field(min_length=1, max_length=1_000)]
    files: tuple[Annotated[str, Field(max_length=500)], ...] = Field(default=(), max_length=20)
    """Test files that it runs."""


class TestChange(BaseModel):
    """A reason for a change that takes something away from tests or checks."""

    __test__: ClassVar[bool] = False
    model_config = ConfigDict(extra="forbid")

    test: Annotated[str, Field(min_length=1, max_length=500)]
    """The test, file or setting."""
    why: _Line


class Work(Answer):
    """Developer and Integration Specialist."""

    status: Literal["success", "failure"]
    commit_hash: str = ""
    disputed_checks: tuple[DisputedCheck, ...] = Field(default=(), max_length=10)
    """For a person to decide about: a red check stays red."""
    proof: tuple[ProposedTest, ...] = Field(default=(), max_length=5)
    """Tests that fail without the fix and pass with it."""
    no_proof: str = Field(default="", max_length=2_000)
    """Reason why no test can show the fix: a person decides."""
    test_changes: tuple[TestChange, ...] = Field(default=(), max_length=30)
    """Reasons for removed, skipped or weaker tests and checks, for a person to decide about."""
    skill: SkillProposal | None = None

    @model_validator(mode="after")
    def _names_its_commit(self) -> Work:
        if self.status == "success" and not self.commit_hash:
            raise ValueError("commit_hash: name the commit that holds your work")
        return self


class Edit(Answer):
    """Reply of a role that changes documents, which the supervisor commits."""

    status: Literal["success", "failure"]


class Triage(Answer):
    """Feedback Triager."""

    decision: Literal["backlog", "docs", "ignore"]
    entry: str = ""
    """Text for the backlog, or for the documentation."""


class _Verdict(Answer):
    verdict: str

    @model_validator(mode="after")
    def _says_why(self) -> _Verdict:
        reason = self.feedback if isinstance(self.feedback, str) else ""
        if self.verdict == "REJECT" and not reason.strip():
            raise ValueError("feedback: say in words what has to change")
        return self


class _Audit(_Verdict):
    review_path: str = ""
    document: str = ""
    """The review itself, for Podium to write. Empty: the agent has written it to `review_path`."""

    @model_validator(mode="after")
    def _has_a_review(self) -> _Audit:
        if not (self.review_path or self.document.strip()):
            raise ValueError("document: give the review itself, in Markdown")
        return self


def review_of(verdicts: tuple[str, ...]) -> type[Answer]:
    """A gatekeeper's answer: one of these verdicts."""
    return _with_verdicts("Review", _Verdict, verdicts)


def audit_of(verdicts: tuple[str, ...]) -> type[Answer]:
    """A reviewer's answer who writes a review of its own."""
    return _with_verdicts("Audit", _Audit, verdicts)


def _with_verdicts(name: str, base: type[Answer], verdicts: tuple[str, ...]) -> type[Answer]:
    # A literal made at run time: which verdicts there are is configuration.
    kind: Any = Literal[verdicts]
    return create_model(name, __base__=base, verdict=(kind, ...))
