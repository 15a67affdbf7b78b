"""Data of a settings file with the position of every key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from podium.core.errors import ConfigInvalid, ConfigProblem
from podium.core.model import Json

KeyPath = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True)
class FilePosition:
    """A spot in a file, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Located:
    """The data of a file, and where each key of it stands."""

    file: str
    data: dict[str, Json]
    positions: Mapping[KeyPath, FilePosition] = field(default_factory=dict)
    digest: str = ""
    """SHA-256 of the bytes it was read from, as `sha256:…`; empty when there was no file."""

    def position_of(self, path: KeyPath) -> FilePosition | None:
        """Position of a key; of a key that is not there, that of its nearest parent."""
        while path and path not in self.positions:
            path = path[:-1]
        return self.positions.get(path)

    def problem(self, path: KeyPath, problem: str) -> ConfigProblem:
        """A fault at the place of a key."""
        position = self.position_of(path)
        return ConfigProblem(
            problem,
            line=position.line if position else None,
            column=position.column if position else None,
            key=dotted(path),
        )

    def validated(self, model: type[ModelT]) -> ModelT:
        """The data as a model. Raises `ConfigInvalid` with every fault at its place."""
        try:
            # As JSON: strict models then still take lists for tuples and words for enums.
            return model.model_validate_json(json.dumps(self.data))
        except ValidationError as error:
            details = _without_echoes(error.errors(include_url=False))
            problems = [self._problem_of(model, detail) for detail in details]
            in_order = sorted(
                problems, key=lambda problem: (problem.line or 0, problem.column or 0)
            )
            raise ConfigInvalid(self.file, in_order) from None

    def _problem_of(self, model: type[BaseModel], detail: Mapping[str, Json]) -> ConfigProblem:
        location: KeyPath = tuple(detail["loc"])
        path = self._as_written(location)
        if detail["type"] == "extra_forbidden":
            return self.problem(
                path, f"unknown key {location[-1]!r}{_keys_beside(model, location)}"
            )
        if detail["type"] == "missing":
            return self.problem((*path, location[-1]), "is missing")
        # Values of environment variables may be secrets: those are never shown.
        value_text = "" if "env" in location else _short(detail.get("input"))
        return self.problem(path, f"{_lowered(str(detail['msg']))}{value_text}")

    def _as_written(self, location: KeyPath) -> KeyPath:
        """The path as it stands in the file: unions add the name of the branch, which is left out."""
        if not self.positions:
            return location
        path: KeyPath = ()
        for part in location:
            path = (*path, part) if (*path, part) in self.positions else path
        return path


def dotted(path: KeyPath) -> str:
    """A key path as people write it: `agents.dev.command[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _without_echoes(details: Sequence[Mapping[str, Json]]) -> list[Mapping[str, Json]]:
    """The faults without those that only come of others: a list whose items are wrong is not empty."""
    paths: list[KeyPath] = [tuple(detail["loc"]) for detail in details]
    return [
        detail
        for detail, path in zip(details, paths, strict=True)
        if detail["type"] != "too_short"
        or not any(len(other) > len(path) and other[: len(path)] == path for other in paths)
    ]


def _keys_beside(model: type[BaseModel], path: KeyPath) -> str:
    """The keys that are known at the top, when the fault is there."""
    return f"; known keys: {', '.join(model.model_fields)}" if len(path) == 1 else ""


def _lowered(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _short(value: Json) -> str:
    if isinstance(value, dict | list) or value is None:
        return ""
    text = repr(value)
    return f", not {text[:60]}" if len(text) <= 60 else f", not {text[:57]}…"
