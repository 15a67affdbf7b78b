"""Models of a duet: pair, sides, limits, job, result, status, and the options under `flows: duet:` in podium.yaml."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from podium.core.keyboards import KeyboardHold
from podium.core.model import FrozenModel, NonEmpty
from podium.core.turns import MessageType, PairName, Side

DUET = "duet"
"""The flow's name, and the queue that its tasks wait in."""

Transport = Literal["tui", "headless"]
"""Live terminals, or one call of an agent for each turn, whatever kind it is of."""


class PairSide(FrozenModel):
    """One side of a pair: its agent and folder."""

    agent: NonEmpty
    """Name of an agent of podium.yaml, or of a CLI that is known by itself: `claude`, `codex`, `gemini`."""
    command: tuple[NonEmpty, ...] = ()
    """Command that starts it instead of the usual one. Set by a person only, never by a project's file."""
    cwd: NonEmpty
    """Real path of its folder."""


class Pair(FrozenModel):
    """Two sides that work for each other, on one tmux server where they are terminals."""

    name: PairName = "main"
    planner: PairSide
    executer: PairSide
    transport: Transport = "tui"
    socket: NonEmpty = "poli"
    """Name or path of the tmux server's socket."""
    session: PairName = "main"

    def slot(self, side: Side) -> PairSide:
        return self.planner if side == "PLANNER" else self.executer


class DuetLimits(FrozenModel):
    """Time limits and counts of a task."""

    plan_seconds: float = Field(default=180.0, gt=0)
    """Time limit for a plan, and for the report."""
    result_seconds: float = Field(default=900.0, gt=0)
    """Time limit for a result."""
    longest_seconds: float = Field(default=14_400.0, gt=0)
    """Time limit of one hand-over, however much progress is reported."""
    rounds: int = Field(default=5, ge=1, le=100)
    """Maximum number of plans for one task."""
    nudges: int = Field(default=1, ge=0, le=10)
    """Reminders to an agent that ended its turn without its message."""


class DuetJob(FrozenModel):
    """A task for one of several pairs."""

    text: NonEmpty
    pairs: tuple[Pair, ...] = Field(min_length=1)
    """The first free one of these does it."""
    limits: DuetLimits = DuetLimits()
    patient: bool = False
    """Wait until one of the pairs is free. Else it is an error that none is."""


class DuetResult(FrozenModel):
    """Result of a task."""

    done: bool
    report: str
    rounds: int
    task_id: str
    pair: str


class SideStatus(FrozenModel):
    """Current status of one side of a pair."""

    side: Side
    agent: str
    pane: str = ""
    status: str
    """`starting`, `ready`, `busy`, `asking`, `unknown`, `dead`, or `down`."""
    question: str = ""
    """Question on its screen."""
    session: str = ""
    """Its conversation, as its program names it."""
    cwd: str = ""
    keyboard: KeyboardHold | None = None
    """The person who has taken its keyboard."""


class PairStatus(FrozenModel):
    """Current status of a pair."""

    pair: str
    transport: Transport
    socket: str = ""
    """Path of its tmux server's socket."""
    session: str = ""
    up: bool = False
    trouble: str = ""
    """Reason why its status is unknown."""
    sides: tuple[SideStatus, ...] = ()


class Hop(FrozenModel):
    """One row of the state table: which message is awaited from whom."""

    number: int
    """From 0, within the task."""
    round: int
    """From 1."""
    expected_from: Side
    expected: tuple[MessageType, ...]
    task: NonEmpty
    nonce: NonEmpty


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
