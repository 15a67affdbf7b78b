"""Everything that can have happened, in past tense, as one discriminated union.

An event type never changes its meaning. A new field gets a default; a changed shape gets a new
`version` and an entry in `UPCASTS` that lifts the old one when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from podium.domain.asking import ModelAnswer, PayloadFound, Stop
from podium.domain.gating import FileSeen, TierTerm, Usage
from podium.domain.model import Json, Moment, Noun
from podium.domain.work import Failure
from podium.domain.workspaces import Violation

ProgressKind = Literal["text", "thinking", "tool", "retry", "note"]
"""What a piece of progress is: words, thoughts, the use of a tool, another try, or anything else."""


class EventBody(Noun):
    """What happened. The envelope says when, to which run, and in which order."""

    type: str
    version: int = 1


class RunQueued(EventBody):
    type: Literal["run_queued"] = "run_queued"
    flow: str
    flow_version: int
    task: str = ""
    queue: str | None = None
    parent_id: str | None = None


class RunStarted(EventBody):
    """A process took the run. `fence` above 1 means it is not the first."""

    type: Literal["run_started"] = "run_started"
    owner: str
    fence: int


class RunParked(EventBody):
    """The owner let go of the run at a checkpoint; any process may take it on."""

    type: Literal["run_parked"] = "run_parked"
    reason: str


class RunPinned(EventBody):
    """The run has begun something that only this host has, such as a workspace."""

    type: Literal["run_pinned"] = "run_pinned"
    host: str


class RunUnpinned(EventBody):
    """The host that a run was pinned to is lost; any other may go on with it."""

    type: Literal["run_unpinned"] = "run_unpinned"
    host: str
    reason: str


class RunWaiting(EventBody):
    type: Literal["run_waiting"] = "run_waiting"
    signal: str
    deadline: Moment | None = None


class RunSucceeded(EventBody):
    type: Literal["run_succeeded"] = "run_succeeded"
    result: Json = None


class RunFailed(EventBody):
    type: Literal["run_failed"] = "run_failed"
    failure: Failure


class RunNeededHuman(EventBody):
    type: Literal["run_needed_human"] = "run_needed_human"
    reason: str


class RunCancelRequested(EventBody):
    type: Literal["run_cancel_requested"] = "run_cancel_requested"
    by: str
    why: str = ""


class RunCancelled(EventBody):
    type: Literal["run_cancelled"] = "run_cancelled"


class RunRetried(EventBody):
    type: Literal["run_retried"] = "run_retried"
    by: str
    discarded_steps: tuple[str, ...] = ()


class FlowCodeChanged(EventBody):
    """The run goes on under flow code whose source differs from when it started."""

    type: Literal["flow_code_changed"] = "flow_code_changed"
    recorded: str
    current: str


class StepStarted(EventBody):
    type: Literal["step_started"] = "step_started"
    step: str
    attempt: int = 1


class StepCompleted(EventBody):
    type: Literal["step_completed"] = "step_completed"
    step: str
    seconds: float = 0.0


class StepBroke(EventBody):
    """An attempt at a step raised. `final` means the failure is the step's record."""

    type: Literal["step_broke"] = "step_broke"
    step: str
    attempt: int
    failure: Failure
    final: bool


class SignalSent(EventBody):
    type: Literal["signal_sent"] = "signal_sent"
    name: str
    by: str


class SignalReceived(EventBody):
    type: Literal["signal_received"] = "signal_received"
    name: str
    step: str


class WaitExpired(EventBody):
    type: Literal["wait_expired"] = "wait_expired"
    name: str
    step: str


class ChildStarted(EventBody):
    type: Literal["child_started"] = "child_started"
    child_id: str
    flow: str


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
    stop: Stop


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


class ToolRequested(EventBody):
    """Durable before the act."""

    type: Literal["tool_requested"] = "tool_requested"
    call: str
    tool: str
    arguments: dict[str, Json]
    digest: str
    tier: str
    rule: str
    reason: str
    approval_id: str | None = None
    observed: bool = False
    files: tuple[FileSeen, ...] = ()
    """Files that its command names, as they were: the digest covers their content."""


class ToolRefused(EventBody):
    """The gate said deny, or ask and a person was asked."""

    type: Literal["tool_refused"] = "tool_refused"
    call: str
    tool: str
    arguments: dict[str, Json]
    effect: Literal["deny", "ask"]
    tier: str
    rule: str
    reason: str
    approval_id: str | None = None


class ToolCompleted(EventBody):
    type: Literal["tool_completed"] = "tool_completed"
    call: str
    tool: str
    result: Json = None
    seconds: float = 0.0
    receipt: int


