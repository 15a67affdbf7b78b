"""Everything that can have happened, in past tense, as one discriminated union.

An event type never changes its meaning. A new field gets a default; a changed shape gets a new
`version` and an entry in `UPCASTS` that lifts the old one when it is read. A new type stands in the
file of its subject, and here: in the imports, in `__all__` and in `AnyEvent`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, get_args

from pydantic import ConfigDict, Field, TypeAdapter

from podium.domain.agent_events import (
    AgentAsked,
    AgentProgressed,
    AgentReplied,
    AgentStopped,
    AgentSwitched,
    ModelAnswered,
    ProgressKind,
    UsageRecorded,
    WorkspaceChecked,
)
from podium.domain.call_events import (
    ApprovalConsumed,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
    ToolResolved,
)
from podium.domain.event_body import EventBody
from podium.domain.flow_events import (
    BlockIgnored,
    BranchDelivered,
    ChecksRan,
    CollisionSeen,
    KeyboardReturned,
    KeyboardTaken,
    LegOpened,
    MessageHeard,
    NoteTaken,
    PairSeated,
    PlaybookBegan,
    PlaybookEnded,
    SideNudged,
    StageBegan,
    StageEnded,
    ToolsGiven,
)
from podium.domain.model import Json, Moment, Noun
from podium.domain.run_events import (
    ChildStarted,
    FlowCodeChanged,
    RunCancelled,
    RunCancelRequested,
    RunFailed,
    RunNeededHuman,
    RunParked,
    RunPinned,
    RunQueued,
    RunRetried,
    RunStarted,
    RunSucceeded,
    RunUnpinned,
    RunWaiting,
    SignalReceived,
    SignalSent,
    StepBroke,
    StepCompleted,
    StepStarted,
    WaitExpired,
)

__all__ = [
    "ANY_EVENT",
    "UPCASTS",
    "AgentAsked",
    "AgentProgressed",
    "AgentReplied",
    "AgentStopped",
    "AgentSwitched",
    "AnyEvent",
    "ApprovalConsumed",
    "ApprovalExpired",
    "ApprovalGranted",
    "ApprovalRejected",
    "ApprovalRequested",
    "BlockIgnored",
    "BranchDelivered",
    "ChecksRan",
    "ChildStarted",
    "CollisionSeen",
    "Event",
    "EventBody",
    "FlowCodeChanged",
    "KeyboardReturned",
    "KeyboardTaken",
    "LegOpened",
    "MessageHeard",
    "ModelAnswered",
    "NoteTaken",
    "PairSeated",
    "PlaybookBegan",
    "PlaybookEnded",
    "ProgressKind",
    "RunCancelRequested",
    "RunCancelled",
    "RunFailed",
    "RunNeededHuman",
    "RunParked",
    "RunPinned",
    "RunQueued",
    "RunRetried",
    "RunStarted",
    "RunSucceeded",
    "RunUnpinned",
    "RunWaiting",
    "SideNudged",
    "SignalReceived",
    "SignalSent",
    "StageBegan",
    "StageEnded",
    "StepBroke",
    "StepCompleted",
    "StepStarted",
    "ToolAbandoned",
    "ToolCompleted",
    "ToolFailed",
    "ToolInDoubt",
    "ToolRefused",
    "ToolRequested",
    "ToolResolved",
    "ToolsGiven",
    "Upcast",
    "UsageRecorded",
    "WaitExpired",
    "WorkspaceChecked",
    "lifted",
    "read_body",
]

AnyEvent = Annotated[
    RunQueued
    | RunStarted
    | RunParked
    | RunPinned
    | RunUnpinned
    | RunWaiting
    | RunSucceeded
    | RunFailed
    | RunNeededHuman
    | RunCancelRequested
    | RunCancelled
    | RunRetried
    | FlowCodeChanged
    | StepStarted
    | StepCompleted
    | StepBroke
    | SignalSent
    | SignalReceived
    | WaitExpired
    | ChildStarted
    | AgentAsked
    | ModelAnswered
    | AgentStopped
    | AgentReplied
    | AgentProgressed
    | AgentSwitched
    | WorkspaceChecked
    | ToolRequested
    | ToolRefused
    | ToolCompleted
    | ToolFailed
    | ToolInDoubt
    | ToolAbandoned
    | ToolResolved
    | ApprovalRequested
    | ApprovalGranted
    | ApprovalRejected
    | ApprovalExpired
    | ApprovalConsumed
    | UsageRecorded
    | StageBegan
    | StageEnded
    | ChecksRan
    | CollisionSeen
    | BranchDelivered
    | PlaybookBegan
    | ToolsGiven
    | PlaybookEnded
    | PairSeated
    | LegOpened
    | MessageHeard
    | BlockIgnored
    | SideNudged
    | KeyboardTaken
    | KeyboardReturned
    | NoteTaken,
    Field(discriminator="type"),
]

_EVENT_CLASSES: dict[str, Any] = {
    event_class.model_fields["type"].default: event_class
    for event_class in get_args(get_args(AnyEvent)[0])
}
ANY_EVENT: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent, config=ConfigDict(defer_build=True))
"""Validates any event body."""


class Event(Noun):
    """A stored event. Within a run `seq` counts from 1 without gaps."""

    run_id: str
    seq: int
    position: int
    """Place in the whole journal: rises with every commit, never reused."""
    at: Moment
    body: AnyEvent

    def line(self) -> dict[str, Json]:
        """The event flat, as it stands in traces and `--json`."""
        return {
            "run": self.run_id,
            "seq": self.seq,
            "at": self.at.isoformat(),
            **self.body.model_dump(mode="json"),
        }


Upcast = Callable[[dict[str, Json]], dict[str, Json]]

UPCASTS: dict[tuple[str, int], Upcast] = {}
"""(type, version) → how to lift a stored body of that version to the next one."""


def lifted(
    data: dict[str, Json], upcasts: dict[tuple[str, int], Upcast] | None = None
) -> dict[str, Json]:
    """Stored data of any version as today's version has it."""
    table = UPCASTS if upcasts is None else upcasts
    while (lift := table.get((str(data.get("type")), int(data.get("version", 1))))) is not None:
        data = lift(data)
    return data


def read_body(
    data: dict[str, Json], upcasts: dict[tuple[str, int], Upcast] | None = None
) -> AnyEvent:
    """Make an event body of stored data, lifting old versions first.

    Only the class of that type is built; `ANY_EVENT` builds them all.
    """
    data = lifted(data, upcasts)
    event_class = _EVENT_CLASSES.get(str(data.get("type")))
    if event_class is None:
        return ANY_EVENT.validate_python(data)  # raises a `ValidationError` that lists the types
    body: AnyEvent = event_class.model_validate(data)
    return body
