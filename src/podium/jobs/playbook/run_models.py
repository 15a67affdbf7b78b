"""Models of a run: job, working folder, changes, criteria and result."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from podium.core.decisions import Usage
from podium.core.folder_snapshots import FolderChanges
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.turns import Reply, TurnStop
from podium.jobs.playbook.models import Playbook, PlaybookLimits, PluginProfile

PLAYBOOK = "playbook"
"""The flow's name, and the role that its agent plays."""
PROOF = "proof"
"""The role in which Podium itself runs the success criteria."""


class PlaybookJob(FrozenModel):
    """Everything a run of a playbook needs, as it was when it was started.

    The texts are kept whole: what an agent does to the files meanwhile does not change the job.
    """

    playbook: Playbook
    profile: PluginProfile
    inputs: dict[str, Json] = Field(default_factory=dict)
    facts: dict[str, Json] = Field(default_factory=dict)
    agent: NonEmpty
    root: NonEmpty
    """Real path of the folder it works in."""
    tools: tuple[str, ...] = ()
    """Names of the tools that its agent is given."""
    limits: PlaybookLimits = PlaybookLimits()
    """Those of the playbook, completed by the project's and Podium's own."""
    dry_run: bool = False
    """Work in a copy that is thrown away, and show what would have changed."""


class Criterion(FrozenModel):
    """One command that decides about success, and how it ended."""

    command: str
    met: bool
    exit_code: int | None = None
    why: str = ""
    """Short reason why it is not met."""
    said: Annotated[str, Field(max_length=20_000)] = ""
    """The end of what it printed."""
    output_sha256: str = ""
    seconds: float = 0.0

    @property
    def ran(self) -> bool:
        """True if its end was observed; else a person or a rule prevented it."""
        return bool(self.output_sha256)

    def record(self) -> dict[str, Json]:
        return self.model_dump(mode="json")


class AgentEnding(FrozenModel):
    """End of the agent's part of a run."""

    reply: Reply
    """Its last one."""
    criteria: tuple[Criterion, ...] = ()
    ends: int = 1
    """Number of its ends; after all but the last it was asked again."""
    why: str = ""
    """Reason why it was not asked again despite unmet criteria. Empty: they are met, or a limit ended it."""


class PlaybookResult(FrozenModel):
    """Result of a run."""

    met: bool
    run_id: str = ""
    words: str
    """The agent's last text: untrusted, and no proof of anything."""
    criteria: tuple[Criterion, ...] = ()
    ends: int = 1
    """Number of the agent's ends; after all but the last it was asked again with the unmet criteria."""
    given_up: str = ""
    """Reason why it was not asked again despite unmet criteria. Empty: they are met, or a limit ended it."""
    stop: TurnStop | None = None
    changes: FolderChanges = FolderChanges()
    broken: str = ""
    """Reason why it is no success whatever the criteria say. Empty: none."""
    usage: Usage = Usage()
    dry_run: bool = False

    @property
    def unmet(self) -> tuple[Criterion, ...]:
        return tuple(criterion for criterion in self.criteria if not criterion.met)
