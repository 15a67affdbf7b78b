"""YAML of strangers: plain values within limits; and keys set in the text of a mapping, whose other lines stay.

The text is read as parser events. Composing it would follow aliases, which expand without end, and tags,
which make objects. Scalars follow the YAML 1.2 core schema: `no`, `on` and `2024-01-01` are plain text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import yaml

from podium.core.errors import ToolBroke
from podium.core.model import Json
from podium.platform.yaml_scalars import core_value

VALUE_LIMIT = 50_000
DEPTH_LIMIT = 40

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotPlain(ValueError):
    """The bytes are no YAML of plain values. The message says why, and where."""


def parse_plain(content: bytes) -> Json:
    """The one document in it. Nothing at all is None. Raises `NotPlain`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotPlain(f"line {line} is not valid UTF-8; save the file as UTF-8") from None
    try:
        return _Builder().build(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        raise NotPlain(_syntax_error_text(error)) from None


class _Builder:
    """Turns parser events into values and gives up at the first thing that is not plain."""

    def __init__(self) -> None:
        self._values_left = VALUE_LIMIT

    def build(self, events: Iterator[yaml.Event]) -> Json:
        documents = 0
        value: Json = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _not_plain(event, "a second document starts here; keep only one")
            elif isinstance(event, yaml.NodeEvent):
                value = self._value(event, events, 0)
        return value

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Json:
        self._values_left -= 1
        if self._values_left < 0:
            raise _not_plain(event, f"there are more than {VALUE_LIMIT} values")
        if depth > DEPTH_LIMIT:
            raise _not_plain(event, f"values nest deeper than {DEPTH_LIMIT}")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _not_plain(event, "anchors and aliases are not supported; write the value out")
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if (tag := getattr(event, "tag", None)) not in (None, "!"):
            raise _not_plain(event, f"the tag {tag!r} is not supported; write a plain value")
        if isinstance(event, yaml.SequenceStartEvent):
            return list(self._items(events, depth))
        return self._mapping(events, depth)

    def _items(self, events: Iterator[yaml.Event], depth: int) -> Iterator[Json]:
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._value(event, events, depth + 1)

    def _mapping(self, events: Iterator[yaml.Event], depth: int) -> dict[str, Json]:
        mapping: dict[str, Json] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            name = _key(event)
            if name in mapping:
                raise _not_plain(event, f"duplicate key {name[:80]!r}")
            mapping[name] = self._value(next(events), events, depth + 1)
        return mapping


def _key(event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent):
        raise _not_plain(event, "a key must be plain text")
    if event.value == "<<":
        raise _not_plain(event, "merge keys are not supported; write the keys out")
    _scalar(event)  # a key is held to what a value is held to
    return str(event.value)


def _scalar(event: yaml.ScalarEvent) -> Json:
    if event.anchor:
        raise _not_plain(event, "anchors and aliases are not supported; write the value out")
    if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
        raise _not_plain(event, f"the tag {event.tag!r} is not supported; write a plain value")
    text = str(event.value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _not_plain(event, "half of a surrogate pair; write the whole character") from None
    return text if event.style or event.tag is not None else core_value(text)


def _not_plain(event: yaml.Event, problem: str) -> NotPlain:
    line = event.start_mark.line + 1 if event.start_mark else 1
    return NotPlain(f"line {line}: {problem}")


def _syntax_error_text(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return "it contains a character that YAML does not allow"
    problem = str(getattr(error, "problem", "") or "it cannot be read")
    if "'\\t'" in problem:
        problem = "a tab where YAML requires spaces"
    return f"line {mark.line + 1}: not YAML: {problem}"


_MAX_DEPTH = 40
"""The C composer recurses and can be made to overflow its stack."""


class _Entry(NamedTuple):
    key: str
    line: int


def with_values(text: str, values: dict[str, Json], path: str) -> str:
    """The text with these keys set. Raises `ToolBroke` when it is no mapping that can be kept."""
    try:
        entries = _entries(text, path)
        present = yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader
        wished = {**(present or {}), **values}
        edited = _edited(text, entries, values) if entries is not None else None
        if edited is None or yaml.load(edited, Loader=_LOADER) != wished:  # noqa: S506
            edited = _dumped(wished)
    except yaml.YAMLError as error:
        raise ToolBroke(f"{path!r} is not valid YAML: {_in_a_line(error)}") from None
    except (RecursionError, ValueError) as error:
        raise ToolBroke(f"{path!r} cannot be set: {error}") from None
    return edited


def _entries(text: str, path: str) -> list[_Entry] | None:
    """The keys at the top and the lines they begin in. None: they have no lines of their own."""
    entries: list[_Entry] = []
    depth = documents = 0
    key_is_next = in_lines = True
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise ToolBroke(f"{path!r} uses YAML aliases, which cannot be set key by key")
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            raise ToolBroke(f"{path!r} contains several YAML documents; a session is one mapping")
        if depth == 0 and isinstance(event, (yaml.ScalarEvent, yaml.SequenceStartEvent)):
            _refuse_unless_empty(event, path)
        if depth == 0 and isinstance(event, yaml.MappingStartEvent):
            in_lines = not event.flow_style and _start(event)[1] == 0
        if depth == 1 and not isinstance(event, yaml.MappingEndEvent):
            if key_is_next:
                entries.append(_entry(event, entries, path))
            key_is_next = not key_is_next
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise ToolBroke(f"{path!r} is nested deeper than {_MAX_DEPTH} levels")
    return entries if in_lines else None


def _refuse_unless_empty(event: yaml.Event, path: str) -> None:
    if not isinstance(event, yaml.ScalarEvent) or event.value not in ("", "~", "null"):
        raise ToolBroke(f"{path!r} is not a mapping; a session is a mapping of keys to values")


def _entry(event: yaml.Event, before: list[_Entry], path: str) -> _Entry:
    if not isinstance(event, yaml.ScalarEvent):
        raise ToolBroke(f"{path!r} has a key that is not plain text; rewrite it")
    if any(entry.key == event.value for entry in before):
        raise ToolBroke(f"{path!r} has the key {event.value!r} twice; keep one of them")
    return _Entry(event.value, _start(event)[0])


def _start(event: yaml.Event) -> tuple[int, int]:
    """Line and column."""
    mark = event.start_mark
    if mark is None:
        raise ValueError("the YAML parser gives no lines")
    return mark.line, mark.column


def _edited(text: str, entries: list[_Entry], values: dict[str, Json]) -> str:
    lines = text.splitlines(keepends=True)
    bounds = [*(entry.line for entry in entries), len(lines)]
    edited = lines[: bounds[0]]
    for entry, end in zip(entries, bounds[1:], strict=True):
        block = lines[entry.line : end]
        if entry.key in values:
            block = [_dumped({entry.key: values[entry.key]}), *_tail(block)]
        edited += block
    if edited and not edited[-1].endswith("\n"):
        edited.append("\n")
    new = {key: value for key, value in values.items() if key not in {e.key for e in entries}}
    return "".join(edited) + (_dumped(new) if new else "")


def _tail(block: list[str]) -> list[str]:
    """Comments and empty lines at the end of an entry: they belong to what follows."""
    end = len(block)
    while end > 1 and (block[end - 1].startswith("#") or not block[end - 1].strip()):
        end -= 1
    return block[end:]


def _dumped(values: dict[str, Json]) -> str:
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1_000)


def _in_a_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())[:300]
