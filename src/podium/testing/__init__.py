"""Fakes for the ports, small and honest, for Podium's own tests and for everybody else's."""

from podium.testing.agent import FakeAgent
from podium.testing.classifier import FakeClassifier, sure
from podium.testing.clock import FixedClock, SteadyIds
from podium.testing.enclosures import FakeEnclosures
from podium.testing.gate import ScriptedGate, decision
from podium.testing.hook_doors import FakeHookDoors, FakeTurnDoor
from podium.testing.inbox import MemoryInbox
from podium.testing.launcher import FakeLauncher, FakeProcess
from podium.testing.memory_journal import MemoryJournal
from podium.testing.memory_store import MemoryStore
from podium.testing.mirror import MemoryMirror
from podium.testing.outlet import MemoryOutlet
from podium.testing.sense_record import MemorySenseRecord
from podium.testing.source import FixedSource
from podium.testing.terminals import MemoryTerminals
from podium.testing.tool_door import ScriptedToolDoor
from podium.testing.toolbox import FakeTool, FakeToolbox
from podium.testing.transcripts import MemoryTranscripts
from podium.testing.trust_book import MemoryTrustBook
from podium.testing.waiting import retry_until, retry_until_blocking

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
