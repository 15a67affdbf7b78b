"""Step outputs as JSON, so that the first time and every replay see the same value."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, from_json, to_json

from podium.domain.model import Json

_ALWAYS_THE_SAME = (str, int, bool, type(None))


def encode(step: str, value: Any, returns: Any) -> Json:
    """The value as plain JSON. Raises `TypeError` that names the step when it has no JSON form."""
    if returns is None and type(value) in _ALWAYS_THE_SAME:
        return value
    try:
        text = to_json(value) if returns is None else _adapter(returns).dump_json(value)
    except PydanticSerializationError as error:
        raise TypeError(
            f"step {step!r} gave back {type(value).__name__}, which has no JSON form: {error}"
        ) from error
    return from_json(text)


def decode(value: Json, returns: Any) -> Any:
    """What the flow's body sees of a recorded output."""
    return value if returns is None else _adapter(returns).validate_python(value)


@lru_cache(maxsize=256)
def _adapter(returns: Any) -> TypeAdapter[Any]:
    return TypeAdapter(returns)
