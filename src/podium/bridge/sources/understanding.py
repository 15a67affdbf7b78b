"""Bytes of a file, a command or an answer made into JSON values, or into words for why not."""

from __future__ import annotations

import json
import math
from typing import NoReturn

from podium.bridge.sources.kit import NotSensed
from podium.domain.model import Json

DEPTH_LIMIT = 40
"""Deeper nesting is nobody's state, and would be too much for whoever walks it."""


def understand(name: str, content: bytes) -> Json:
    """By the ending of the name: JSON, YAML or text. Raises `NotSensed`."""
    text = text_of(content)
    ending = name.rpartition(".")[2].lower()
    if ending not in ("json", "yaml", "yml"):
        return text
    if not text.strip():
        raise NotSensed("malformed", "it is empty, as a file is that is only being written")
    if ending == "json":
        return json_value(text)
    return _yaml_value(content)


def understand_output(content: bytes) -> Json:
    """JSON where it is, else text. Raises `NotSensed` when it is not even that."""
    text = text_of(content)
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json_value(text)
    except NotSensed:
        return text


def text_of(content: bytes) -> str:
    if b"\0" in content:
        raise NotSensed("binary", "it holds zero bytes, so it is no text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotSensed("binary", f"it is no UTF-8 text: byte {error.start}") from None


def json_value(text: str) -> Json:
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise NotSensed("malformed", f"not JSON: {error.msg}: {where}") from None
    except RecursionError:
        raise NotSensed("malformed", "it nests too deep") from None
    except ValueError as error:
        raise NotSensed("malformed", f"not JSON: {error}") from None
    _must_be_shallow(value)
    return value


def _yaml_value(content: bytes) -> Json:
    # YAML takes a while to import, and a root without sessions does not need it.
    from podium.bridge.plain_yaml import NotPlain, parse_plain

    try:
        value = parse_plain(content)
    except NotPlain as fault:
        raise NotSensed("malformed", str(fault)) from None
    if value is None:
        raise NotSensed("malformed", "it holds no value")
    return value


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no number")


def _must_be_shallow(value: Json) -> None:
    """Level by level, without recursion."""
    level = [value]
    for _ in range(DEPTH_LIMIT + 1):
        level = [item for each in level for item in _inside(each)]
        if not level:
            return
    raise NotSensed("malformed", f"it nests deeper than {DEPTH_LIMIT} levels")


def _inside(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
