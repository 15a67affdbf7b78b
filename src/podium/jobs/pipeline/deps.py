"""Dependencies and input of the flow, and the tools that a stage of each purpose may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from pydantic import Field

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.turn_step import RoleAgent
from podium.app.checks import Check, RunCheck
from podium.core.model import FrozenModel, NonEmpty
from podium.core.workspaces import WorkspaceSpec
from podium.jobs.pipeline.spec import Does, PipelineSpec
from podium.ports import Clock, Forge, Journal, Toolbox, Workspaces


@dataclass(frozen=True)
class PipelineKit:
    """What the story needs of the house."""

    player_for: Callable[[str, str], RoleAgent]
    """Who plays a role; the second word names an agent that plays all of them. Raises `BadInput`."""
    purse: BudgetTracker
    clock: Clock
    workspaces: Workspaces
    wish: Callable[..., WorkspaceSpec]
    """A workspace as the settings want it, by task, `base`, `branch` and `run_id`."""
    forge: Forge
    checks: Callable[[], tuple[Check, ...] | None]
    """What podium.yaml names just now: a wrong one can be mended while a run waits. None: it names none."""
    run_check: RunCheck
    toolbox_in: Callable[[str], Awaitable[Toolbox]]
    """The tools of a folder, behind the gate."""
    human_notes: Callable[[], Awaitable[str]]
    """What a person has written down for agents, in their own checkout, just now."""
    journal: Journal
    """For telling other runs what concerns them."""
    looks_secret: Callable[[str], str | None]
    redact: Callable[[str], str]
    """Takes secrets out of what is written down for others to see."""


class PipelineJob(FrozenModel):
    """A task and how it is to be worked on, whole: a resumed run goes by what it was started with."""

    task: NonEmpty
    mode: NonEmpty
    repository: NonEmpty
    """The user's checkout."""
    base: NonEmpty
    """Short name of the branch that the work starts from and is meant for."""
    agent: str = ""
    """Plays every role. Empty: whom podium.yaml names."""
    spec: PipelineSpec
    prompts: dict[str, str] = Field(default_factory=dict)
    """Name → text."""
    warnings: tuple[str, ...] = ()
    """What a person should know before it begins."""

    def prompt(self, stage: str) -> str:
        own = self.spec.stages[stage].prompt or stage
        return self.prompts[self.spec.mode(self.mode).prompts.get(stage, own)]


Trailers = Mapping[str, str]


JUDGING = (
    "read_file",
    "list_files",
    "find_files",
    "search_text",
    "git_status",
    "git_diff",
    "git_log",
    "run_command",
    "ask_human",
)
"""Commands are among them: a judge may run the tests."""
_DOCUMENT = (*JUDGING, "write_file", "edit_file")
"""CLIs write a new file by either of the two."""
_TOOLS: Mapping[Does, tuple[str, ...]] = {
    "review": JUDGING,
    "audit": _DOCUMENT,
    "report": _DOCUMENT,
    "plan": _DOCUMENT,
}
"""Stages that are not named have all tools."""


def with_tools_for(player: RoleAgent, does: Does) -> RoleAgent:
    """The player with the tools of such a stage, unless the settings name those of its role."""
    tools = _TOOLS.get(does)
    if tools is None or player.allowed_tools is not None:
        return player
    return replace(player, allowed_tools=tools)
