"""A toolbox whose tools are plain functions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from jsonschema import Draft202012Validator

from podium.domain.errors import BadArguments, UnknownTool
from podium.domain.gating import Call, Outcome, Refusal, ToolSpec
from podium.domain.model import Json
from podium.ports import Checkpoint, ToolDoor

FakeHandler = Callable[[dict[str, Json]], Awaitable[Json]]
"""What a fake tool does with its arguments. What it raises becomes a failed outcome."""


class FakeTool(NamedTuple):
    """A tool and what it does."""

    spec: ToolSpec
    handler: FakeHandler


class FakeToolbox:
    """Performs functions as tools, each call through the door it was given."""

    def __init__(self, door: ToolDoor, tools: Sequence[FakeTool] = ()) -> None:
        self._door = door
        self._tools = {tool.spec.name: tool for tool in tools}

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    def normalise(
        self,
        tool: str,
        arguments: dict[str, Json],
        *,
        run_id: str,
        step_key: str,
        index: int,
        role: str = "",
        agent: str = "",
        provenance: tuple[str, ...] = (),
        observed: bool = False,
        root: str | None = None,
    ) -> Call:
        if tool not in self._tools:
            raise UnknownTool(tool, list(self._tools))
        schema = self._tools[tool].spec.input_schema
        problems = [fault.message for fault in Draft202012Validator(schema).iter_errors(arguments)]
        if problems:
            raise BadArguments(tool, problems)
        return Call(
            run_id=run_id,
            step_key=step_key,
            index=index,
            tool=tool,
            arguments=arguments,
            role=role,
            agent=agent,
            provenance=provenance,
            observed=observed,
            root=root or "",
        )

    async def perform(self, call: Call, checkpoint: Checkpoint | None = None) -> Outcome | Refusal:
        answer = await self._door.request(call)
        if isinstance(answer, Refusal):
            return answer
        if answer.settled is not None:
            return answer.settled
        try:
            outcome = await self._act(call)
        except asyncio.CancelledError:
            await self._door.settle(answer, Outcome(ok=False, error="cancelled"))
            raise
        await self._door.settle(answer, outcome, checkpoint)
        return outcome

    async def _act(self, call: Call) -> Outcome:
        try:
            return Outcome(ok=True, result=await self._tools[call.tool].handler(call.arguments))
        except Exception as fault:  # whatever the tool raises is its outcome
            return Outcome(ok=False, error=str(fault) or type(fault).__name__)
