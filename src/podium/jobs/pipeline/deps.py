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
class PipelineDeps:
    """Dependencies of the pipeline's flow."""

    role_agent_for: Callable[[str, str], RoleAgent]
    """Agent for a role; the second argument names an agent that plays all roles. Raises `BadInput`."""
    budget: BudgetTracker
    clock: Clock
    workspaces: Workspaces
    workspace_spec: Callable[..., WorkspaceSpec]
    """A workspace as the settings want it, by task, `base`, `branch` and `run_id`."""
    forge: Forge
    checks: Callable[[], tuple[Check, ...] | None]
    """Checks that podium.yaml names now: they can be corrected while a run waits. None: it names none."""
    run_check: RunCheck
    toolbox_in: Callable[[str], Awaitable[Toolbox]]
    """The tools of a folder, behind the gate."""
    human_notes: Callable[[], Awaitable[str]]
    """Current notes of a person for agents, from their own checkout."""
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
    """Warnings for the person who starts it."""

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


def with_tools_for(role_agent: RoleAgent, does: Does) -> RoleAgent:
    """The player with the tools of such a stage, unless the settings name those of its role."""
    tools = _TOOLS.get(does)
    if tools is None or role_agent.allowed_tools is not None:
        return role_agent
    return replace(role_agent, allowed_tools=tools)
