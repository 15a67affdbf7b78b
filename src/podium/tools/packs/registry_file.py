"""A pack's registry file and other JSON files: read strictly, with the line of every problem, checked for their shape; and the published JSON Schema of a registry."""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise
from json import JSONDecoder
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from pydantic import BaseModel, ValidationError

from podium.core import packs
from podium.core.decisions import Tier
from podium.core.errors import PackInvalid, PackProblem
from podium.core.model import FrozenModel, Json
from podium.core.packs import (
    ContextShape,
    Dependency,
    DomainRow,
    Estimate,
    PackRegistry,
    PackRule,
    PackSetting,
    PackTool,
    RowCheck,
    SaferAlternative,
    Skill,
    SkillStep,
    TierExample,
    Utterance,
)
from podium.tools.packs import handlers
from podium.tools.packs.files import REGISTRY_FILE, PackSnapshot, snapshot_of
from podium.tools.packs.handlers import (
    HANDLER_FORMS,
    HttpHandler,
    McpHandler,
    RecordRule,
    RecordsHandler,
    ServiceHandler,
)

_BLANKS = re.compile(r"[ \t\n\r]*")
_SCALARS = JSONDecoder()


def pointer(parts: Iterable[str | int]) -> str:
    """A JSON pointer (RFC 6901), such as `/tools/3/tier`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def parent(of: str) -> str:
    """The pointer of what holds this one; empty at the top."""
    return of.rpartition("/")[0]


class JsonPositions:
    """The lines of a JSON text that `json.loads` has read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: dict[str, int] = {}
        self.doubled: list[str] = []
        """Pointers of keys that their object has had already."""
        self._newlines = _LineCounter(text)
        self._value(self._past_blanks(0), "")

    def line(self, of: str) -> int | None:
        """Return the line of a pointer, from 1; of a missing one, that of its nearest parent."""
        while of and of not in self._lines:
            of = parent(of)
        return self._lines.get(of)

    def _value(self, at: int, location: str) -> int:
        """Walk over the value that begins here. Gives where it ends."""
        self._lines.setdefault(location, self._newlines.line(at))
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at, location)
        if first == "[":
            return self._list(at, location)
        return _SCALARS.raw_decode(self._text, at)[1]

    def _object(self, at: int, location: str) -> int:
        keys: set[str] = set()
        at = self._past_blanks(at + 1)
        while self._text[at] != "}":
            key, behind = _SCALARS.raw_decode(self._text, at)
            here = f"{location}{pointer([key])}"
            if key in keys:
                self.doubled.append(here)
            keys.add(key)
            self._lines[here] = self._newlines.line(at)
            colon = self._past_blanks(behind)
            at = self._past_comma(self._value(self._past_blanks(colon + 1), here))
        return at + 1

    def _list(self, at: int, location: str) -> int:
        number = 0
        at = self._past_blanks(at + 1)
        while self._text[at] != "]":
            at = self._past_comma(self._value(at, f"{location}/{number}"))
            number += 1
        return at + 1

    def _past_comma(self, at: int) -> int:
        at = self._past_blanks(at)
        return self._past_blanks(at + 1) if self._text[at] == "," else at

    def _past_blanks(self, at: int) -> int:
        blanks = _BLANKS.match(self._text, at)
        return blanks.end() if blanks else at


