"""Parameters that requests share, and the problem documents they can get."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import ConfigDict, Field

from podium.core.model import FrozenModel

MAX_NAME = 200
MAX_ROWS = 500
TEXT = r"^[^\x00]*$"
"""Text without NUL, which no database keeps."""
HIGHEST = 2**53 - 1
"""The last whole number that every reader of JSON understands."""

Name = Annotated[str, Path(min_length=1, max_length=MAX_NAME, pattern=TEXT)]
"""An id or a short form of one."""
NameAsked = Annotated[str, Query(max_length=MAX_NAME, pattern=TEXT)]
"""The same in a query; empty: not asked for."""
Rows = Annotated[int, Query(ge=1, le=MAX_ROWS)]
Place = Annotated[int, Query(ge=0, le=HIGHEST)]
"""An event's place: its `seq` in a run, or its position among all."""
Words = Annotated[str, Field(max_length=4000, pattern=TEXT)]


class Asked(FrozenModel):
    """What the body of a request says."""

    # The framework wraps it in an adapter, which is built once and for all when the app is.
    model_config = ConfigDict(defer_build=False)


class Problem(FrozenModel):
    """Why something was not done, in words that say what to do."""

    type: str = "about:blank"
    title: str
    """The kind of trouble, such as `UnknownId`."""
    status: int
    detail: str
