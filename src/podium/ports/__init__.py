"""The protocols rooms meet through. No I/O, no implementation."""

from podium.ports.agent import Agent
from podium.ports.classifier import Classifier
from podium.ports.clock import Clock, Ids
from podium.ports.door import ANY_USE, HookDoors, Translate, TurnDoor, nameless_use
from podium.ports.enclosures import Enclosures
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
from podium.ports.forge import Forge
from podium.ports.gate import Checkpoint, Gate, Toolbox, ToolDoor
from podium.ports.habits import Habits
from podium.ports.inbox import Inbox, Shelf
from podium.ports.launcher import Launcher, Process
from podium.ports.notices import Notice, NoticePart, Outlet, Told, ToldBook, ToldMark
from podium.ports.presence import Presence
from podium.ports.sense_record import SenseRecord, TrustBook
from podium.ports.source import Source
from podium.ports.store import EventQuery, Journal, RunQuery, Store, Tx, View
from podium.ports.terminals import Mirror, Terminals
from podium.ports.transcripts import Transcript, Transcripts
from podium.ports.workspace import Workspace, Workspaces

__all__ = [
    "ANY_USE",
    "ONCE",
    "Agent",
    "Checkpoint",
    "Classifier",
    "Clock",
    "Enclosures",
    "Engine",
    "EventQuery",
    "Flow",
    "FlowBody",
    "FlowContext",
    "Forge",
    "Gate",
    "Habits",
    "HookDoors",
    "Ids",
    "Inbox",
    "Journal",
    "Launcher",
    "Mirror",
    "Notice",
    "NoticePart",
    "Outlet",
    "Presence",
    "Process",
    "Retry",
    "RunQuery",
    "SenseRecord",
    "Shelf",
    "Source",
    "Step",
    "StepFunction",
    "Store",
    "Terminals",
    "Told",
    "ToldBook",
    "ToldMark",
    "ToolDoor",
    "Toolbox",
    "Transcript",
    "Transcripts",
    "Translate",
    "TrustBook",
    "TurnDoor",
    "Tx",
    "View",
    "Workspace",
    "Workspaces",
    "nameless_use",
]
