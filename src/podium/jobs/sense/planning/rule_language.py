"""Language of planning rules: conditions, the item that follows, and examples that prove a rule."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    Field,
    PositiveFloat,
    Strict,
    StringConstraints,
    model_validator,
)

from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.regex_cost import RegexTooCostly, pattern_cost
from podium.jobs.sense.models import Action, Condition, ItemType, Priority

MAX_RULES = 100
FACTS = ("$key", "$value", "$place", "$file", "$source", "$why", "$condition", "$top")
"""Facts of each find besides its own fields. `$top` begins a path at the top of the content."""

Path = tuple[str, ...]

_STEP = re.compile(r"\*|\$?[A-Za-z0-9_][A-Za-z0-9_ -]{0,79}")
_MAX_STEPS = 10
_MAX_PLACEHOLDERS = 10
_TOKEN = re.compile(
    r"(?P<brace>\{\{|\}\})|\{(?P<paths>[^{}']+?)(?:\|'(?P<default>[^{}']{0,200})')?\}|(?P<stray>[{}])"
)


class Placeholder(NamedTuple):
    """A gap in a template: the first path that leads to something fills it, else the default does."""

    paths: tuple[Path, ...]
    default: str


@lru_cache(maxsize=2_000)
def paths_in(text: str) -> tuple[Path, ...]:
    """`checks.*.status|state`: ways to a value, the first that leads somewhere counts. Raises `ValueError`."""
    return tuple(_path(path.strip()) for path in text.split("|"))


def _path(text: str) -> Path:
    steps = tuple(text.split("."))
    if len(steps) > _MAX_STEPS or not all(map(_STEP.fullmatch, steps)):
        raise ValueError(
            f"{text[:80]!r} is not a path; separate names with dots, and use `*` for each entry"
        )
    if any(step.startswith("$") for step in steps[1:]):
        raise ValueError(f"{text[:80]!r} is not a path; a name with `$` must come first")
    if steps[0].startswith("$") and steps[0] not in FACTS:
        raise ValueError(f"unknown name {steps[0]!r}; known names: {', '.join(FACTS)}")
    return steps


@lru_cache(maxsize=2_000)
def template_parts(text: str) -> tuple[str | Placeholder, ...]:
    """The fixed parts and the gaps of a template. Raises `ValueError` for braces that are neither."""
    parts: list[str | Placeholder] = []
    end = 0
    for token in _TOKEN.finditer(text):
        parts += [text[end : token.start()]] if token.start() > end else []
        end = token.end()
        if token["stray"]:
            raise ValueError(f"unmatched brace in {text[:80]!r}; write {{{{ or }}}} for a brace")
        if token["brace"]:
            parts.append(token["brace"][0])
        else:
            parts.append(Placeholder(paths_in(token["paths"]), token["default"] or ""))
    if sum(isinstance(part, Placeholder) for part in parts) > _MAX_PLACEHOLDERS:
        raise ValueError(f"has more than {_MAX_PLACEHOLDERS} placeholders; make it shorter")
    return (*parts, text[end:]) if text[end:] else tuple(parts)


def _checked_paths(text: str) -> str:
    paths_in(text)
    return text


def _checked_template(text: str) -> str:
    template_parts(text)
    return text


def _checked_pattern(text: str) -> str:
    try:
        pattern_cost(text)
    except RegexTooCostly as error:
        raise ValueError(f"{text[:80]!r} {error}") from None
    return text


Paths = Annotated[
    str, StringConstraints(min_length=1, max_length=500), AfterValidator(_checked_paths)
]
Template = Annotated[
    str, StringConstraints(min_length=1, max_length=5_000), AfterValidator(_checked_template)
]
Pattern = Annotated[str, AfterValidator(_checked_pattern)]
Scalar = str | bool | int | float
Number = Annotated[float, Strict()]
SourceName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


class Elsewhere(FrozenModel):
    """Values that another source has."""

    source: SourceName
    path: Paths


class RuleClause(FrozenModel):
    """Something that must hold for a value at `path`. Several words must hold for the same one."""

    path: Paths
    equals: Scalar | None = None
    """Texts are compared without regard to case."""
    not_: Annotated[Scalar | None, Field(alias="not")] = None
    in_: Annotated[tuple[Scalar, ...] | None, Field(alias="in")] = None
    not_in: tuple[Scalar, ...] | None = None
    matches: Pattern | None = None
    """A regular expression that is found in the text."""
    min: Number | None = None
    max: Number | None = None
    missing: bool | None = None
    """true: nothing is there. false: something is."""
    rising: Literal[True] | None = None
    """It is a list of numbers that never fall, and the last is above the first."""
    older_than_seconds: PositiveFloat | None = None
    """It is a time, and so long ago."""
    absent_from: Elsewhere | None = None
    """No value there is the same, and that source shows all it has."""

    @model_validator(mode="after")
    def _says_something(self) -> RuleClause:
        keywords = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if keywords == ["path"]:
            raise ValueError("has no condition; add `equals`, `in`, `min`, …")
        if self.missing and len(keywords) > 2:
            raise ValueError("a missing value cannot be compared; remove the other conditions")
        return self


class When(FrozenModel):
    """Condition of a rule: things of these sources, or each part of them, for which all clauses hold."""

    source: SourceName | tuple[SourceName, ...]
    condition: Condition | tuple[Condition, ...] = "ok"
    """Condition of the reading."""
    stale: bool | None = None
    """True: older than its source allows. False: not older. Unset: either."""
    for_each: Paths | tuple[Paths, ...] = ()
    """Lists or mappings whose parts are looked at one by one. Not given: the whole."""
    where: Annotated[tuple[RuleClause, ...], Field(max_length=20)] = ()
    """All hold."""
    unless: Annotated[tuple[RuleClause, ...], Field(max_length=20)] = ()
    """None holds."""

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,) if isinstance(self.source, str) else self.source

    @property
    def conditions(self) -> tuple[str, ...]:
        return (self.condition,) if isinstance(self.condition, str) else self.condition

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.for_each,) if isinstance(self.for_each, str) else self.for_each


class RuleSuggestion(FrozenModel):
    """`wo_suggestion` with gaps."""

    wo_id_hint: Template
    title: Template
    summary: Template | Literal[""] = ""
    tasks: Annotated[tuple[Template, ...], Field(max_length=50)] = ()
    ops: Annotated[tuple[dict[str, Json], ...], Field(max_length=20)] = ()
    """Operations. Paths are filled with names only, and commands not at all."""


class RuleItem(FrozenModel):
    """An item of a plan with gaps."""

    type: ItemType
    priority: Priority
    target: Template
    action: Action
    wo_suggestion: RuleSuggestion | None = None


class ExampleSensed(FrozenModel):
    """Something a source could find."""

    source: SourceName | None = None
    """Not given: the rule's first."""
    place: NonEmpty = "example.json"
    condition: Condition = "ok"
    why: str = ""
    stale: bool = False
    content: Json = None


class Example(FrozenModel):
    """Expected result of a rule: the number of items, or exactly these titles."""

    sensed: Annotated[tuple[ExampleSensed, ...], Field(max_length=50)]
    expect: Annotated[int, Strict(), Field(ge=0)] | tuple[str, ...]


class PlanningRule(FrozenModel):
    """If this is found, that item is in the plan."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,59}$")]
    about: str = ""
    when: When
    item: RuleItem
    examples: Annotated[tuple[Example, ...], Field(min_length=1, max_length=50)]
    """At least one: they are tried whenever the rules are loaded."""


class RuleBook(FrozenModel):
    """A file of rules."""

    version: Literal[1]
    rules: Annotated[tuple[PlanningRule, ...], Field(max_length=MAX_RULES)]

    @model_validator(mode="after")
    def _names_are_unique(self) -> RuleBook:
        names = [rule.name for rule in self.rules]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two rules are named {twice!r}; rename one")
        return self
