"""What podium.yaml may say of the pipeline: any part of what ships, and stages of its own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import PositiveFloat, PositiveInt, Strict

from podium.domain.forging import Finding
from podium.domain.model import NonEmpty, Noun
from podium.domain.steering_files import PROMPT_FILE
from podium.flows.pipeline.spec import Action, Does, Given, Mode

_Count = Annotated[PositiveInt, Strict()]


class StageOptions(Noun):
    """A stage, or the parts of a built-in stage to change. Unset: as it ships."""

    does: Does | None = None
    """Kind of stage."""
    role: NonEmpty | None = None
    """Role that is asked."""
    phase: str | None = None
    """Label in the output, such as `A.1`."""
    prompt: Annotated[NonEmpty | None, PROMPT_FILE] = None
    """File with its prompt, relative to the project."""
    document: str | None = None
    """Path of the document it writes; `{feat}` and `{round}` are filled in."""
    gives: tuple[Given, ...] | None = None
    """What its prompt contains."""
    next: dict[NonEmpty, NonEmpty] | None = None
    """Verdict → next stage, or `deliver`, `back` or `human`."""
    most: dict[NonEmpty, _Count] | None = None
    """Verdict → how often it may be given before a person is asked. Unset: `rounds`."""


class PipelineOptions(Noun):
    """Options of `podium run`. Unset: as it ships."""

    modes: dict[NonEmpty, NonEmpty | Mode] | None = None
    """Modes of `--mode`: name → the stage it starts with, or where it starts, what it skips and what it always does."""
    stages: dict[NonEmpty, StageOptions] | None = None
    """Stages to add or change, by name."""
    rounds: _Count | None = None
    """How often a verdict may send work back before a person is asked. 3 unless set."""
    triage_role: str | None = None
    """Role that sorts feedback. `feedback_triager` unless set; empty: all of it goes to the backlog."""
    document_stage: str | None = None
    """Stage that updates documentation after feedback."""
    memory_tokens: _Count | None = None
    """Space for lessons of earlier runs in a prompt, in tokens. 800 unless set."""
    check_seconds: PositiveFloat | None = None
    """Time limit of one check, in seconds. 1200 unless set."""
    remote: Action | dict[Finding, Action] | None = None
    """What to do when the remote's base branch is not protected. `warn` unless set."""
    dirty: Action | None = None
    """What to do when your checkout has uncommitted changes. `abort` unless set."""
    skills: Literal["offer", "wait"] | None = None
    """Whether a run waits for the answer to a skill that an agent proposes. `offer`, which does not wait, unless set."""
    unmoved_base: Literal["review", "deliver"] | None = None
    """Whether a merge is reviewed again when the base has not moved. `deliver`, which does not, unless set."""
    push: Annotated[bool, Strict()] | None = None
    """Whether to push the branch and open a pull request. True unless set."""