class _LineCounter:
    """Counts lines for positions that only grow."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def line(self, at: int) -> int:
        self._line += self._text.count("\n", self._at, at)
        self._at = at
        return self._line


MAX_PROBLEMS = 500
"""Limit on the problems reported for one file."""
MAX_DEPTH = 100
"""Limit on nested values. Nothing a person writes comes near."""


@dataclass
class ProblemCollector:
    """Collects the problems of one file, each at its line."""

    file: str
    text: str = ""
    problems: list[PackProblem] = field(default_factory=list)

    def add(self, pointer: str, problem: str) -> None:
        """Add a problem. Raises `PackInvalid` when there are more than anybody would read."""
        self.problems.append(self.problem(pointer, problem))
        if len(self.problems) >= MAX_PROBLEMS:
            more = PackProblem(self.file, "", f"has more problems than these {MAX_PROBLEMS}")
            raise PackInvalid([*self.in_order(), more])

    def problem(self, pointer: str, problem: str) -> PackProblem:
        """A problem with its line, without adding it."""
        line = self._positions.line(pointer) if self._positions else None
        return PackProblem(self.file, pointer, problem, line)

    @cached_property
    def _positions(self) -> JsonPositions | None:
        return JsonPositions(self.text) if self.text else None

    def in_order(self) -> list[PackProblem]:
        return sorted(self.problems, key=lambda problem: problem.line or 0)


@dataclass(frozen=True)
class JsonFile:
    """A JSON file of a pack, as it was read."""

    data: Json
    problems: ProblemCollector


def read_text(files: PackSnapshot, name: str) -> str:
    """The file's text. Raises `PackInvalid` when it cannot be read, is huge or is no UTF-8."""
    try:
        return files.content(name).decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"is not valid UTF-8 (byte {error.start}); save it as UTF-8"
        raise _invalid_file(str(files.folder / name), problem) from None


def read_json(files: PackSnapshot, name: str) -> JsonFile:
    """The file's data. Raises `PackInvalid` when it is no JSON, or says a key twice."""
    text, path = read_text(files, name), str(files.folder / name)
    problems = ProblemCollector(path, text)
    doubled = False

    def once(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
        nonlocal doubled
        made = dict(pairs)
        doubled = doubled or len(made) < len(pairs)
        return made

    try:
        data = json.loads(
            text, object_pairs_hook=once, parse_constant=_no_number, parse_float=_number
        )
        if _depth(data) > MAX_DEPTH:
            raise RecursionError
    except json.JSONDecodeError as error:
        problem = f"is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise PackInvalid([PackProblem(path, "", problem, error.lineno)]) from None
    except RecursionError:
        raise _invalid_file(path, f"is nested more than {MAX_DEPTH} deep") from None
    except ValueError as error:
        raise _invalid_file(path, str(error)) from None
    if doubled:
        for location in JsonPositions(text).doubled:
            problems.add(location, "this key is present twice; remove one")
        raise PackInvalid(problems.in_order())
    return JsonFile(data, problems)


def registry_problems(folder: Path) -> ProblemCollector:
    """An empty collector for problems of a pack's registry, which finds their lines. Raises as `read_json`."""
    return read_json(snapshot_of(folder), REGISTRY_FILE).problems


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"is not valid JSON: {text[:40]} is not a JSON number")


