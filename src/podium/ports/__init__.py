"""The protocols rooms meet through. No I/O, no implementation."""

from podium.ports.agent import Agent
from podium.ports.clock import Clock, Ids
from podium.ports.door import HookDoors, Translate, TurnDoor
from podium.ports.engine import (
    ONCE,
    Engine,
    Flow,
    FlowBody,
    FlowContext,
    Retry,
    Step,
    StepFunction,
)
from podium.ports.gate import Checkpoint, Gate, Toolbox, ToolDoor
from podium.ports.launcher import Launcher, Process
from podium.ports.store import EventQuery, Journal, RunQuery, Store, Tx, View
from podium.ports.transcripts import Transcript, Transcripts

__all__ = [
    "ONCE",
    "Agent",
    "Checkpoint",
    "Clock",
    "Engine",
    "EventQuery",
    "Flow",
    "FlowBody",
    "FlowContext",
    "Gate",
    "HookDoors",
    "Ids",
    "Journal",
    "Launcher",
    "Process",
    "Retry",
    "RunQuery",
    "Step",
    "StepFunction",
    "Store",
    "ToolDoor",
    "Toolbox",
    "Transcript",
    "Transcripts",
    "Translate",
    "TurnDoor",
    "Tx",
    "View",
]
