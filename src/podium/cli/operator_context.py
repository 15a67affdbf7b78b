"""The context of a message, as it is typed: NAME=VALUE, and files of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from podium.domain.errors import BadInput
from podium.domain.model import Json

MOST_BYTES = 4_000_000


def context_of(pairs: Sequence[str], file: Path | None) -> dict[str, Json]:
    """The file's object, and the pairs over it. Raises `BadInput` for what is neither."""
    context = _read(file) if file else {}
    for pair in pairs:
        name, value = parted(pair)
        context[name] = value
    return context


def parted(pair: str) -> tuple[str, Json]:
    """NAME=VALUE. The value is JSON where it reads as an object, list, number, true or null; else text."""
    name, mark, value = pair.partition("=")
    if not mark or not name.strip():
        raise BadInput(f"context {pair!r} is no NAME=VALUE, as in quote_id=abc123")
    return name.strip(), _value(value)


def _value(text: str) -> Json:
    # Ids such as 0400123456 and 12e5 stay what they are: only what is surely no word is taken for JSON.
    if text[:1] not in ("{", "[") and text not in ("true", "false", "null"):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"context value {text[:60]!r} is not JSON: {error}") from None


def _read(file: Path) -> dict[str, Json]:
    try:
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"the context file {str(file)!r} cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise BadInput(f"the context file {str(file)!r} is larger than {MOST_BYTES} bytes")
    try:
        context = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the context file {str(file)!r} is not JSON: {error}") from None
    if not isinstance(context, dict):
        kind = type(context).__name__
        raise BadInput(f"the context file {str(file)!r} must hold an object, not {kind}")
    return context
