"""Events of agents' turns and of their work: checks, foreseen conflicts, the delivered branch, and notes."""

from __future__ import annotations

from typing import Literal

from podium.core.decisions import Usage
from podium.core.model import EventBody, Json
from podium.core.turns import ModelAnswer, PayloadSource, ReadFrom, TurnStop
from podium.core.workspaces import Violation

ProgressKind = Literal["text", "thinking", "tool", "retry", "note"]
"""Kinds of progress: text, thoughts, the use of a tool, another try, or anything else."""


class AgentAsked(EventBody):
    type: Literal["agent_asked"] = "agent_asked"
    role: str
    agent: str
    prompt: str
    step: str = ""
    """The step of the turn. Empty in older records."""


class ModelAnswered(EventBody):
    """A model answered within a turn. Stored before any of its requests is performed."""

    type: Literal["model_answered"] = "model_answered"
    step: str
    asking: int = 0
    role: str
    agent: str
    answer: ModelAnswer


class AgentStopped(EventBody):
    """A turn reached a limit and was ended."""

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
    found: PayloadSource = "none"
    transcript: str | None = None
    warnings: tuple[str, ...] = ()
    read_from: ReadFrom = ""


class AgentProgressed(EventBody):
    """Progress of an agent, reported during the turn. Small pieces are combined."""

    type: Literal["agent_progressed"] = "agent_progressed"
    role: str
    agent: str
    kind: ProgressKind
    text: str


class AgentSwitched(EventBody):
    """An agent could not answer; the next agent of the role is asked."""

    type: Literal["agent_switched"] = "agent_switched"
    role: str
    agent: str
    next_agent: str
    reason: str


class WorkspaceChecked(EventBody):
    """A turn in a workspace ended; lists what it changed in the user's repository."""

    type: Literal["workspace_checked"] = "workspace_checked"
    workspace: str
    refs_before: str
    """Digest of every ref, setting and hook before the turn; `refs_after` is the same after it."""
    refs_after: str
    violations: tuple[Violation, ...] = ()
    moved_away: tuple[str, ...] = ()
    changed_meanwhile: tuple[str, ...] = ()


class UsageRecorded(EventBody):
    type: Literal["usage_recorded"] = "usage_recorded"
    source: str
    usage: Usage
    step: str = ""


class ChecksRan(EventBody):
    """The supervisor ran the project's checks on a commit."""

    type: Literal["checks_ran"] = "checks_ran"
    commit: str
    results: tuple[dict[str, Json], ...] = ()
    passed: bool


class BranchCollision(EventBody):
    """Another run works on a branch that conflicts with this run's branch."""

    type: Literal["collision_seen"] = "collision_seen"
    branch: str
    other_branch: str
    other_run: str = ""
    paths: tuple[str, ...] = ()


class BranchDelivered(EventBody):
    """The branch was delivered to where a person can fetch it."""

    type: Literal["branch_delivered"] = "branch_delivered"
    branch: str
    commit: str
    url: str = ""
    file: str = ""
    untested: str = ""
    """Reason why no check ran on it. Empty: checks ran."""


class NoteTaken(EventBody):
    """A note of a flow for people."""

    type: Literal["note_taken"] = "note_taken"
    text: str
