"""Planner by rules, from a project's file or the shipped one: no model, the same plan for the same state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options
from podium.config.located import Located
from podium.config.located_yaml import parse_located, read_located
from podium.core.decisions import digest_of
from podium.core.errors import BadInput, ConfigInvalid
from podium.core.model import Json
from podium.jobs.sense.models import Bundle, Look, Sensed
from podium.jobs.sense.planning.plan_parser import Misfit, identity, read_item
from podium.jobs.sense.planning.plan_schema import MAX_BYTES, MAX_ITEMS, PRIORITIES
from podium.jobs.sense.planning.rule_language import Example, PlanningRule, RuleBook
from podium.jobs.sense.planning.rule_matcher import (
    filled,
    finds,
    gaps_left,
    naming_templates,
    sample_filled,
)

SOURCE = "podium_rules"
MAX_OF_A_RULE = 20
_ITEMS_BYTES = MAX_BYTES - 100_000
"""For items; the rest of a plan is small."""
_EXAMPLE_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def plan_by_rules(
    rules: RuleBook | Sequence[PlanningRule], bundle: Bundle, *, now: datetime
) -> Json:
    """A plan of schema v1, with the most urgent first. Every item of it fits the schema."""
    chosen = rules.rules if isinstance(rules, RuleBook) else rules
    made = _Made()
    for rule in chosen:
        made.take(rule, bundle, now)
    items = [*made.fitting_items()]
    return {
        "timestamp": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": SOURCE,
        "context_summary": made.summary(len(items)),
        "items": items,
    }


class _Made:
    """The items so far."""

    def __init__(self) -> None:
        self._items: list[tuple[int, Json]] = []
        self._identities: set[str] = set()
        self._counts: dict[str, int] = {}
        self._beyond = 0

    def take(self, rule: PlanningRule, bundle: Bundle, now: datetime) -> None:
        for find in finds(rule.when, bundle, now):
            if self._counts.get(rule.name, 0) >= MAX_OF_A_RULE:
                self._beyond += 1
                continue
            item = filled(rule, find)
            try:
                key = identity(read_item(0, item))
            except Misfit:
                self._beyond += 1
                continue
            if key not in self._identities:
                self._identities.add(key)
                self._counts[rule.name] = self._counts.get(rule.name, 0) + 1
                self._items.append((-PRIORITIES.index(rule.item.priority), item))

    def fitting_items(self) -> Iterator[Json]:
        """The items, the most urgent first, as many as a plan may have."""
        bytes_left = _ITEMS_BYTES
        ordered = [item for _, item in sorted(self._items, key=lambda pair: pair[0])]
        for item in ordered[:MAX_ITEMS]:
            bytes_left -= len(json.dumps(item, ensure_ascii=False).encode()) + 2
            if bytes_left > 0:
                yield item

    def summary(self, item_count: int) -> str:
        if not self._items:
            return "No rule found anything that needs work."
        counts = ", ".join(f"{name} ({count})" for name, count in self._counts.items())
        left_out = self._beyond + len(self._items) - item_count
        more = f"; {left_out} more did not fit into the plan" if left_out else ""
        return f"Rules that found something: {counts}{more}."


# --- what rules say of themselves --------------------------------------------------------------


class RuleProblem(NamedTuple):
    """Something wrong with a rule, and the key it is about."""

    path: tuple[str | int, ...]
    problem: str


def rule_problems(book: RuleBook) -> list[RuleProblem]:
    """Rules that could never give an item, and examples that do not hold."""
    problems: list[RuleProblem] = []
    for number, rule in enumerate(book.rules):
        path = ("rules", number)
        try:
            read_item(0, sample_filled(rule))
        except (Misfit, ValueError) as error:
            problems.append(RuleProblem((*path, "item"), f"does not give a usable item: {error}"))
            continue
        problems += [RuleProblem((*path, *inner), problem) for inner, problem in _nowhere(rule)]
        for at, example in enumerate(rule.examples):
            if problem := _unlike(rule, example):
                problems.append(RuleProblem((*path, "examples", at), problem))
    return problems


def _nowhere(rule: PlanningRule) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Placeholders in names that no example fills: all finds would share one name that says nothing."""
    finds_in_examples = [
        find
        for example in rule.examples
        for find in finds(rule.when, _bundle(rule, example), _EXAMPLE_NOW)
    ]
    for path, template in naming_templates(rule) if finds_in_examples else ():
        for gap in gaps_left(template, finds_in_examples):
            problem = (
                f"{{{gap}}} matches nothing in the rule's own examples; fix it, or add a default, such as "
                f"{{{gap}|'x'}}"
            )
            yield path, problem


def _unlike(rule: PlanningRule, example: Example) -> str:
    """Describe the difference between the rule's items and the example's; empty if there is none."""
    plan = plan_by_rules([rule], _bundle(rule, example), now=_EXAMPLE_NOW)
    titles = tuple(_title(item) for item in plan["items"])
    if isinstance(example.expect, int):
        if len(titles) == example.expect:
            return ""
        items = "item" if example.expect == 1 else "items"
        return f"the example expects {example.expect} {items}, but the rule gives {len(titles)}"
    if titles == example.expect:
        return ""
    return f"the example expects {list(example.expect)}, but the rule gives {list(titles)}"


def _title(item: Json) -> str:
    suggestion = item.get("wo_suggestion") or {}
    return str(suggestion.get("title") or item["target"])


def _bundle(rule: PlanningRule, example: Example) -> Bundle:
    by_source: dict[str, list[Sensed]] = {}
    for sensed_example in example.sensed:
        source = sensed_example.source or rule.when.sources[0]
        sensed = Sensed(**{**sensed_example.model_dump(), "source": source})
        by_source.setdefault(source, []).append(sensed)
    looks = (
        Look(source=name, found=tuple(readings), total=len(readings), mark=digest_of(name))
        for name, readings in by_source.items()
    )
    return Bundle(root="/example", looks=tuple(looks))


SHIPPED = "default_rules.yaml"


@dataclass(frozen=True)
class LoadedRules:
    """Rules whose examples hold, and where they come from."""

    name: str
    book: RuleBook


def load_rules(file: Path | None = None) -> LoadedRules:
    """Rules of a file, each tried on its own examples; without a file those that come with Podium.

    Raises `ConfigInvalid` with every problem at its line.
    """
    return _shipped() if file is None else _tried(read_located(file))


def _tried(located: Located) -> LoadedRules:
    book = located.validated(RuleBook)
    if problems := rule_problems(book):
        raise ConfigInvalid(located.file, [located.problem(*problem) for problem in problems])
    return LoadedRules(located.file, book)


def rules_file(configuration: Configuration) -> Path | None:
    """The file a project names for its rules. None: it names none. Raises `BadInput` for one outside."""
    named = str(flow_options(configuration, "sense").get("rules") or "")
    if not named:
        return None
    root = configuration.folders.project.resolve()
    file = (root / named).resolve()
    if not file.is_relative_to(root):
        raise BadInput(f"rules file {named!r} is outside the project; move it into the project")
    return file


@cache
def _shipped() -> LoadedRules:
    resource = files("podium.jobs.sense") / SHIPPED
    return _tried(parse_located(resource.read_bytes(), SHIPPED))
