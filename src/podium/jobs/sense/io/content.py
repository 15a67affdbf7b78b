"""Content that sources read and the record keeps: bytes as plain JSON values, and secrets removed from them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import NoReturn

from podium.core.model import Json, whole_text
from podium.jobs.sense.io.sources.file_selection import NotSensed

Redact = Callable[[str], str]


def redacted(value: Json, redact: Redact) -> Json:
    """A copy of the JSON value without secrets, in keys too, and with nothing in it that is no text."""
    if isinstance(value, str):
        return redact(whole_text(value))
    if isinstance(value, dict):
        return _object(value, redact)
    if isinstance(value, list | tuple):
        return [redacted(item, redact) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        # A secret may be a number.
        written = str(value)
        cleaned = redact(written)
        return value if cleaned == written else cleaned
    return value


def _object(value: dict[str, Json], redact: Redact) -> dict[str, Json]:
    cleaned: dict[str, Json] = {}
    for key, item in value.items():
        name = redacted(key, redact)
        while name in cleaned:  # two secrets are the same word when they are gone
            name += "#"
        cleaned[name] = _item(name, item, redact)
    return cleaned


def _item(name: str, item: Json, redact: Redact) -> Json:
    """Redact a value with its key in front: some secrets are known by that, as in `Authorization: Bearer …`."""
    if not isinstance(item, str):
        return redacted(item, redact)
    before = f"{name}: "
    line: str = redacted(before + item, redact)
    return redacted(item if not line.startswith(before) else line.removeprefix(before), redact)


HIDDEN = "[hidden]"

_NAMES = (
    r"pass(?:word|wd|phrase)|secret|token|authorization|credentials?"
    r"|(?:api|access|secret|private|auth)[_-]?key"
)
_NAMED = re.compile(
    rf"""(?P<before>(?:{_NAMES})\\?["']?[ \t]{{0,3}}[=:][ \t]{{0,3}})"""
    r"""(?P<value>(?:(?:bearer|basic|digest|token)[ \t]{1,3})?"""
    r"""(?:\\"[^"\n]{1,1000}?\\"|"(?:[^"\\\n]|\\.){1,1000}"|'[^'\n]{1,1000}'|[^\s,;&]+))""",
    re.IGNORECASE,
)
_SECRET_KEY = re.compile(rf"(?:{_NAMES})\Z", re.IGNORECASE)
_NO_SECRETS = ("true", "false", "null", "none", "yes", "no", "required", "missing")


def hiding(redact: Callable[[str], str]) -> Callable[[str], str]:
    """Extend a redaction: values behind words such as password, token or api_key are hidden too."""

    def redact_and_hide(text: str) -> str:
        return _NAMED.sub(_hidden, redact(text))

    return redact_and_hide


def named_hidden(value: Json) -> Json:
    """A copy of the JSON value in which texts under such a key are hidden whole."""
    if isinstance(value, list):
        return [named_hidden(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: HIDDEN if _SECRET_KEY.search(key) and _is_secret(item) else named_hidden(item)
        for key, item in value.items()
    }


def _is_secret(value: Json) -> bool:
    return isinstance(value, str) and bool(value) and value.lower() not in _NO_SECRETS


def _hidden(match: re.Match[str]) -> str:
    value = match["value"].strip("\\\"'")
    if value.startswith("[redacted:") or not _is_secret(value):
        return match[0]
    return match["before"] + HIDDEN


DEPTH_LIMIT = 40
"""Deeper nesting is nobody's state, and would be too much for whoever walks it."""


def understand(name: str, content: bytes) -> Json:
    """Parse content by the ending of the file name: JSON, YAML or text. Raises `NotSensed`."""
    text = text_of(content)
    ending = name.rpartition(".")[2].lower()
    if ending not in ("json", "yaml", "yml"):
        return text
    if not text.strip():
        raise NotSensed("malformed", "empty; a program may still be writing it")
    if ending == "json":
        return json_value(text)
    return _yaml_value(content)


def understand_output(content: bytes) -> Json:
    """Parse the output of a program: JSON where it is, else text. Raises `NotSensed` for neither."""
    text = text_of(content)
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json_value(text)
    except NotSensed:
        return text


def text_of(content: bytes) -> str:
    if b"\0" in content:
        raise NotSensed("binary", "not a text file: it contains NUL bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotSensed("binary", f"not valid UTF-8: byte {error.start}") from None


def json_value(text: str) -> Json:
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise NotSensed("malformed", f"not JSON: {error.msg}: {where}") from None
    except RecursionError:
        raise NotSensed("malformed", "nested too deeply") from None
    except ValueError as error:
        raise NotSensed("malformed", f"not JSON: {error}") from None
    _must_be_shallow(value)
    return value


def _yaml_value(content: bytes) -> Json:
    # YAML takes a while to import, and a root without sessions does not need it.
    from podium.jobs.sense.io.plain_yaml import NotPlain, parse_plain

    try:
        value = parse_plain(content)
    except NotPlain as error:
        raise NotSensed("malformed", str(error)) from None
    if value is None:
        raise NotSensed("malformed", "it contains no value")
    return value


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is not a number")


def _must_be_shallow(value: Json) -> None:
    """Level by level, without recursion."""
    level = [value]
    for _ in range(DEPTH_LIMIT + 1):
        level = [item for parent in level for item in _inside(parent)]
        if not level:
            return
    raise NotSensed("malformed", f"nested deeper than {DEPTH_LIMIT} levels")


def _inside(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
