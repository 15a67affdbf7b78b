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

MAX_FAULTS = 500
"""That are told of one file."""
MAX_DEPTH = 100
"""How far values may be nested. Nothing a person writes comes near."""


@dataclass
class ProblemCollector:
    """Collects what is wrong in one file, each at its line."""

    file: str
    text: str = ""
    found: list[PackProblem] = field(default_factory=list)

    def add(self, pointer: str, problem: str) -> None:
        """Note a fault. Raises `PackInvalid` when there are more than anybody would read."""
        line = self._places.line(pointer) if self._places else None
        self.found.append(PackProblem(self.file, pointer, problem, line))
        if len(self.found) >= MAX_FAULTS:
            more = PackProblem(self.file, "", f"has more faults than these {MAX_FAULTS}")
            raise PackInvalid([*self.in_order(), more])

    @cached_property
    def _places(self) -> JsonPositions | None:
        return JsonPositions(self.text) if self.text else None

    def in_order(self) -> list[PackProblem]:
        return sorted(self.found, key=lambda fault: fault.line or 0)


@dataclass(frozen=True)
class JsonFile:
    """A JSON file of a pack, as it was read."""

    data: Json
    faults: ProblemCollector


def read_text(files: PackSnapshot, name: str) -> str:
    """The file's text. Raises `PackInvalid` when it cannot be read, is huge or is no UTF-8."""
    try:
        return files.content(name).decode("utf-8")
    except UnicodeDecodeError as error:
        words = f"is no UTF-8 text (byte {error.start}); save it as UTF-8"
        raise _one_fault(str(files.folder / name), words) from None


def read_json(files: PackSnapshot, name: str) -> JsonFile:
    """The file's data. Raises `PackInvalid` when it is no JSON, or says a key twice."""
    text, shown = read_text(files, name), str(files.folder / name)
    faults = ProblemCollector(shown, text)
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
        words = f"is no JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise PackInvalid([PackProblem(shown, "", words, error.lineno)]) from None
    except RecursionError:
        raise _one_fault(shown, f"is nested more than {MAX_DEPTH} deep") from None
    except ValueError as error:
        raise _one_fault(shown, str(error)) from None
    if doubled:
        for place in JsonPositions(text).doubled:
            faults.add(place, "this key stands there twice; keep one of the two")
        raise PackInvalid(faults.in_order())
    return JsonFile(data, faults)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"is no JSON: {word[:40]} is no number of JSON's")


def _number(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _depth(data: Json) -> int:
    """How deep the value is nested, counted only as far as it matters."""
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


def _one_fault(shown: str, problem: str) -> PackInvalid:
    return PackInvalid([PackProblem(shown, "", problem)])
