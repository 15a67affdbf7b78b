"""What somebody writes beside a message, as the operator's context takes it."""

from __future__ import annotations

import json

from podium.domain.errors import BadInput
from podium.domain.model import Json


def context_value(text: str) -> Json:
    """JSON where it reads as an object, list, true, false or null; else the text itself. Raises `BadInput`."""
    # Ids such as 0400123456 and 12e5 stay what they are: only what is surely no word is taken for JSON.
    if text[:1] not in ("{", "[") and text not in ("true", "false", "null"):
        return text
    try:
        return json.loads(text, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"context value {text[:60]!r} is not JSON ({error}); "
            "write it as JSON, or put it into a file and name that with --context-file"
        ) from None


def each_once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Raises for a name that is there twice: which of its values was meant, nobody can say."""
    found: dict[str, Json] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:60]!r} is there twice")
        found[name] = value
    return found
