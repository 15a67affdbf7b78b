"""Parameters that requests share, and the problem documents they can get."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import ConfigDict, Field

from podium.core.model import FrozenModel

MAX_NAME = 200
MAX_ROWS = 500
TEXT = r"^[^\x00]*$"
"""Text without NUL, which no database stores."""
HIGHEST = 2**53 - 1
"""Largest integer that every JSON reader represents exactly."""

Name = Annotated[str, Path(min_length=1, max_length=MAX_NAME, pattern=TEXT)]
"""An id or a short form of one."""
NameQuery = Annotated[str, Query(max_length=MAX_NAME, pattern=TEXT)]
"""The same in a query; empty when not requested."""
Rows = Annotated[int, Query(ge=1, le=MAX_ROWS)]
Position = Annotated[int, Query(ge=0, le=HIGHEST)]
"""An event's `seq` in its run, or its position among all events."""
FreeText = Annotated[str, Field(max_length=4000, pattern=TEXT)]


class RequestBody(FrozenModel):
    """Base of request bodies."""

    # The framework wraps it in an adapter, which is built once and for all when the app is.
    model_config = ConfigDict(defer_build=False)


class Problem(FrozenModel):
    """Problem document (RFC 9457) that says why a request failed and what to do."""

    type: str = "about:blank"
    title: str
    """Kind of problem, such as `UnknownId`."""
    status: int
    detail: str
