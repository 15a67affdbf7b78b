"""Options of the operator in podium.yaml."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Len
from pydantic import Field, PositiveInt, Strict

from podium.core.model import FrozenModel, NonEmpty
from podium.core.steering_files import PACK_FOLDER


class OperatorOptions(FrozenModel):
    """Options of `podium ask`."""

    pack: Annotated[NonEmpty | Annotated[tuple[NonEmpty, ...], Len(min_length=1)], PACK_FOLDER] = (
        "podium"
    )
    """Name or folder of the tool pack, or a list of several."""
    classifier: NonEmpty = "auto"
    """`embedded`, `model` (OpenRouter), the name of an agent, or `auto`: the model if `OPENROUTER_API_KEY` is set."""
    max_tool_calls: Annotated[PositiveInt, Strict()] = Field(default=50, le=1000)
    """Plans with more calls are refused."""
    queue: NonEmpty = "default"
    """Queue for `-M enqueue`."""
