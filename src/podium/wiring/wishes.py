"""Wishes for work, as doors take them: a flow, words, and what else that flow may be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails

from podium.domain.errors import BadInput
from podium.domain.model import Json, NonEmpty, Noun
from podium.wiring.queues import Delay, Priority

FlowName = Literal["pipeline", "operator", "sense", "playbook", "duet"]

Few = Field(max_length=1000)
DEEPEST = 40


def _shallow(told: dict[str, Json]) -> dict[str, Json]:
    """Refuse what is nested beyond what anybody writes, before it is walked through by itself again and again."""
    level: list[Json] = [told]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _within(each)]
        if not level:
            return told
    raise ValueError(f"nested more than {DEEPEST} deep; write it flatter")


def _within(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


Told = Annotated[dict[str, Json], AfterValidator(_shallow)]
"""What is told by name, in JSON that is not nested without end."""


class PipelineWish(Noun):
    """What may be said of a task that becomes a branch."""

    mode: str = "direct"
    """Where it begins: direct, bugfix or research."""
    agent: str = ""
    """The agent of podium.yaml that plays every role. Empty: as the roles say."""
    base: str = ""
    """The branch to start from, and to merge to. Empty: the one that is checked out."""


class OperatorWords(Noun):
    """What may be said of a message to the operator."""

    context: Told = Field(default_factory=dict)
    """What is known already, by name."""
    pack: str = ""
    """The tools: a pack's name. Empty: as podium.yaml says."""
    approve: bool = False
    """A yes to the very plan that comes of it, this once."""


class SenseWish(Noun):
    """Nothing can be said of a tick."""


class PlaybookWish(Noun):
    """What may be said of a run of a playbook. Paths are beneath the project."""

    profile: str = ""
    """The plugin's profile. Empty: the nearest one upwards from the root."""
    root: str = ""
    """The plugin's folder. Empty: the project's."""
    agent: str = ""
    """The agent of podium.yaml that follows it."""
    inputs: Annotated[dict[str, str], Few] = Field(default_factory=dict)
    """Values of the playbook's inputs, by name."""
    dry_run: bool = False
    """Work in a copy that is thrown away, and show what would change."""


class DuetWish(Noun):
    """What may be said of a task for two."""

    pairs: Annotated[tuple[NonEmpty, ...], Few] = ()
    """Pairs that may do it. Empty: every pair there is."""


class Wish(Noun):
    """Work that somebody wants done."""

    flow: FlowName
    text: str = ""
    """The task; for the operator the message, for a playbook its file, for sense nothing."""
    options: Told = Field(default_factory=dict)
    """What else the flow may be told; see `option_schemas`."""
    queue: str = ""
    """Where it waits. Empty: the flow's own queue."""
    priority: Priority = 0
    """Higher goes first."""
    delay_seconds: Delay = 0.0
    """Not before so much time has passed."""


FlowOptions = PipelineWish | OperatorWords | SenseWish | PlaybookWish | DuetWish
SHAPES: Mapping[str, type[FlowOptions]] = {
    "pipeline": PipelineWish,
    "operator": OperatorWords,
    "sense": SenseWish,
    "playbook": PlaybookWish,
    "duet": DuetWish,
}
"""Flow → what it may be told."""


def option_schemas() -> dict[str, dict[str, Json]]:
    """Flow → JSON Schema of what it may be told."""
    return {flow: shape.model_json_schema() for flow, shape in SHAPES.items()}


def options_of(wish: Wish) -> FlowOptions:
    """What the wish says, in the shape of its flow. Raises `BadInput` that names the options there are."""
    shape = SHAPES[wish.flow]
    try:
        return shape.model_validate(wish.options)
    except ValidationError as error:
        known = ", ".join(sorted(shape.model_fields)) or "none"
        faults = "; ".join(_fault(each) for each in error.errors(include_url=False))
        raise BadInput(f"{wish.flow}: {faults[:1000]}; options: {known}") from None


def _fault(fault: ErrorDetails) -> str:
    named = ".".join(str(part)[:60] for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"there is no option {named!r}"
    return f"option {named!r}: {fault['msg']}"
