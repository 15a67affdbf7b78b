"""What comes back over a wire, made a result. Whoever wrote it is not trusted."""

from __future__ import annotations

import json

from podium.core.errors import ToolBroke
from podium.core.model import Json

MAX_ANSWER = 1_000_000
_SHOWN_CHARACTERS = 500


def json_object(text: bytes | str, who: str) -> dict[str, Json]:
    """The JSON object in an answer. Raises `ToolBroke`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ToolBroke(f"{who} did not answer with JSON: {shown(text)!r}") from None
    if not isinstance(found, dict):
        raise ToolBroke(f"{who} did not answer with a JSON object: {shown(text)!r}")
    return found


def shown(text: bytes | str) -> str:
    """The beginning of it, for a sentence."""
    whole = text.decode(errors="replace") if isinstance(text, bytes) else text
    plain = " ".join(whole.split())
    return plain if len(plain) <= _SHOWN_CHARACTERS else plain[:_SHOWN_CHARACTERS] + "…"


def complaint(text: bytes) -> str:
    """What an answer gives as the reason: its `error` or `message`, or else its beginning."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return shown(text)
    if isinstance(found, dict):
        said = found.get("error") or found.get("message") or found.get("detail")
        said = said.get("message") if isinstance(said, dict) else said
        if isinstance(said, str) and said:
            return shown(said)
    return shown(text)
