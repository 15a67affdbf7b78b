"""A hook door on shipped fakes, and a plain client for it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from podium.domain.asking import Turn
from podium.domain.events import EventBody
from podium.domain.gating import Effect, Tier, ToolSpec
from podium.domain.model import Json
from podium.ports import EventQuery, ToolDoor
from podium.sandbox import HookDoor, HookDoorSettings, TurnDoor
from podium.testing import (
    FakeTool,
    FakeToolbox,
    MemoryJournal,
    MemoryStore,
    ScriptedGate,
    ScriptedToolDoor,
)

TURN = Turn(run_id="run_1", step_key="work:0", role="developer", prompt="do it", workspace="/w")

SHELL = ToolSpec(
    name="run_command",
    description="Runs a command.",
    tier=Tier.T2,
    input_schema={
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
        "additionalProperties": False,
    },
)
ECHO = ToolSpec(name="echo", tier=Tier.T0)


class DoorRig:
    """Everything around a hook door, with the decisions of its gate written down beforehand."""

    def __init__(
        self,
        *decisions: Effect,
        settings: HookDoorSettings | None = None,
        tool_door: ToolDoor | None = None,
    ) -> None:
        self.store = MemoryStore()
        self.gate = ScriptedGate(decisions)
        self.tool_door = tool_door or ScriptedToolDoor(self.store, self.gate)
        tools = [FakeTool(SHELL, _echo), FakeTool(ECHO, _echo)]
        self.toolbox = FakeToolbox(self.tool_door, tools)
        self.journal = MemoryJournal(self.store)
        self.hook_door = HookDoor(self.tool_door, self.toolbox, self.journal, settings)

    async def events(self) -> list[EventBody]:
        return [event.body for event in await self.journal.read(EventQuery(run_id="run_1"))]


async def say(door: TurnDoor, **message: Json) -> dict[str, Any]:
    """Put one message with the right token to the door."""
    return await say_raw(door, json.dumps({"token": door.token, **message}).encode() + b"\n")


async def say_raw(door: TurnDoor, line: bytes) -> dict[str, Any]:
    reader, writer = await asyncio.open_unix_connection(door.socket_path)
    try:
        writer.write(line)
        answer: dict[str, Any] = json.loads(await reader.readline())
        return answer
    finally:
        writer.close()
        await writer.wait_closed()


async def _echo(arguments: dict[str, Json]) -> Json:
    return {"echo": arguments}
