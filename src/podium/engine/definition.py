"""A flow as it is registered, and step outputs as JSON that the first time and every replay see alike."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from podium.core.errors import BadInput
from podium.core.model import Json
from podium.ports import FlowBody


@dataclass(frozen=True)
class FlowDefinition:
    """A flow's body with what the engine must know of it.

    Raise `version` when runs recorded under the old code cannot go on under the new.
    """

    name: str
    body: FlowBody
    version: int = 1
    input_type: Any = None

    @cached_property
    def code_digest(self) -> str:
        """Digest of the body's source, so that a run can tell that it goes on under other code."""
        try:
            source = inspect.getsource(self.body)
        except (OSError, TypeError):
            return ""
        return hashlib.sha256(source.encode()).hexdigest()[:16]

    def read_input(self, value: Json) -> Any:
        """The input as the body wants it. Raises `BadInput` with every fault."""
        if self.input_type is None:
            return value
        try:
            return TypeAdapter(self.input_type).validate_python(value)
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'input'}: {fault['msg']}"
                for fault in error.errors()
            )
            raise BadInput(f"input of flow {self.name!r} does not fit: {faults}") from error


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
