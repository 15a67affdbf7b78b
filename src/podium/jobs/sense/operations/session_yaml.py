"""Keys set in the text of a YAML mapping; lines of other keys stay as they are. Loads PyYAML."""

from __future__ import annotations

from typing import NamedTuple

import yaml

from podium.core.errors import ToolBroke
from podium.core.model import Json

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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
        raise ToolBroke(f"{path!r} is no YAML that can be read: {_in_a_line(error)}") from None
    except (RecursionError, ValueError) as error:
        raise ToolBroke(f"{path!r} cannot be set so: {error}") from None
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
            raise ToolBroke(f"{path!r} holds several YAML documents; a session is one mapping")
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
        raise ToolBroke(f"{path!r} is no mapping of keys to values; a session is one")


def _entry(event: yaml.Event, before: list[_Entry], path: str) -> _Entry:
    if not isinstance(event, yaml.ScalarEvent):
        raise ToolBroke(f"{path!r} has a key that is no plain text; write it anew")
    if any(entry.key == event.value for entry in before):
        raise ToolBroke(f"{path!r} has the key {event.value!r} twice; leave one of them")
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
