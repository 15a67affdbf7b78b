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
from podium.ports import Flow, FlowBody


@dataclass(frozen=True)
class FlowDefinition:
    """A flow whose body is at hand."""

    name: str
    body: FlowBody
    version: int = 1
    input_type: Any = None

    @property
    def code(self) -> FlowBody:
        return self.body


class RegisteredFlow:
    """A flow as the engine uses it. Its code and input type are asked for when a run needs them."""

    def __init__(self, flow: Flow) -> None:
        self.name = flow.name
        self.version = flow.version
        self.body = flow.body
        self._flow = flow

    @cached_property
    def code_digest(self) -> str:
        """Digest of the flow's source. It tells that a run is resumed under other code."""
        try:
            source = inspect.getsource(self._flow.code)
        except (OSError, TypeError):
            return ""
        return hashlib.sha256(source.encode()).hexdigest()[:16]

    def read_input(self, value: Json) -> Any:
        """Validate the input of a run. Raises `BadInput` that lists every problem."""
        if self._flow.input_type is None:
            return value
        try:
            return TypeAdapter(self._flow.input_type).validate_python(value)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc'])) or 'input'}: {problem['msg']}"
                for problem in error.errors()
            )
            raise BadInput(f"invalid input for flow {self.name!r}: {problems}") from error


_ALWAYS_THE_SAME = (str, int, bool, type(None))


def encode(step: str, value: Any, returns: Any) -> Json:
    """The value as plain JSON. Raises `TypeError` that names the step when it has no JSON form."""
    if returns is None and type(value) in _ALWAYS_THE_SAME:
        return value
    try:
        text = to_json(value) if returns is None else _adapter(returns).dump_json(value)
    except PydanticSerializationError as error:
        raise TypeError(
            f"step {step!r} returned {type(value).__name__}, which cannot be written as JSON: {error}"
        ) from error
    return from_json(text)


def decode(value: Json, returns: Any) -> Any:
    """Convert a recorded output into the value that the flow's body sees."""
    return value if returns is None else _adapter(returns).validate_python(value)


@lru_cache(maxsize=256)
def _adapter(returns: Any) -> TypeAdapter[Any]:
    return TypeAdapter(returns)
