"""A tool of this door: what it is called with, what it answers, and what it may change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import mcp_types as types
from pydantic import BaseModel, ValidationError

from podium.domain.errors import BadInput
from podium.domain.model import Json
from podium.domain.telling import cut_to
from podium.mcp.desk import Desk

LONGEST_TEXT = 100_000
"""Characters of one answer: a model reads it."""

Changes = Literal["nothing", "something", "much"]
"""`nothing` is only looked at, `much` may destroy."""

A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True)
class DoorTool(Generic[A]):
    """One of Podium's own tools."""

    name: str
    title: str
    description: str
    arguments: type[A]
    answer: type[BaseModel]
    handler: Callable[[Desk, A], Awaitable[BaseModel]]
    """What it answers; a result of the protocol is passed on as it is."""
    changes: Changes = "nothing"
    idempotent: bool = True

    def listed(self) -> types.Tool:
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.arguments.model_json_schema(),
            output_schema=self.answer.model_json_schema(mode="serialization"),
            annotations=hints(self.title, self.changes, idempotent=self.idempotent),
        )

    async def called(self, desk: Desk, given: dict[str, Json]) -> types.CallToolResult:
        """The answer. Raises `BadInput` that names every argument which does not fit."""
        try:
            arguments = self.arguments.model_validate(given)
        except ValidationError as error:
            raise BadInput(_faults(self.name, error, self.arguments)) from None
        answer = await self.handler(desk, arguments)
        return answer if isinstance(answer, types.CallToolResult) else structured(answer)


def hints(title: str, changes: Changes, *, idempotent: bool) -> types.ToolAnnotations:
    return types.ToolAnnotations(
        title=title,
        read_only_hint=changes == "nothing",
        destructive_hint=changes == "much",
        idempotent_hint=idempotent,
        open_world_hint=False,
    )


def structured(answer: BaseModel, *, ok: bool = True) -> types.CallToolResult:
    """An answer for programs, and the same as text for models."""
    text = cut_to(LONGEST_TEXT, answer.model_dump_json())
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=answer.model_dump(mode="json"),
        is_error=not ok,
    )


def failed(words: str) -> types.CallToolResult:
    """Nothing came of a call; the words say why and what to do."""
    text = cut_to(LONGEST_TEXT, words)
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _faults(tool: str, error: ValidationError, shape: type[BaseModel]) -> str:
    known = ", ".join(shape.model_fields) or "none"
    found: Sequence[Any] = error.errors(include_url=False, include_input=False)
    said = "; ".join(
        f"{'.'.join(str(part)[:60] for part in each['loc']) or 'arguments'}: {each['msg']}"
        for each in found[:10]
    )
    return f"{tool}: {said}; arguments: {known}"
