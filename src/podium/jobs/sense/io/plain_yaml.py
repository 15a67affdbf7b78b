"""YAML from strangers: plain values alone, and no more of them than a machine can take.

The text is read as parser events. Composing it would follow aliases, which expand without end, and tags,
which make objects. Scalars follow the YAML 1.2 core schema: `no`, `on` and `2024-01-01` are plain text.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

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
        raise NotPlain(f"line {line} is not UTF-8 text; save the file as UTF-8") from None
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
                    raise _not_plain(event, "a second document begins; keep to one")
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
            raise _not_plain(event, "anchors and aliases are not read; write the value out")
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if (tag := getattr(event, "tag", None)) not in (None, "!"):
            raise _not_plain(event, f"the tag {tag!r} is not read; write the value plainly")
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
                raise _not_plain(event, f"the key {name[:80]!r} stands twice")
            mapping[name] = self._value(next(events), events, depth + 1)
        return mapping


def _key(event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent):
        raise _not_plain(event, "a key must be plain text")
    if event.value == "<<":
        raise _not_plain(event, "merge keys are not read; write the keys out")
    _scalar(event)  # a key is held to what a value is held to
    return str(event.value)


def _scalar(event: yaml.ScalarEvent) -> Json:
    if event.anchor:
        raise _not_plain(event, "anchors and aliases are not read; write the value out")
    if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
        raise _not_plain(event, f"the tag {event.tag!r} is not read; write the value plainly")
    text = str(event.value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _not_plain(event, "half of a character stands there; write it out whole") from None
    return text if event.style or event.tag is not None else core_value(text)


def _not_plain(event: yaml.Event, problem: str) -> NotPlain:
    line = event.start_mark.line + 1 if event.start_mark else 1
    return NotPlain(f"line {line}: {problem}")


def _syntax_error_text(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return "it holds a character that YAML does not allow"
    problem = str(getattr(error, "problem", "") or "it cannot be read")
    if "'\\t'" in problem:
        problem = "a tab stands where YAML wants spaces"
    return f"line {mark.line + 1}: not YAML: {problem}"
