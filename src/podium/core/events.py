"""Events: the envelope, the kernel's own types, and the registry that finds the class of any type by its name.

An event type never changes its meaning. A new field gets a default; a changed shape gets a new `version` and an upcast
that lifts the old one when it is read. A new type of the kernel is a class in the file of its subject, `run_events` or
`agent_events`; one of a job is a class in the job's folder, listed in its `job.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from operator import or_
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic_core import core_schema

from podium.core import agent_events, run_events
from podium.core.agent_events import (
    AgentAsked,
    AgentProgressed,
    AgentReplied,
    AgentStopped,
    AgentSwitched,
    BranchCollision,
    BranchDelivered,
    ChecksRan,
    ModelAnswered,
    NoteTaken,
    ProgressKind,
    UsageRecorded,
    WorkspaceChecked,
)
from podium.core.job import job_event_types, job_of_event, load
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

__all__ = [
    "KERNEL_EVENTS",
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
    "BranchCollision",
    "BranchDelivered",
    "ChecksRan",
    "ChildStarted",
    "Event",
    "EventBody",
    "FlowCodeChanged",
    "ModelAnswered",
    "NoteTaken",
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
    "SignalReceived",
    "SignalSent",
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
    "UnknownEvent",
    "Upcast",
    "UsageRecorded",
    "WaitExpired",
    "WorkspaceChecked",
    "event_class",
    "event_classes",
    "event_union",
    "lifted",
    "read_body",
]

KERNEL_EVENTS: dict[str, type[EventBody]] = {
    kind.model_fields["type"].default: kind
    for module in (run_events, agent_events)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, EventBody) and kind is not EventBody
}
"""Type → class of every event of the kernel."""

_MAX_CACHED_TYPES = 1000


class UnknownEvent(EventBody):
    """Event of a job that is not installed, or of a newer Podium. Keeps every field as it is stored."""

    model_config = ConfigDict(extra="allow")


@lru_cache(_MAX_CACHED_TYPES)
def event_class(name: str) -> type[EventBody]:
    """Class of this type of event, loaded from its job if it is none of the kernel's; `UnknownEvent` if there is none."""
    if (kind := KERNEL_EVENTS.get(name)) is not None:
        return kind
    job = job_of_event(name)
    if job is None:
        return UnknownEvent
    try:
        of_job: type[EventBody] = load(job.events[name])
    except (ImportError, AttributeError):
        return UnknownEvent
    return of_job


def event_classes() -> dict[str, type[EventBody]]:
    """Type → class of every event there is. Loads those of all jobs: for schemas and documentation."""
    of_jobs = {name: event_class(name) for name in job_event_types()}
    registered = {name: kind for name, kind in of_jobs.items() if kind is not UnknownEvent}
    return {**KERNEL_EVENTS, **registered}


class _AnyEvent:
    """Validation and schema of an event body for pydantic: by the class of its type."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(_validated)

    @staticmethod
    def __get_pydantic_json_schema__(schema: Any, handler: Any) -> Any:
        return handler(event_union().core_schema)


AnyEvent = Annotated[EventBody, _AnyEvent]
"""Body of an event of any type that is registered, or an `UnknownEvent`."""


def event_union() -> TypeAdapter[Any]:
    """All types of events as one discriminated union, for their JSON Schema."""
    union: Any = reduce(or_, event_classes().values())
    return TypeAdapter(Annotated[union, Field(discriminator="type")])


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
"""(type, version) → how to lift a stored body of that version to the next one, for events of the kernel."""


@lru_cache(_MAX_CACHED_TYPES)
def _upcast_of_job(name: str, version: int) -> Upcast | None:
    job = None if name in KERNEL_EVENTS else job_of_event(name)
    path = job.upcasts.get((name, version)) if job is not None else None
    return load(path) if path else None


def lifted(data: dict[str, Json]) -> dict[str, Json]:
    """Stored data of any version as today's version has it."""
    name = str(data.get("type"))
    if not UPCASTS and name in KERNEL_EVENTS:
        return data  # at once: long traces consist of these
    while (lift := _upcast_of(name, int(data.get("version", 1)))) is not None:
        data = lift(data)
    return data


def _upcast_of(name: str, version: int) -> Upcast | None:
    return UPCASTS.get((name, version)) or _upcast_of_job(name, version)


def read_body(data: dict[str, Json]) -> EventBody:
    """Make an event body of stored data, lifting old versions first. Only the class of its type is built."""
    data = lifted(data)
    return event_class(str(data.get("type"))).model_validate(data)


def _validated(value: Any) -> EventBody:
    if isinstance(value, EventBody):
        return value
    if not isinstance(value, dict):
        raise ValueError("an event must be a JSON object")
    return read_body(value)