def _number(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _depth(data: Json) -> int:
    """Count how deep the value is nested, as far as it matters."""
    level, depth = [data], 0
    while level and depth <= MAX_DEPTH:
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        depth += 1
    return depth


def _invalid_file(path: str, problem: str) -> PackInvalid:
    return PackInvalid([PackProblem(path, "", problem)])


_MODELS: Mapping[tuple[str, ...], type[FrozenModel]] = {
    (): PackRegistry,
    ("settings",): PackSetting,
    ("domains",): DomainRow,
    ("tier_examples",): TierExample,
    ("contexts",): ContextShape,
    ("rules",): PackRule,
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

_TIERS = ", ".join(str(tier) for tier in Tier)
_PATTERN_DESCRIPTIONS = {
    "pack": "lower-case letters, digits, `_` and `-`, beginning with a letter",
    "name": "a lower-case domain and verb separated by a dot, such as quote.finalize",
    "rule": "lower-case letters, digits and `_`, beginning with a letter",
    "setting": "capitals, digits and `_`, such as SMTP_PASSWORD",
}
_KINDS = {
    "string_type": "must be a string",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "bool_type": "must be true or false",
    "float_type": "must be a number",
    "string_too_short": "must not be empty",
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
        return HANDLER_FORMS
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "string_pattern_mismatch":
        return f"{_short(value)} is not valid; use {_PATTERN_DESCRIPTIONS[_pattern_of(path)]}"
    if kind in _KINDS:
        return _KINDS[kind] + ("" if kind.startswith(("missing", "string_too")) else _not(value))
    message = str(detail["msg"]).removeprefix("Input ")
    return f"{message[:1].lower()}{message[1:]}{_not(value)}"


def _unknown_key(path: tuple[str | int, ...]) -> str:
    key = str(path[-1])
    keys = [*_model_at(path[:-1]).model_fields]
    near = get_close_matches(key, keys, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(keys)}"
    return f"unknown key {key[:60]!r}; {hint}"


def _model_at(path: tuple[str | int, ...]) -> type[BaseModel]:
    return _MODELS[tuple(part for part in path if isinstance(part, str))]


def _pattern_of(path: tuple[str | int, ...]) -> str:
    if path == ("pack",):
        return "pack"
    if path[0] == "rules":
        return "rule"
    return "setting" if path[0] == "settings" else "name"


def _tier_problems(data: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Tiers that are not written as T0 to T4. Numbers are not taken: `2` reads like a count."""
    for part, key in (("domains", "default_tier"), ("tier_examples", "tier"), ("tools", "tier")):
        rows = data.get(part)
        for number, row in enumerate(rows if isinstance(rows, list) else ()):
            tier = row.get(key, "T0") if isinstance(row, dict) else "T0"
            if not isinstance(tier, str) or tier not in Tier.__members__:
                yield (
                    pointer((part, number, key)),
                    f"{_short(tier)} is not a tier; use one of {_TIERS}",
                )


def _not(value: Json) -> str:
    return "" if isinstance(value, dict | list) else f", not {_short(value)}"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def published_schema() -> dict[str, Json]:
    """Return the JSON Schema of `tools.registry.json`. `load_pack` checks more than a schema can say."""
    # Of what is written out: tiers are then the words T0 to T4.
    schema = PackRegistry.model_json_schema(mode="serialization")
    definitions: dict[str, Any] = schema["$defs"]
    for model in (HttpHandler, McpHandler, RecordRule, RecordsHandler):
        shape = model.model_json_schema(mode="serialization", ref_template="#/$defs/{model}")
        shape.pop("$defs", None)
        definitions[model.__name__] = shape
    definitions["PackTool"]["properties"]["handler"]["anyOf"] = _handler_choices()
    for name, descriptions in {
        **_field_descriptions(packs),
        **_field_descriptions(handlers),
    }.items():
        _describe(
            schema if name == PackRegistry.__name__ else definitions.get(name, {}), descriptions
        )
    editors = {"type": "string", "description": "Location of this schema, for editors."}
    schema["properties"] = {"$schema": editors, **schema["properties"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Podium tool registry",
    }


def _handler_choices() -> list[Json]:
    function = {"type": "string", "pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"}
    service = ServiceHandler.model_json_schema()
    wired = [
        _only(kind)
        for kind in (("http", HttpHandler), ("mcp", McpHandler), ("records", RecordsHandler))
    ]
    return [function, *wired, {**service, "description": "For packs that ship with Podium."}]


def _only(kind: tuple[str, type]) -> dict[str, Json]:
    name, model = kind
    return {
        "type": "object",
        "properties": {name: {"$ref": f"#/$defs/{model.__name__}"}},
        "required": [name],
        "additionalProperties": False,
    }


def _describe(schema: dict[str, Any], descriptions: dict[str, str]) -> None:
    for name, description in descriptions.items():
        if name in schema.get("properties", {}):
            schema["properties"][name]["description"] = description


def _field_descriptions(module: ModuleType) -> dict[str, dict[str, str]]:
    """Class → field → its description, the docstring beneath the field."""
    models = [
        node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef)
    ]
    return {model.name: dict(_documented_fields(model)) for model in models}


def _documented_fields(model: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for node, behind in pairwise(model.body):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        if isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant):
            yield node.target.id, inspect.cleandoc(str(behind.value.value)).replace("\n", " ")
