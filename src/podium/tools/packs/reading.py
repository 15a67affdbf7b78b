"""Reads a pack's JSON files: strictly, with the place of whatever is wrong in them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

from podium.core.errors import PackInvalid, PackProblem
from podium.core.model import Json
from podium.tools.packs.files import PackSnapshot
from podium.tools.packs.places import JsonPositions

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
        line = self._positions.line(pointer) if self._positions else None
        self.problems.append(PackProblem(self.file, pointer, problem, line))
        if len(self.problems) >= MAX_PROBLEMS:
            more = PackProblem(self.file, "", f"has more faults than these {MAX_PROBLEMS}")
            raise PackInvalid([*self.in_order(), more])

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
        problem = f"is no UTF-8 text (byte {error.start}); save it as UTF-8"
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
        problem = f"is no JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise PackInvalid([PackProblem(path, "", problem, error.lineno)]) from None
    except RecursionError:
        raise _invalid_file(path, f"is nested more than {MAX_DEPTH} deep") from None
    except ValueError as error:
        raise _invalid_file(path, str(error)) from None
    if doubled:
        for location in JsonPositions(text).doubled:
            problems.add(location, "this key stands there twice; keep one of the two")
        raise PackInvalid(problems.in_order())
    return JsonFile(data, problems)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"is no JSON: {text[:40]} is no number of JSON's")


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