class ToolFailed(EventBody):
    type: Literal["tool_failed"] = "tool_failed"
    call: str
    tool: str
    error: str
    result: Json = None
    """What it gave all the same, such as a command's output."""
    seconds: float = 0.0
    receipt: int


class ToolInDoubt(EventBody):
    type: Literal["tool_in_doubt"] = "tool_in_doubt"
    call: str
    tool: str
    receipt: int | None = None


class ToolAbandoned(EventBody):
    type: Literal["tool_abandoned"] = "tool_abandoned"
    call: str
    tool: str
    receipt: int | None = None


class ToolResolved(EventBody):
    """A person said what became of a call in doubt."""

    type: Literal["tool_resolved"] = "tool_resolved"
    call: str
    by: str
    happened: bool


class ApprovalRequested(EventBody):
    type: Literal["approval_requested"] = "approval_requested"
    approval_id: str
    call: str
    tool: str
    summary: str
    digest: str
    tier: str
    arithmetic: tuple[TierTerm, ...] = ()
    approvers: tuple[str, ...] = ()
    deadline: Moment
    files: tuple[FileSeen, ...] = ()
    """Files that its command names, as they were: a yes is one to their content."""


class ApprovalGranted(EventBody):
    """One yes. `complete` is False while others of the chain are still to come."""

    type: Literal["approval_granted"] = "approval_granted"
    approval_id: str
    by: str
    group: str = ""
    complete: bool = True
    said: str = ""


class ApprovalRejected(EventBody):
    type: Literal["approval_rejected"] = "approval_rejected"
    approval_id: str
    by: str
    why: str = ""


class ApprovalExpired(EventBody):
    type: Literal["approval_expired"] = "approval_expired"
    approval_id: str


class ApprovalConsumed(EventBody):
    type: Literal["approval_consumed"] = "approval_consumed"
    approval_id: str
    receipt: int


class UsageRecorded(EventBody):
    type: Literal["usage_recorded"] = "usage_recorded"
    source: str
    usage: Usage
    step: str = ""


class StageBegan(EventBody):
    """A flow put a role to work."""

    type: Literal["stage_began"] = "stage_began"
    stage: str
    phase: str = ""
    role: str
    round: int = 1
    remembered: tuple[str, ...] = ()
    """What of the project's memory went into the prompt, each with why."""
    notes: tuple[str, ...] = ()
    """What a person had written down for it."""


class StageEnded(EventBody):
    """What came out of it, as the supervisor found it."""

    type: Literal["stage_ended"] = "stage_ended"
    stage: str
    phase: str = ""
    role: str
    round: int = 1
    verdict: str
    words: str = ""
    document: str = ""
    commit: str = ""
    problems: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()
    """Paths that it changed and was not to change; they were put back."""
    agent: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0


class ChecksRan(EventBody):
    """The supervisor ran the project's checks on a commit."""

    type: Literal["checks_ran"] = "checks_ran"
    commit: str
    results: tuple[dict[str, Json], ...] = ()
    passed: bool


class CollisionSeen(EventBody):
    """Another run is at work on a branch that cannot be merged with this one's as they are now."""

    type: Literal["collision_seen"] = "collision_seen"
    branch: str
    other_branch: str
    other_run: str = ""
    paths: tuple[str, ...] = ()


class BranchDelivered(EventBody):
    """The branch is where a person can take it from."""

    type: Literal["branch_delivered"] = "branch_delivered"
    branch: str
    commit: str
    url: str = ""
    file: str = ""


class PlaybookBegan(EventBody):
    """A run of a playbook began, with exactly these texts."""

    type: Literal["playbook_began"] = "playbook_began"
    playbook: str
    playbook_digest: str
    profile: str
    profile_digest: str
    tools: tuple[str, ...] = ()
    dry_run: bool = False
    job: dict[str, Json] = Field(default_factory=dict)
    """All that the run was given, so that the trace alone can be replayed; its root stands as `.`."""


class ToolsGiven(EventBody):
    """An agent without hands is about to be asked, with exactly these tools."""

    type: Literal["tools_given"] = "tools_given"
    role: str
    tools: dict[str, str]
    """Name → digest of the tool as it is registered."""


class PlaybookEnded(EventBody):
    """What came of it, by the playbook's own criteria."""

    type: Literal["playbook_ended"] = "playbook_ended"
    met: bool
    criteria: tuple[dict[str, Json], ...] = ()
    stop: Stop | None = None
    changed: tuple[str, ...] = ()
    """Files that its calls wrote, from the root on."""


class NoteTaken(EventBody):
    """A line a flow wants people to see."""

    type: Literal["note_taken"] = "note_taken"
    text: str


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
    | NoteTaken,
    Field(discriminator="type"),
]

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
    """Make an event body of stored data, lifting old versions first."""
    return ANY_EVENT.validate_python(lifted(data, upcasts))
