"""Answers over a wire turned into results. Their sender is not trusted."""

from __future__ import annotations

import json

from podium.core.errors import ToolBroke
from podium.core.model import Json

MAX_ANSWER = 1_000_000
_MAX_EXCERPT_CHARACTERS = 500


def json_object(text: bytes | str, who: str) -> dict[str, Json]:
    """The JSON object in an answer. Raises `ToolBroke`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ToolBroke(f"{who} did not answer with JSON: {excerpt(text)!r}") from None
    if not isinstance(value, dict):
        raise ToolBroke(f"{who} did not answer with a JSON object: {excerpt(text)!r}")
    return value


def excerpt(text: bytes | str) -> str:
    """The beginning of it, for a sentence."""
    whole = text.decode(errors="replace") if isinstance(text, bytes) else text
    plain = " ".join(whole.split())
    return plain if len(plain) <= _MAX_EXCERPT_CHARACTERS else plain[:_MAX_EXCERPT_CHARACTERS] + "…"


def complaint(text: bytes) -> str:
    """Return the reason in an answer: its `error` or `message`, or else its beginning."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return excerpt(text)
    if isinstance(value, dict):
        reason = value.get("error") or value.get("message") or value.get("detail")
        reason = reason.get("message") if isinstance(reason, dict) else reason
        if isinstance(reason, str) and reason:
            return excerpt(reason)
    return excerpt(text)
