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
from podium.jobs.sense.planning.rule_language import Example, Rule, RuleBook
from podium.jobs.sense.planning.rule_matcher import (
    filled,
    finds,
    gaps_left,
    naming_templates,
    sample_filled,
)

SOURCE = "podium_rules"
MAX_OF_A_RULE = 20
_ROOM = MAX_BYTES - 100_000
"""For items; the rest of a plan is small."""
_EXAMPLE_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def plan_by_rules(rules: RuleBook | Sequence[Rule], bundle: Bundle, *, now: datetime) -> Json:
    """A plan of schema v1, with the most urgent first. Every item of it fits the schema."""
    chosen = rules.rules if isinstance(rules, RuleBook) else rules
    made = _Made()
    for rule in chosen:
        made.take(rule, bundle, now)
    kept = [*made.kept()]
    return {
        "timestamp": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": SOURCE,
        "context_summary": made.summary(len(kept)),
        "items": kept,
    }


class _Made:
    """The items so far."""

    def __init__(self) -> None:
        self._items: list[tuple[int, Json]] = []
        self._seen: set[str] = set()
        self._counts: dict[str, int] = {}
        self._beyond = 0

    def take(self, rule: Rule, bundle: Bundle, now: datetime) -> None:
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
            if key not in self._seen:
                self._seen.add(key)
                self._counts[rule.name] = self._counts.get(rule.name, 0) + 1
                self._items.append((-PRIORITIES.index(rule.item.priority), item))

    def kept(self) -> Iterator[Json]:
        """The items, the most urgent first, as many as a plan may have."""
        room = _ROOM
        ordered = [item for _, item in sorted(self._items, key=lambda pair: pair[0])]
        for item in ordered[:MAX_ITEMS]:
            room -= len(json.dumps(item, ensure_ascii=False).encode()) + 2
            if room > 0:
                yield item

    def summary(self, kept: int) -> str:
        if not self._items:
            return "No rule found anything that needs work."
        found = ", ".join(f"{name} ({count})" for name, count in self._counts.items())
        left_out = self._beyond + len(self._items) - kept
        more = f"; {left_out} more did not fit into the plan" if left_out else ""
        return f"Rules that found something: {found}{more}."


# --- what rules say of themselves --------------------------------------------------------------


class RuleFault(NamedTuple):
    """Something wrong with a rule, and the key it is about."""

    path: tuple[str | int, ...]
    problem: str


def rule_faults(book: RuleBook) -> list[RuleFault]:
    """Rules that could never give an item, and examples that do not hold."""
    faults: list[RuleFault] = []
    for number, rule in enumerate(book.rules):
        place = ("rules", number)
        try:
            read_item(0, sample_filled(rule))
        except (Misfit, ValueError) as error:
            faults.append(RuleFault((*place, "item"), f"gives no item that can be used: {error}"))
            continue
        faults += [RuleFault((*place, *path), problem) for path, problem in _nowhere(rule)]
        for at, example in enumerate(rule.examples):
            if problem := _unlike(rule, example):
                faults.append(RuleFault((*place, "examples", at), problem))
    return faults


def _nowhere(rule: Rule) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Placeholders in names that no example fills: all finds would share one name that says nothing."""
    found = [
        find
        for example in rule.examples
        for find in finds(rule.when, _bundle(rule, example), _EXAMPLE_NOW)
    ]
    for path, template in naming_templates(rule) if found else ():
        for gap in gaps_left(template, found):
            problem = (
                f"{{{gap}}} leads nowhere in the rule's own examples; mend it, or give it a default as in "
                f"{{{gap}|'x'}}"
            )
            yield path, problem


def _unlike(rule: Rule, example: Example) -> str:
    """How what a rule gives differs from what its example expects; empty when it does not."""
    plan = plan_by_rules([rule], _bundle(rule, example), now=_EXAMPLE_NOW)
    titles = tuple(_title(item) for item in plan["items"])
    if isinstance(example.expect, int):
        if len(titles) == example.expect:
            return ""
        items = "item" if example.expect == 1 else "items"
        return f"the example expects {example.expect} {items}, and the rule gives {len(titles)}"
    if titles == example.expect:
        return ""
    return f"the example expects {list(example.expect)}, and the rule gives {list(titles)}"


def _title(item: Json) -> str:
    said = item.get("wo_suggestion") or {}
    return str(said.get("title") or item["target"])


def _bundle(rule: Rule, example: Example) -> Bundle:
    found: dict[str, list[Sensed]] = {}
    for given in example.sensed:
        source = given.source or rule.when.sources[0]
        sensed = Sensed(**{**given.model_dump(), "source": source})
        found.setdefault(source, []).append(sensed)
    looks = (
        Look(source=name, found=tuple(each), total=len(each), mark=digest_of(name))
        for name, each in found.items()
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

    Raises `ConfigInvalid` with every fault at its line.
    """
    return _shipped() if file is None else _tried(read_located(file))


def _tried(located: Located) -> LoadedRules:
    book = located.validated(RuleBook)
    if faults := rule_faults(book):
        raise ConfigInvalid(located.file, [located.fault(*fault) for fault in faults])
    return LoadedRules(located.file, book)


def rules_file(configuration: Configuration) -> Path | None:
    """The file a project names for its rules. None: it names none. Raises `BadInput` for one outside."""
    named = str(flow_options(configuration, "sense").get("rules") or "")
    if not named:
        return None
    root = configuration.folders.project.resolve()
    file = (root / named).resolve()
    if not file.is_relative_to(root):
        raise BadInput(f"rules {named!r} lie outside the project; keep them in it")
    return file


@cache
def _shipped() -> LoadedRules:
    place = files("podium.jobs.sense") / SHIPPED
    return _tried(parse_located(place.read_bytes(), SHIPPED))
