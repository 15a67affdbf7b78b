"""Matches of a rule in a bundle, and the rule's item with its gaps filled: cleaned, bounded, never evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import PurePosixPath

from podium.core.model import Json
from podium.core.regex_cost import pattern_cost
from podium.jobs.sense.models import Bundle, Sensed
from podium.jobs.sense.planning.bundle import clean_line, clean_text, cut, id_part
from podium.jobs.sense.planning.plan_schema import (
    MAX_SUMMARY,
    MAX_TARGET,
    MAX_TASK,
    MAX_TITLE,
)
from podium.jobs.sense.planning.rule_language import (
    Elsewhere,
    Path,
    Placeholder,
    PlanningRule,
    RuleClause,
    RuleSuggestion,
    When,
    paths_in,
    template_parts,
)

MAX_PARTS = 1_000
"""So many parts of one thing are looked at."""
_MAX_VALUES = 1_000
_MAX_TEXT = 2_000
_MAX_STEPS = 200_000
"""Of one search: a millisecond or two."""


@dataclass(frozen=True)
class Find:
    """One thing a rule is about: something sensed, or a part of it."""

    sensed: Sensed
    value: Json
    key: str = ""
    """Name or number of the part."""

    def values(self, paths: tuple[Path, ...]) -> list[Json]:
        """Return the values of the first path that leads somewhere. Null counts as absent."""
        for path in paths:
            values = [*islice(_walk(*self._start(path)), _MAX_VALUES)]
            if values:
                return values
        return []

    def _start(self, path: Path) -> tuple[Json, Path]:
        first, *rest = path
        facts = {
            "$key": self.key,
            "$value": None if isinstance(self.value, dict | list) else self.value,
            "$place": self.sensed.place,
            "$file": PurePosixPath(self.sensed.place).name.split(".")[0],
            "$source": self.sensed.source,
            "$why": self.sensed.why,
            "$condition": self.sensed.condition,
            "$top": self.sensed.content,
        }
        return (facts[first], tuple(rest)) if first in facts else (self.value, path)


def finds(when: When, bundle: Bundle, now: datetime) -> Iterator[Find]:
    """Yield everything a rule's `when` is true of, in the bundle's order."""
    for source in dict.fromkeys(when.sources):
        for sensed in bundle.sensed_by(source):
            if sensed.condition in when.conditions and when.stale in (None, sensed.stale):
                yield from (
                    part for part in _parts(when, sensed) if _holds(when, part, bundle, now)
                )


def _parts(when: When, sensed: Sensed) -> Iterator[Find]:
    whole = Find(sensed, sensed.content)
    if not when.parts:
        yield whole
    for text in when.parts:
        for group in whole.values(paths_in(text)):
            pairs = group.items() if isinstance(group, dict) else _numbered(group)
            for key, value in islice(pairs, MAX_PARTS):
                yield Find(sensed, value, str(key))


def _numbered(group: Json) -> Iterator[tuple[int, Json]]:
    return enumerate(group if isinstance(group, list) else (), 1)


def _holds(when: When, find: Find, bundle: Bundle, now: datetime) -> bool:
    judge = _Judge(find, bundle, now)
    return all(map(judge.holds, when.where)) and not any(map(judge.holds, when.unless))


@dataclass(frozen=True)
class _Judge:
    """Evaluates clauses for one find."""

    find: Find
    bundle: Bundle
    now: datetime

    def holds(self, clause: RuleClause) -> bool:
        values = self.find.values(paths_in(clause.path))
        if clause.missing:
            return not values
        return any(self._fits(clause, value) for value in values)

    def _fits(self, clause: RuleClause, value: Json) -> bool:
        checks = (
            clause.equals is None or _same(value, clause.equals),
            clause.not_ is None or not _same(value, clause.not_),
            clause.in_ is None or _is_among(value, clause.in_),
            clause.not_in is None or not _is_among(value, clause.not_in),
            clause.matches is None or _matches(clause.matches, value),
            _is_between(value, clause.min, clause.max),
            clause.rising is None or _is_rising(value),
            clause.older_than_seconds is None or self._is_older(value, clause.older_than_seconds),
            clause.absent_from is None or self._is_absent(value, clause.absent_from),
        )
        return all(checks)

    def _is_older(self, value: Json, seconds: float) -> bool:
        then = _datetime_of(value)
        return then is not None and (self.now - then).total_seconds() > seconds

    def _is_absent(self, value: Json, there: Elsewhere) -> bool:
        others = self.bundle.sensed_by(there.source)
        looked = any(look.source == there.source for look in self.bundle.looks)
        if not looked or len(others) < self.bundle.count(there.source):
            # What is not shown may be the one.
            return False
        if others and all(other.condition == "unreadable" for other in others):
            return False
        values = (
            one
            for other in others
            for one in Find(other, other.content).values(paths_in(there.path))
        )
        return not _is_among(value, [*values])


def _walk(value: Json, path: Path) -> Iterator[Json]:
    if not path:
        yield from () if value is None else (value,)
        return
    first, rest = path[0], path[1:]
    if first == "*":
        inner = value.values() if isinstance(value, dict) else value
        for item in inner if isinstance(value, dict | list) else ():
            yield from _walk(item, rest)
    elif isinstance(value, dict) and first in value:
        yield from _walk(value[first], rest)


def _same(value: Json, expected: Json) -> bool:
    if isinstance(value, str) and isinstance(expected, str):
        return value.strip().casefold() == expected.strip().casefold()
    # To Python, true is 1.
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    return bool(value == expected)


def _is_among(value: Json, allowed: Sequence[Json]) -> bool:
    return any(_same(value, item) for item in allowed)


def _matches(pattern: str, value: Json) -> bool:
    if isinstance(value, dict | list):
        return False
    cost = pattern_cost(pattern)
    longest = _MAX_TEXT
    while longest > 1 and cost.steps(longest) > _MAX_STEPS:
        longest //= 2
    return re.search(pattern, str(value)[:longest]) is not None


def _is_between(value: Json, least: float | None, most: float | None) -> bool:
    if least is None and most is None:
        return True
    number = _number(value)
    if number is None:
        return False
    return (least is None or number >= least) and (most is None or number <= most)


def _number(value: Json) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        # `91 %` is how many programs write it.
        value = value[:40].strip().removesuffix("%")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_rising(value: Json) -> bool:
    if not isinstance(value, list):
        return False
    readings = [_number(item) for item in value]
    numbers = [reading for reading in readings if reading is not None]
    if len(numbers) < 2 or len(numbers) < len(readings):
        return False
    return numbers == sorted(numbers) and numbers[-1] > numbers[0]


def _datetime_of(value: Json) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        then = datetime.fromisoformat(value[:40].strip())
    except ValueError:
        return None
    return then if then.tzinfo else then.replace(tzinfo=UTC)


MAX_VALUE = 500
"""Characters of one found value."""
_MAX_HINT = 80
_NAMES = ("path", "to", "session")
"""Fields of operations in which values become parts of names, so that none can lead elsewhere."""
_FIXED = ("op", "command", "tool")
"""Fields that sensed words have no say in: they decide what is done."""

Tidy = Callable[[str], str]


def filled(rule: PlanningRule, find: Find) -> dict[str, Json]:
    """The item a rule gives for a find."""
    item: dict[str, Json] = {
        "type": rule.item.type,
        "priority": rule.item.priority,
        # Cleaned again: a cut may leave half of a joined character.
        "target": clean_line(cut(_line(rule.item.target, find), MAX_TARGET)) or "unknown",
        "action": rule.item.action,
    }
    if rule.item.wo_suggestion is not None:
        item["wo_suggestion"] = _suggestion(rule, rule.item.wo_suggestion, find)
    return item


def sample_filled(rule: PlanningRule) -> dict[str, Json]:
    """The item for a find that says nothing: what is left of it is the rule's own."""
    _check_fixed(rule)
    return filled(rule, Find(Sensed(source="sample", place="sample"), None))


