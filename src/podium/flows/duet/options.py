"""What a project says of its duets, under `flows: duet:` in podium.yaml."""

from __future__ import annotations

from pydantic import Field

from podium.domain.duets import DuetLimits, PairName, Transport
from podium.domain.model import NonEmpty, Noun


class PairOptions(Noun):
    """A further pair, or what is different about the first."""

    planner: str = ""
    executer: str = ""
    planner_cwd: str = ""
    executer_cwd: str = ""
    """From the project on. Empty: the project itself."""
    socket: str = Field(default="", pattern=r"^[A-Za-z0-9_-]{0,40}$")
    """A name. Where it lies is tmux's own place: a project does not name files."""
    session: str = ""


class DuetOptions(Noun):
    """Who plans, who executes, and how far they may go."""

    planner: NonEmpty = "claude"
    """Name of an agent of podium.yaml, or a CLI that is known by itself."""
    executer: NonEmpty = "codex"
    transport: Transport = "tui"
    limits: DuetLimits = DuetLimits()
    pairs: dict[PairName, PairOptions] = Field(default_factory=dict)
    """Beside `main`, which is always there."""
