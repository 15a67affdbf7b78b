"""Costs that Podium adds to an agent's turn and to each of its calls, and costs of many turns at once."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from benchmarks.figures import Figure, median
from podium.agents import AgentScript, ScriptedAgent, scripted
from podium.core.decisions import Effect
from podium.core.turns import Turn
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Gate
from podium.sandbox import HookServer, ProcessLauncher, hook_command
from podium.store import FileTranscripts, SqlStore, StoreJournal
from podium.testing import FakeConfinementProvider, ScriptedGate, decision
from podium.tools import (
    DoorSettings,
    GatedDoor,
    LocalToolbox,
    Registry,
    ToolboxSettings,
    builtin_tools,
    own_tools,
)

ROUNDS = 40
AT_ONCE = 50
WAVES = 8

SCRIPT = AgentScript.model_validate(
    {"turns": [{"role": "tester", "acts": [{"say": "hello"}], "reply": "done"}]}
)

PART = json.dumps({"acts": [{"say": "hello"}], "first_act": 0, "reply": "done"}).encode()
"""What the player is handed for that script."""


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        store = await SqlStore.open(
            Path(folder) / "state", clock=SystemClock(), ids=SystemIds(), key_dir=Path(folder) / "v"
        )
        try:
            doors = _doors(store, Path(folder))
            agent = ScriptedAgent(
                "player",
                SCRIPT,
                ProcessLauncher(),
                doors,
                transcripts=FileTranscripts(Path(folder) / "runs", str),
            )
            return [
                *await _turns(agent, folder),
                *await _calls(doors, folder),
                *await _many(agent, folder),
            ]
        finally:
            await store.close()


async def _turns(agent: ScriptedAgent, folder: str) -> list[Figure]:
    role_agent = (sys.executable, "-IS", str(scripted.SCRIPT_PROGRAM))
    ours, bare = await _medians_of(
        lambda number: agent.ask(_turn(folder, number)),
        lambda number: _bare(role_agent, PART, folder),
    )
    return [
        Figure("a turn of a headless agent", ours * 1000, "ms", bare * 1000, "its bare program"),
        Figure("what Podium adds to a turn", (ours - bare) * 1000, "ms", most=30.0),
    ]


async def _calls(doors: HookServer, folder: str) -> list[Figure]:
    """A hook's whole process, from its start to the answer, on a door that judges and records."""
    event = {
        "hook_event_name": "PreToolUse",
        "tool_name": "run_command",
        "tool_input": {"command": "git status"},
    }
    asked = json.dumps(event).encode()
    idle = (sys.executable, "-IS", "-c", "")
    async with doors.open(_turn(folder, 0)) as door:
        ours, bare = await _medians_of(
            lambda number: _bare(hook_command(), asked, folder, door.env),
            lambda number: _bare(idle, b"", folder),
        )
    return [
        Figure("a call judged by the hook", ours * 1000, "ms", bare * 1000, "an idle interpreter"),
        Figure("the hook client, whole", ours * 1000, "ms", most=40.0),
    ]


async def _many(agent: ScriptedAgent, folder: str) -> list[Figure]:
    began = time.perf_counter()
    await _wave(agent, folder, 0)
    await _wave(agent, folder, 1)
    before = _resident_bytes()
    for wave in range(2, WAVES):
        await _wave(agent, folder, wave)
    grown = (_resident_bytes() - before) / 1_000_000
    turns = WAVES * AT_ONCE / (time.perf_counter() - began)
    return [
        Figure(f"turns, {AT_ONCE} at once", turns, "/s"),
        Figure(f"memory grown over {(WAVES - 2) * AT_ONCE} turns", grown, "MB", most=10.0),
    ]


async def _wave(agent: ScriptedAgent, folder: str, wave: int) -> None:
    turns = [_turn(folder, wave * AT_ONCE + number) for number in range(AT_ONCE)]
    await asyncio.gather(*(agent.ask(turn) for turn in turns))
    gc.collect()


async def _medians_of(*works: Callable[[int], Awaitable[object]]) -> list[float]:
    """The median of each. In turns, because what else the machine does then slows all of them."""
    taken: list[list[float]] = [[] for _ in works]
    for number in range(ROUNDS):
        for work, seconds in zip(works, taken, strict=True):
            began = time.perf_counter()
            await work(number)
            seconds.append(time.perf_counter() - began)
    return [median(seconds) for seconds in taken]


async def _bare(
    argv: tuple[str, ...], stdin: bytes, folder: str, env: Mapping[str, str] | None = None
) -> None:
    given = {"PATH": os.environ["PATH"], **(env or {})}
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=folder,
        env=given,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await process.communicate(stdin)
    if process.returncode != 0:
        raise RuntimeError(f"{argv[0]} ended with {process.returncode}")


def _turn(folder: str, number: int) -> Turn:
    return Turn(
        run_id="run_1", step_key=f"ask#{number}", role="tester", prompt="go", workspace=folder
    )


def _doors(store: SqlStore, folder: Path) -> HookServer:
    gate: Gate = ScriptedGate(lambda call, context: decision(Effect.ALLOW))
    registry = Registry([*builtin_tools(), *own_tools()])
    door = GatedDoor(
        store,
        gate,
        registry.spec,
        clock=SystemClock(),
        ids=SystemIds(),
        settings=DoorSettings(root=str(folder)),
        redact=str,
    )
    toolbox = LocalToolbox(
        registry,
        door,
        ProcessLauncher(),
        confinements=FakeConfinementProvider(),
        clock=SystemClock(),
        settings=ToolboxSettings(root=str(folder)),
        split_command=lambda text: ((tuple(text.split()),), ""),
        looks_secret=lambda text: None,
        resolve_secret=str,
        redact=str,
        passed_over=lambda path, root: False,
    )
    return HookServer(door, toolbox, StoreJournal(store))


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
