"""A hook door on shipped fakes or on the real tool door and toolbox, and a plain client for it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from podium.core.decisions import CallStatus, Effect, Tier, ToolSpec
from podium.core.events import EventBody
from podium.core.model import Json
from podium.core.turns import Turn
from podium.ports import EventQuery, Toolbox, ToolDoor
from podium.sandbox import HookServer, HookServerSettings, TurnHookServer
from podium.testing import (
    FakeConfinementProvider,
    FakeLauncher,
    FakeTool,
    FakeToolbox,
    FixedClock,
    MemoryJournal,
    MemoryStore,
    ScriptedGate,
    ScriptedToolDoor,
    SteadyIds,
)
from podium.tools import (
    DoorSettings,
    GatedDoor,
    LocalToolbox,
    Registry,
    Tool,
    ToolboxSettings,
    ToolScope,
)

TURN = Turn(run_id="run_1", step_key="work:0", role="developer", prompt="do it", workspace="/w")

SHELL = ToolSpec(
    name="run_command",
    description="Runs a command.",
    tier=Tier.T2,
    receipt_fields=("exit",),
    input_schema={
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
        "additionalProperties": False,
    },
)
ECHO = ToolSpec(name="echo", tier=Tier.T0, receipt_fields=("echo",))
HANG = ToolSpec(name="hang", tier=Tier.T2, receipt_fields=("never",))


class DoorHarness:
    """Everything around a hook door, with the decisions of its gate written down beforehand."""

    def __init__(
        self,
        *decisions: Effect,
        settings: HookServerSettings | None = None,
        tool_door: ToolDoor | None = None,
    ) -> None:
        self.store = MemoryStore()
        self.gate = ScriptedGate(decisions)
        self.hanging = asyncio.Event()
        """Set once the tool `hang` is at work."""
        self.tool_door = tool_door or self._make_tool_door()
        self.toolbox = self._make_toolbox()
        self.journal = MemoryJournal(self.store)
        self.hook_door = HookServer(self.tool_door, self.toolbox, self.journal, settings)

    def _make_tool_door(self) -> ToolDoor:
        return ScriptedToolDoor(self.store, self.gate)

    def _make_toolbox(self) -> Toolbox:
        tools = [FakeTool(SHELL, _echo), FakeTool(ECHO, _echo), FakeTool(HANG, self._hang)]
        return FakeToolbox(self.tool_door, tools)

    async def _hang(self, arguments: dict[str, Json]) -> Json:
        self.hanging.set()
        return await asyncio.Event().wait()

    async def events(self) -> list[EventBody]:
        return [event.body for event in await self.journal.read(EventQuery(run_id="run_1"))]

    async def statuses(self) -> list[CallStatus]:
        records = await self.store.read(lambda view: view.calls("run_1"))
        return [record.status for record in records]


class RealDoorHarness(DoorHarness):
    """The same on the door and the toolbox that Podium runs with."""

    def _make_tool_door(self) -> ToolDoor:
        return GatedDoor(
            self.store,
            self.gate,
            {spec.name: spec for spec in (SHELL, ECHO, HANG)}.get,
            clock=FixedClock(),
            ids=SteadyIds(),
            settings=DoorSettings(root="/"),
            redact=str,
        )

    def _make_toolbox(self) -> Toolbox:
        async def echo(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
            return {"echo": arguments}

        async def hang(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
            await self._hang(arguments)
            return {}

        return LocalToolbox(
            Registry([Tool(SHELL, echo), Tool(ECHO, echo), Tool(HANG, hang)]),
            self.tool_door,
            FakeLauncher(),
            confinements=FakeConfinementProvider(),
            clock=FixedClock(),
            settings=ToolboxSettings(root="/"),
            split_command=lambda text: ((tuple(text.split()),), ""),
            looks_secret=lambda text: None,
            resolve_secret=str,
            redact=str,
            passed_over=lambda path, root: False,
        )


async def say(door: TurnHookServer, **message: Json) -> dict[str, Any]:
    """Put one message with the right token to the door."""
    return await say_raw(door, json.dumps({"token": door.token, **message}).encode() + b"\n")


async def say_raw(door: TurnHookServer, line: bytes) -> dict[str, Any]:
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
