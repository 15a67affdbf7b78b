"""The gaps of a rule's item filled with what was found: cleaned, bounded, never evaluated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from podium.domain.model import Json
from podium.domain.sensing import Sensed
from podium.flows.sense.cleaning import clean_line, clean_text, cut, id_part
from podium.flows.sense.plan_schema import (
    LONGEST_SUMMARY,
    LONGEST_TARGET,
    LONGEST_TASK,
    LONGEST_TITLE,
)
from podium.flows.sense.rule_finding import Find
from podium.flows.sense.rule_language import Placeholder, Rule, RuleSuggestion, template_parts

LONGEST_VALUE = 500
"""Characters of one found value."""
_LONGEST_HINT = 80
_NAMES = ("path", "to", "session")
"""Fields of operations in which values become parts of names, so that none can lead elsewhere."""
_FIXED = ("op", "command", "tool")
"""Fields that sensed words have no say in: they decide what is done."""

Tidy = Callable[[str], str]


def filled(rule: Rule, find: Find) -> dict[str, Json]:
    """The item a rule gives for a find."""
    item: dict[str, Json] = {
        "type": rule.item.type,
        "priority": rule.item.priority,
        # Cleaned again: a cut may leave half of a joined character.
        "target": clean_line(cut(_line(rule.item.target, find), LONGEST_TARGET)) or "unknown",
        "action": rule.item.action,
    }
    if rule.item.wo_suggestion is not None:
        item["wo_suggestion"] = _suggestion(rule, rule.item.wo_suggestion, find)
    return item


def sample_filled(rule: Rule) -> dict[str, Json]:
    """The item for a find that says nothing: what is left of it is the rule's own."""
    _check_fixed(rule)
    return filled(rule, Find(Sensed(source="sample", place="sample"), None))


def naming_templates(rule: Rule) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Templates that become names of orders, files and sessions, each with its place in the rule."""
    said = rule.item.wo_suggestion
    if said is None:
        return
    place = ("item", "wo_suggestion")
    yield (*place, "wo_id_hint"), said.wo_id_hint
    for number, op in enumerate(said.ops):
        for name in _NAMES:
            if isinstance(template := op.get(name), str):
                yield (*place, "ops", number, name), template


def gaps_left(template: str, found: Sequence[Find]) -> list[str]:
    """Placeholders without a default that lead nowhere in any of these finds."""
    gaps = [part for part in template_parts(template) if isinstance(part, Placeholder)]
    return [
        "|".join(".".join(path) for path in gap.paths)
        for gap in gaps
        if not gap.default and not any(_found(gap, find, clean_text) for find in found)
    ]


def _suggestion(rule: Rule, said: RuleSuggestion, find: Find) -> dict[str, Json]:
    hint = _fill(said.wo_id_hint, find, id_part)[:_LONGEST_HINT].strip("-_")
    return {
        "wo_id_hint": hint,
        "title": cut(_line(said.title, find), LONGEST_TITLE) or rule.name,
        "summary": cut(_text(said.summary, find), LONGEST_SUMMARY),
        "tasks": [cut(_text(task, find), LONGEST_TASK) for task in said.tasks],
        **({"ops": [_operation(op, find) for op in said.ops]} if said.ops else {}),
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


def _check_fixed(rule: Rule) -> None:
    for op in rule.item.wo_suggestion.ops if rule.item.wo_suggestion else ():
        for name in _FIXED:
            words = op.get(name)
            for text in words if isinstance(words, list) else [words]:
                if isinstance(text, str) and _has_gap(text):
                    raise ValueError(f"`{name}` of an operation takes no placeholders")


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
        _found(part, find, tidy) if isinstance(part, Placeholder) else part
        for part in template_parts(template)
    )
    return "".join(parts)


def _found(gap: Placeholder, find: Find, tidy: Tidy) -> str:
    for path in gap.paths:
        for value in find.values((path,)):
            # More than is shown is not even looked at.
            text = cut(clean_text(_words(value)[: LONGEST_VALUE * 4]), LONGEST_VALUE)
            if text:
                return tidy(text)
    return tidy(gap.default)


def _words(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False, default=str)
