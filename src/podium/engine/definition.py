"""A flow as it is registered: its name, its version, its body."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from podium.domain.errors import BadInput
from podium.domain.model import Json
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
