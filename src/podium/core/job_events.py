"""Events of the jobs: stages, playbooks, duets."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from podium.core.decisions import Usage
from podium.core.model import EventBody, Json
from podium.core.turns import Address, Hop, MessageBlock, Side, TurnStop


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
    sizes: dict[str, int] = Field(default_factory=dict)
    """Characters of its prompt by part."""


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
    disputed: tuple[str, ...] = ()
    """Checks that it calls wrong, with its reasons, for a person to decide about."""
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
    untested: str = ""
    """Why no check was run on it. Empty: checks ran."""


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
    stop: TurnStop | None = None
    changed: tuple[str, ...] = ()
    """Files that are others now, from the root on."""
    trespasses: tuple[str, ...] = ()
    """What nobody may change, and was changed."""
    unknown: str = ""
    """Why it cannot be said what was changed; empty when it can."""


class PairSeated(EventBody):
    """A pair has taken a task."""

    type: Literal["pair_seated"] = "pair_seated"
    pair: str
    planner: str
    executer: str
    transport: str


class LegOpened(EventBody):
    """A message is awaited: a row of the state table."""

    type: Literal["leg_opened"] = "leg_opened"
    leg: Hop


class MessageHeard(EventBody):
    """A block was read in what an agent said, and this is what was done with it."""

    type: Literal["message_heard"] = "message_heard"
    leg: int
    sender: Side
    message: MessageBlock
    routed_to: Address | None = None
    """None: it was not handed on, and `why` says why."""
    why: str = ""


class BlockIgnored(EventBody):
    """Something that looked like a block could not be read."""

    type: Literal["block_ignored"] = "block_ignored"
    leg: int
    sender: Side
    why: str
    shown: str = ""
    """Its beginning."""


class SideNudged(EventBody):
    """An agent was reminded of the message that it owes."""

    type: Literal["side_nudged"] = "side_nudged"
    leg: int
    side: Side
    why: str


class KeyboardTaken(EventBody):
    """A person took the keyboard of a side: nothing is typed there by Podium, and its time stands still."""

    type: Literal["keyboard_taken"] = "keyboard_taken"
    pair: str
    side: Side
    by: str


class KeyboardReturned(EventBody):
    """The keyboard of a side is Podium's again."""

    type: Literal["keyboard_returned"] = "keyboard_returned"
    pair: str
    side: Side
    by: str
    """Who had it."""
    why: str = ""
    """Empty: they gave it back themselves."""


class NoteTaken(EventBody):
    """A line a flow wants people to see."""

    type: Literal["note_taken"] = "note_taken"
    text: str
