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
    """A stage, or what is changed of one. None: as it ships."""

    does: Does | None = None
    role: NonEmpty | None = None
    phase: str | None = None
    prompt: Annotated[NonEmpty | None, PROMPT_FILE] = None
    document: str | None = None
    gives: tuple[Given, ...] | None = None
    next: dict[NonEmpty, NonEmpty] | None = None
    most: dict[NonEmpty, _Count] | None = None


class PipelineOptions(Noun):
    """`flows: pipeline:`. None: as it ships."""

    modes: dict[NonEmpty, NonEmpty | Mode] | None = None
    stages: dict[NonEmpty, StageOptions] | None = None
    rounds: _Count | None = None
    triage_role: str | None = None
    document_stage: str | None = None
    memory_tokens: _Count | None = None
    check_seconds: PositiveFloat | None = None
    remote: Action | dict[Finding, Action] | None = None
    dirty: Action | None = None
    skills: Literal["offer", "wait"] | None = None
    unmoved_base: Literal["review", "deliver"] | None = None
    push: Annotated[bool, Strict()] | None = None
