"""YAML reader that keeps the position of every key and refuses ambiguous or unbounded input."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from podium.config.located import FilePosition, KeyPath, Located
from podium.core.errors import ConfigInvalid, ConfigProblem
from podium.core.model import Json
from podium.platform.yaml_scalars import core_value

SIZE_LIMIT_BYTES = 1_000_000
VALUE_LIMIT = 50_000
"""Number of values that a file may hold once its aliases are expanded."""
DEPTH_LIMIT = 40

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_located(path: Path) -> Located:
    """Read a file. Raises `ConfigInvalid`, also when it is missing, too big or not text."""
    try:
        if not path.is_file():
            problem = "is not a plain file" if path.exists() else "does not exist"
            raise _invalid(str(path), problem)
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT_BYTES + 1)
    except OSError as error:
        raise _invalid(str(path), f"cannot be read: {error.strerror}") from None
    return parse_located(content, str(path))


def parse_located(content: bytes, file: str) -> Located:
    """Read the bytes of a file called `file`."""
    if len(content) > SIZE_LIMIT_BYTES:
        raise _invalid(file, f"is larger than {SIZE_LIMIT_BYTES // 1000} kB, the maximum")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _invalid(file, "is not valid UTF-8; save it as UTF-8", line=line) from None
    try:
        located = _Builder(file).build(text)
    except yaml.YAMLError as error:
        raise ConfigInvalid(file, [_syntax_problem(text, error)]) from None
    return replace(located, digest="sha256:" + hashlib.sha256(content).hexdigest())


@dataclass
class _Value:
    """A value on its way: where it stands and, for collections, what is in it."""

    position: FilePosition
    scalar: Json = None
    items: list[_Value] | None = None
    keys: list[tuple[str, _Value, _Value]] | None = None


class _TooMuch(Exception):
    """The file nests too deep or expands to too much."""


class _Builder:
    """Turns parser events into data and positions, gathering faults on the way."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._problems: list[ConfigProblem] = []
        self._anchors: dict[str, _Value] = {}
        self._values_left = VALUE_LIMIT
        self._positions: dict[KeyPath, FilePosition] = {}

    def build(self, text: str) -> Located:
        events = iter(yaml.parse(text, Loader=_LOADER))
        root = self._document(events)
        data: Json = {}
        if root is not None:
            try:
                data = self._plain(root, ())
            except _TooMuch as too_much:
                self._note_problem(root.position, str(too_much))
            data = {} if data is None else data
            if not isinstance(data, dict):
                self._note_problem(root.position, "must be a mapping of keys to values")
        if self._problems:
            raise ConfigInvalid(self._file, self._problems)
        return Located(self._file, data, self._positions)

    def _document(self, events: Iterator[yaml.Event]) -> _Value | None:
        root: _Value | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                self._note_problem(_position(event), "contains a second document; keep only one")
                break
            if isinstance(event, yaml.NodeEvent):
                root = self._value(event, events, 0)
        return root

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> _Value:
        position = _position(event)
        if depth > DEPTH_LIMIT:
            problem = ConfigProblem(
                "is nested too deeply", line=position.line, column=position.column
            )
            raise ConfigInvalid(self._file, [*self._problems, problem])
        if isinstance(event, yaml.AliasEvent):
            return self._anchored(event, position)
        value = _Value(position)
        if isinstance(event, yaml.ScalarEvent):
            value.scalar = self._scalar(event, position)
        elif isinstance(event, yaml.SequenceStartEvent):
            value.items = list(self._items(events, depth))
        else:
            value.keys = list(self._pairs(events, depth))
        if anchor := getattr(event, "anchor", None):
            self._anchors[anchor] = value
        return value

    def _anchored(self, event: yaml.AliasEvent, position: FilePosition) -> _Value:
        name = event.anchor or ""
        if name not in self._anchors:
            # Also an alias inside its own anchor: the anchor counts once its value is complete.
            self._note_problem(position, f"alias {name!r} has no anchor before it")
        return self._anchors.get(name, _Value(position))

    def _items(self, events: Iterator[yaml.Event], depth: int) -> Iterator[_Value]:
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._value(event, events, depth + 1)

    def _pairs(
        self, events: Iterator[yaml.Event], depth: int
    ) -> Iterator[tuple[str, _Value, _Value]]:
        lines: dict[str, int] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                return
            key = self._value(event, events, depth + 1)
            value = self._value(next(events), events, depth + 1)
            name = self._key_name(event, key)
            if name in lines:
                self._note_problem(
                    key.position, f"is a duplicate key, first used in line {lines[name]}", name
                )
            lines.setdefault(name, key.position.line)
            yield name, key, value

    def _key_name(self, event: yaml.Event, key: _Value) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self._note_problem(key.position, "a key must be plain text")
            return ""
        name = str(event.value)
        if name == "<<":
            self._note_problem(
                key.position, "merge keys are not supported; write the keys out", name
            )
        return name

    def _scalar(self, event: yaml.ScalarEvent, position: FilePosition) -> Json:
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            self._note_problem(position, f"tag {event.tag!r} is not supported; write a plain value")
        if event.style or event.tag is not None:
            return event.value
        return core_value(event.value)

    def _plain(self, value: _Value, path: KeyPath) -> Json:
        """The value as data. Aliases are expanded here, so this is where they are counted."""
        self._values_left -= 1
        if self._values_left < 0:
            raise _TooMuch(f"expands to more than {VALUE_LIMIT} values")
        if len(path) > DEPTH_LIMIT:
            raise _TooMuch("is nested too deeply")
        self._positions.setdefault(path, value.position)
        if value.items is not None:
            return [self._plain(item, (*path, at)) for at, item in enumerate(value.items)]
        if value.keys is None:
            return value.scalar
        data: dict[str, Json] = {}
        for name, key, inner in value.keys:
            self._positions[(*path, name)] = key.position
            data[name] = self._plain(inner, (*path, name))
        return data

    def _note_problem(self, position: FilePosition, problem: str, key: str = "") -> None:
        self._problems.append(
            ConfigProblem(problem, line=position.line, column=position.column, key=key)
        )


def _position(event: yaml.Event) -> FilePosition:
    position = event.start_mark
    return FilePosition(position.line + 1, position.column + 1) if position else FilePosition(1, 1)


def _syntax_problem(text: str, error: yaml.YAMLError) -> ConfigProblem:
    position = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if position is None:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else None
        return ConfigProblem("contains a character that YAML does not allow", line=line)
    problem = str(getattr(error, "problem", "") or error)
    if _line(text, position.line).lstrip(" ").startswith("\t") or "'\\t'" in problem:
        problem = "found a tab where YAML requires spaces"
    return ConfigProblem(
        f"not valid YAML: {problem}", line=position.line + 1, column=position.column + 1
    )


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number] if number < len(lines) else ""


def _invalid(file: str, problem: str, line: int | None = None) -> ConfigInvalid:
    return ConfigInvalid(file, [ConfigProblem(problem, line=line)])
