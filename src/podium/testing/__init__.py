"""Fakes for the ports, small and honest, for Podium's own tests and for everybody else's."""

from podium.testing.agents import FakeAgent, FakeClassifier, MemoryOutlet, MemoryTranscripts, sure
from podium.testing.clock import FixedClock, SteadyIds, retry_until, retry_until_blocking
from podium.testing.memory_store import MemoryJournal, MemoryStore
from podium.testing.processes import (
    FakeEnclosures,
    FakeHookDoors,
    FakeLauncher,
    FakeProcess,
    FakeTurnDoor,
)
from podium.testing.sense import FixedSource, MemoryInbox, MemorySenseRecord, MemoryTrustBook
from podium.testing.terminals import MemoryMirror, MemoryTerminals
from podium.testing.tools import FakeTool, FakeToolbox, ScriptedGate, ScriptedToolDoor, decision

__all__ = [
    "FakeAgent",
    "FakeClassifier",
    "FakeEnclosures",
    "FakeHookDoors",
    "FakeLauncher",
    "FakeProcess",
    "FakeTool",
    "FakeToolbox",
    "FakeTurnDoor",
    "FixedClock",
    "FixedSource",
    "MemoryInbox",
    "MemoryJournal",
    "MemoryMirror",
    "MemoryOutlet",
    "MemorySenseRecord",
    "MemoryStore",
    "MemoryTerminals",
    "MemoryTranscripts",
    "MemoryTrustBook",
    "ScriptedGate",
    "ScriptedToolDoor",
    "SteadyIds",
    "decision",
    "retry_until",
    "retry_until_blocking",
    "sure",
]