def naming_templates(rule: PlanningRule) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Templates that become names of orders, files and sessions, each with its place in the rule."""
    suggestion = rule.item.wo_suggestion
    if suggestion is None:
        return
    path = ("item", "wo_suggestion")
    yield (*path, "wo_id_hint"), suggestion.wo_id_hint
    for number, op in enumerate(suggestion.ops):
        for name in _NAMES:
            if isinstance(template := op.get(name), str):
                yield (*path, "ops", number, name), template


def gaps_left(template: str, finds: Sequence[Find]) -> list[str]:
    """Placeholders without a default that lead nowhere in any of these finds."""
    gaps = [part for part in template_parts(template) if isinstance(part, Placeholder)]
    return [
        "|".join(".".join(path) for path in gap.paths)
        for gap in gaps
        if not gap.default and not any(_gap_value(gap, find, clean_text) for find in finds)
    ]


def _suggestion(rule: PlanningRule, suggestion: RuleSuggestion, find: Find) -> dict[str, Json]:
    hint = _fill(suggestion.wo_id_hint, find, id_part)[:_MAX_HINT].strip("-_")
    return {
        "wo_id_hint": hint,
        "title": cut(_line(suggestion.title, find), MAX_TITLE) or rule.name,
        "summary": cut(_text(suggestion.summary, find), MAX_SUMMARY),
        "tasks": [cut(_text(task, find), MAX_TASK) for task in suggestion.tasks],
        **({"ops": [_operation(op, find) for op in suggestion.ops]} if suggestion.ops else {}),
    }


def _operation(op: dict[str, Json], find: Find) -> dict[str, Json]:
    return {name: value if name in _FIXED else _inside(name, value, find) for name, value in op.items()}  # fmt: skip


def _inside(name: str, value: Json, find: Find) -> Json:
    if isinstance(value, dict):
        return {key: _inside(name, inner, find) for key, inner in value.items()}
    if isinstance(value, list):
        return [_inside(name, inner, find) for inner in value]
    if not isinstance(value, str):
        return value
    return _fill(value, find, id_part if name in _NAMES else clean_text)


def _check_fixed(rule: PlanningRule) -> None:
    for op in rule.item.wo_suggestion.ops if rule.item.wo_suggestion else ():
        for name in _FIXED:
            value = op.get(name)
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str) and _has_gap(text):
                    raise ValueError(f"`{name}` of an operation cannot contain placeholders")


def _has_gap(text: str) -> bool:
    try:
        return any(isinstance(part, Placeholder) for part in template_parts(text))
    except ValueError:
        # A shell line may have braces of its own.
        return False


def _line(template: str, find: Find) -> str:
    return clean_line(_fill(template, find, clean_line))


def _text(template: str, find: Find) -> str:
    return clean_text(_fill(template, find, clean_text))


def _fill(template: str, find: Find, tidy: Tidy) -> str:
    parts = (
        _gap_value(part, find, tidy) if isinstance(part, Placeholder) else part
        for part in template_parts(template)
    )
    return "".join(parts)


def _gap_value(gap: Placeholder, find: Find, tidy: Tidy) -> str:
    for path in gap.paths:
        for value in find.values((path,)):
            # More than is shown is not even looked at.
            text = cut(clean_text(_text_of(value)[: MAX_VALUE * 4]), MAX_VALUE)
            if text:
                return tidy(text)
    return tidy(gap.default)


def _text_of(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False, default=str)
