"""Union of all events with their envelope, and the events of agents' turns.

An event type never changes its meaning. A new field gets a default; a changed shape gets a new
`version` and an entry in `UPCASTS` that lifts the old one when it is read. A new type stands in the
file of its subject, and here: in the imports, in `__all__` and in `AnyEvent`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter

from podium.core.decisions import Usage
from podium.core.job_events import (
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
from podium.core.model import EventBody, FrozenModel, Json, UtcDatetime
from podium.core.run_events import (
    ApprovalConsumed,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
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
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
    ToolResolved,
    WaitExpired,
)
from podium.core.turns import ModelAnswer, PayloadFound, ReadFrom, TurnStop
from podium.core.workspaces import Violation

ProgressKind = Literal["text", "thinking", "tool", "retry", "note"]
"""What a piece of progress is: words, thoughts, the use of a tool, another try, or anything else."""


class AgentAsked(EventBody):
    type: Literal["agent_asked"] = "agent_asked"
    role: str
    agent: str
    prompt: str
    step: str = ""
    """The step that the turn is. Empty in records of before it was kept."""


class ModelAnswered(EventBody):
    """A model answered within a turn. Durable before anything that it asks for is done."""

    type: Literal["model_answered"] = "model_answered"
    step: str
    asking: int = 0
    role: str
    agent: str
    answer: ModelAnswer


class AgentStopped(EventBody):
    """A turn came to a limit and was ended there."""

    type: Literal["agent_stopped"] = "agent_stopped"
    role: str
    agent: str
    stop: TurnStop


class AgentReplied(EventBody):
    type: Literal["agent_replied"] = "agent_replied"
    role: str
    agent: str
    text: str
    usage: Usage = Usage()
    seconds: float = 0.0
    model: str = ""
    agent_version: str = ""
    found: PayloadFound = "none"
    transcript: str | None = None
    warnings: tuple[str, ...] = ()
    read_from: ReadFrom = ""


class AgentProgressed(EventBody):
    """What an agent is at, said while the turn lasts. Small pieces come together as one."""

    type: Literal["agent_progressed"] = "agent_progressed"
    role: str
    agent: str
    kind: ProgressKind
    text: str


class AgentSwitched(EventBody):
    """An agent could not answer, and the next of the role's list is asked."""

    type: Literal["agent_switched"] = "agent_switched"
    role: str
    agent: str
    next_agent: str
    reason: str


class WorkspaceChecked(EventBody):
    """A turn in a workspace has ended, and this is what it left of the user's repository."""

    type: Literal["workspace_checked"] = "workspace_checked"
    workspace: str
    refs_before: str
    """Digest of every ref, setting and hook before the turn; `refs_after` the same behind it."""
    refs_after: str
    violations: tuple[Violation, ...] = ()
    moved_away: tuple[str, ...] = ()
    changed_meanwhile: tuple[str, ...] = ()


class UsageRecorded(EventBody):
    type: Literal["usage_recorded"] = "usage_recorded"
    source: str
    usage: Usage
    step: str = ""


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


class Event(FrozenModel):
    """A stored event. Within a run `seq` counts from 1 without gaps."""

    run_id: str
    seq: int
    position: int
    """Place in the whole journal: rises with every commit, never reused."""
    at: UtcDatetime
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
