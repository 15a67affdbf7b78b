"""Fakes for the ports, small and honest, for Podium's own tests and for everybody else's."""

from podium.testing.agents import FakeAgent, MemoryOutlet, MemoryTranscripts
from podium.testing.clock import FixedClock, SteadyIds, retry_until, retry_until_blocking
from podium.testing.memory_store import MemoryJournal, MemoryStore
from podium.testing.processes import (
    FakeConfinementProvider,
    FakeHookDoors,
    FakeLauncher,
    FakeProcess,
    FakeTurnDoor,
)
from podium.testing.terminals import MemoryMirror, MemoryTerminals
from podium.testing.tools import FakeTool, FakeToolbox, ScriptedGate, ScriptedToolDoor, decision

__all__ = [
    "FakeAgent",
    "FakeConfinementProvider",
    "FakeHookDoors",
    "FakeLauncher",
    "FakeProcess",
    "FakeTool",
    "FakeToolbox",
    "FakeTurnDoor",
    "FixedClock",
    "MemoryJournal",
    "MemoryMirror",
    "MemoryOutlet",
    "MemoryStore",
    "MemoryTerminals",
    "MemoryTranscripts",
    "ScriptedGate",
    "ScriptedToolDoor",
    "SteadyIds",
    "decision",
    "retry_until",
    "retry_until_blocking",
]
