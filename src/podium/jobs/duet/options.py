"""Options under `flows: duet:` in podium.yaml."""

from __future__ import annotations

from pydantic import Field

from podium.core.model import FrozenModel, NonEmpty
from podium.core.turns import PairName
from podium.jobs.duet.models import DuetLimits, Transport


class PairOptions(FrozenModel):
    """Another pair of terminals, or what differs in the first."""

    planner: str = ""
    """Agent that plans. Empty: as above."""
    executer: str = ""
    """Agent that executes. Empty: as above."""
    planner_cwd: str = ""
    """Folder it works in, relative to the project. Empty: the project."""
    executer_cwd: str = ""
    """Folder it works in, relative to the project. Empty: the project."""
    socket: str = Field(default="", pattern=r"^[A-Za-z0-9_-]{0,40}$")
    """Name of the tmux socket."""
    session: str = ""
    """Name of the tmux session."""


class DuetOptions(FrozenModel):
    """Options of `podium duet`."""

    planner: NonEmpty = "claude"
    """Agent that plans: a name from `agents`, or `claude`, `codex` or `gemini`."""
    executer: NonEmpty = "codex"
    """Agent that executes: a name from `agents`, or `claude`, `codex` or `gemini`."""
    transport: Transport = "tui"
    """`tui`: live terminals; `headless`: one call of the agent for each turn."""
    limits: DuetLimits = DuetLimits()
    """Time limits and rounds."""
    pairs: dict[PairName, PairOptions] = Field(default_factory=dict)
    """More pairs by name, beside `main`."""
