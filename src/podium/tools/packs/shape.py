"""Shape of a registry, checked with plain error messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError

from podium.core.decisions import Tier
from podium.core.model import FrozenModel, Json
from podium.core.packs import (
    ContextShape,
    Dependency,
    DomainRow,
    Estimate,
    PackRegistry,
    PackSetting,
    PackTool,
    RowCheck,
    SaferAlternative,
    Skill,
    SkillStep,
    TierExample,
    Utterance,
)
from podium.tools.packs.places import pointer
from podium.tools.packs.reading import ProblemCollector

_MODELS: Mapping[tuple[str, ...], type[FrozenModel]] = {
    (): PackRegistry,
    ("settings",): PackSetting,
    ("domains",): DomainRow,
    ("tier_examples",): TierExample,
    ("contexts",): ContextShape,
    ("tools",): PackTool,
    ("tools", "examples"): Utterance,
    ("tools", "depends_on"): Dependency,
    ("tools", "safer_alternative"): SaferAlternative,
    ("tools", "cost"): Estimate,
    ("tools", "verify"): RowCheck,
    ("skills",): Skill,
    ("skills", "examples"): Utterance,
    ("skills", "steps"): SkillStep,
}
"""Model at each path: its fields are the valid keys there."""

_HANDLER_FORMS = 'must be `module:function`, {"http": {…}} or {"mcp": {…}}'
_TIERS = ", ".join(str(tier) for tier in Tier)
_PATTERN_DESCRIPTIONS = {
    "pack": "lower-case letters, digits, `_` and `-`, beginning with a letter",
    "name": "a domain and a verb in lower case with a dot between, such as quote.finalize",
    "setting": "capitals, digits and `_`, such as SMTP_PASSWORD",
}
_KINDS = {
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "bool_type": "must be true or false",
    "float_type": "must be a number",
    "string_too_short": "is empty; say something there",
    "missing": "is missing",
}


def registry_of(data: Json, problems: ProblemCollector) -> PackRegistry | None:
    """Return the registry, or None with every problem reported."""
    if not isinstance(data, dict):
        problems.add("", "must be an object, with `pack`, `version`, `domains` and `tools`")
        return None
    # Editors find the published schema by this key; it says nothing about the pack.
    data = {name: value for name, value in data.items() if name != "$schema"}
    for location, problem in _tier_problems(data):
        problems.add(location, problem)
    try:
        # As JSON: a strict model then still takes lists for tuples and words for tiers.
        registry = PackRegistry.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _add(data, detail, problems)
        return None
    return None if problems.problems else registry


def _add(data: Json, detail: Mapping[str, Json], problems: ProblemCollector) -> None:
    loc: tuple[str | int, ...] = tuple(detail["loc"])
    path = _as_written(data, loc)
    if detail["type"] == "missing":
        path = (*path, loc[-1])
    elif path and path[-1] in ("tier", "default_tier"):
        return  # said already, in better words
    location, problem = pointer(path), _problem(path, detail)
    # A union has a complaint for each of its branches.
    if not any(
        (earlier.pointer, earlier.problem) == (location, problem) for earlier in problems.problems
    ):
        problems.add(location, problem)


def _as_written(data: Json, loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The path as it stands in the file: unions add the name of a branch, which is left out."""
    path: tuple[str | int, ...] = ()
    for part in loc:
        inner = _inside(data, part)
        if inner is not None:
            path, data = (*path, part), inner[0]
    return path


def _inside(data: Json, part: str | int) -> tuple[Json] | None:
    if isinstance(data, dict) and part in data:
        return (data[part],)
    if isinstance(data, list) and isinstance(part, int) and part < len(data):
        return (data[part],)
    return None


def _problem(path: tuple[str | int, ...], detail: Mapping[str, Json]) -> str:
    kind, value = str(detail["type"]), detail.get("input")
    if path[2:] == ("handler",) and kind != "missing":
        return _HANDLER_FORMS
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "string_pattern_mismatch":
        return f"{_short(value)} cannot be it; write {_PATTERN_DESCRIPTIONS[_pattern_of(path)]}"
    if kind in _KINDS:
        return _KINDS[kind] + ("" if kind.startswith(("missing", "string_too")) else _not(value))
    message = str(detail["msg"]).removeprefix("Input ")
    return f"{message[:1].lower()}{message[1:]}{_not(value)}"


def _unknown_key(path: tuple[str | int, ...]) -> str:
    key = str(path[-1])
    keys = [*_model_at(path[:-1]).model_fields]
    near = get_close_matches(key, keys, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(keys)}"
    return f"there is no key {key[:60]!r} here; {hint}"


def _model_at(path: tuple[str | int, ...]) -> type[BaseModel]:
    return _MODELS[tuple(part for part in path if isinstance(part, str))]


def _pattern_of(path: tuple[str | int, ...]) -> str:
    if path == ("pack",):
        return "pack"
    return "setting" if path[0] == "settings" else "name"


def _tier_problems(data: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Tiers that are not written as T0 to T4. Numbers are not taken: `2` reads like a count."""
    for part, key in (("domains", "default_tier"), ("tier_examples", "tier"), ("tools", "tier")):
        rows = data.get(part)
        for number, row in enumerate(rows if isinstance(rows, list) else ()):
            tier = row.get(key, "T0") if isinstance(row, dict) else "T0"
            if not isinstance(tier, str) or tier not in Tier.__members__:
                yield pointer((part, number, key)), f"{_short(tier)} is no tier; one of {_TIERS}"


def _not(value: Json) -> str:
    return "" if isinstance(value, dict | list) else f", not {_short(value)}"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
