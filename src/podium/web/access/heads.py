"""The lines before a request's body: not too many of them."""

from __future__ import annotations

from starlette.types import Scope

from podium.web.access.refusing import TurnedAway

MOST_HEAD_BYTES = 32_768
MOST_PATH_BYTES = 8_192


def check_head(scope: Scope) -> None:
    """Raise `TurnedAway` for more than anybody needs."""
    asked = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    if asked > MOST_PATH_BYTES:
        raise TurnedAway(414, f"a path has at most {MOST_PATH_BYTES:,} bytes here")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEAD_BYTES:
        raise TurnedAway(431, f"the headers have at most {MOST_HEAD_BYTES:,} bytes here")
