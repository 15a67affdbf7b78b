"""The list of models, as each provider gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.testing.modelserver.dialects import Dialect

_MADE = "2025-01-01T00:00:00Z"
_MADE_SECONDS = 1735689600


def model_list(dialect: Dialect, names: Sequence[str]) -> dict[str, Any]:
    """Every model the server says it has; it answers for any other too."""
    if dialect.name == "gemini":
        return {"models": [_gemini_model(name) for name in names]}
    if dialect.name == "anthropic":
        models = [
            {"type": "model", "id": name, "display_name": name, "created_at": _MADE}
            for name in names
        ]
        ends = {"first_id": names[0], "last_id": names[-1]} if names else {}
        return {"data": models, "has_more": False, **ends}
    listed = [
        {"id": name, "object": "model", "created": _MADE_SECONDS, "owned_by": "podium"}
        for name in names
    ]
    # codex reads a list of its own from the same path; an empty one leaves it with what it knows.
    return {"object": "list", "data": listed, "models": []}


def _gemini_model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
