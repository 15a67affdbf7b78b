"""What a project says of its sense loop."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, Strict

from podium.domain.model import Json, NonEmpty, Noun
from podium.domain.steering_files import PACK_FOLDER, PROGRAM_FILES, STEERING_FILE
from podium.domain.terms import Mode

Count = Annotated[PositiveInt, Strict()]
_Steering = Annotated[NonEmpty, STEERING_FILE]

SAFE_ZONES = (
    "g/tools",
    "g/docs",
    "g/telemetry",
    "g/reports",
    "g/knowledge",
    "bridge",
    "logs",
    "state",
)
FORBIDDEN_ZONES = ("CLC", "CLS")

CLC_ORCHESTRATOR = """\
You are the planner of a small system that must keep running. You are shown its state: health checks, answers of the \
worker that executes work orders, and the states of long sessions. Decide whether anything should be done about it.
Propose little: an item for what is broken, stuck or clearly due, and none for what is well. One item for one cause. \
Say what a work order must achieve and the few steps it takes, each checkable.
You cannot act and have no tools. You answer with one plan, and nothing else."""


class Layout(Noun):
    """Where things lie, from the root on."""

    health: NonEmpty = "g/telemetry/health_check_latest.json"
    acks: _Steering = "bridge/outbox/LIAM"
    """Folder of `*.ack.json`: the worker's answers, written here and sensed from here."""
    sessions: NonEmpty = "state/clc_sessions"
    inbox: _Steering = "bridge/inbox/CLC"
    claimed: _Steering = "bridge/claimed/CLC"
    """Orders that a worker has taken."""
    done: _Steering = "bridge/done/CLC"
    parked: _Steering = "bridge/parked/CLC"
    """Orders that could not be done, each with its reason beside it."""
    candidates: _Steering = "g/reports/wo_candidates"
    telemetry: NonEmpty = "g/telemetry/gmx_clc_orch.jsonl"
    log: NonEmpty = "logs/gmx_clc_orchestrator.log"
    parser_log: NonEmpty = "logs/gmx_clc_parse_plan.log"


class SourceOptions(Noun):
    """One more place to look at. `kind` says which fields count."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
    kind: Literal["file", "folder", "command", "http", "git", "log", "figures"]
    path: str = ""
    """file, folder, git, log, figures: from the root on."""
    pattern: str = "*"
    """folder: names of files that count."""
    newest: Count = 20
    """folder: how many files are shown, the newest first. git: how many commits. log: how many lines."""
    command: Annotated[tuple[NonEmpty, ...], PROGRAM_FILES] = ()
    """command: the program and its words. From a project it needs `podium trust`."""
    url: str = ""
    """http: the address. From a project it needs `podium trust`."""
    timeout_seconds: PositiveFloat = 10.0
    stale_seconds: PositiveFloat | None = None
    """What is older counts as stale."""


class Profile(Noun):
    """A named way of asking the planner's CLI."""

    system: NonEmpty
    """What the planner is and how it thinks."""
    model: str = ""
    """Empty: the agent's own choice."""
    timeout_seconds: PositiveFloat = 180.0


class SenseOptions(Noun):
    """`flows: sense:` in podium.yaml."""

    mode: Mode | None = None
    """How far the loop goes. None: the `mode` that is set for everything, or `sensing` where none is."""
    every_seconds: PositiveFloat = 300.0
    planner: NonEmpty = "gemini"
    """`rules`, `none`, or the name of an agent. `gemini` needs no entry under `agents:`."""
    profile: NonEmpty = "clc-orchestrator"
    profiles: dict[NonEmpty, Profile] = Field(
        default_factory=lambda: {"clc-orchestrator": Profile(system=CLC_ORCHESTRATOR)}
    )
    rules: Annotated[str, STEERING_FILE] = ""
    """File with rules for `planner: rules`, from the root on. Empty: those that come with Podium."""
    writer: str = ""
    """Agent that makes operations of tasks in words. Empty: such orders wait for a person."""
    pack: Annotated[str, PACK_FOLDER] = ""
    """Pack whose tools orders may call. Empty: none."""
    layout: Layout = Layout()
    newest_acks: Count = 20
    newest_sessions: Count = 50
    health_stale_seconds: PositiveFloat = 3600.0
    session_stalled_seconds: PositiveFloat = 86_400.0
    sources: tuple[SourceOptions, ...] = ()
    file_bytes: Count = 200_000
    """Larger files are named in the bundle, not shown."""
    bundle_bytes: Count = 400_000
    safe_zones: tuple[NonEmpty, ...] = SAFE_ZONES
    """Where orders may write, from the root on."""
    forbidden_zones: tuple[NonEmpty, ...] = FORBIDDEN_ZONES
    """Where nothing may be touched, also inside safe zones."""
    replan_seconds: PositiveFloat | None = None
    """Ask the planner again after so long, although nothing changed. None: never."""
    again_seconds: PositiveFloat = 3600.0
    """The same subject is not proposed again within so long after it was delivered or rejected."""
    orders_per_hour: Count = 12
    orders_per_day: Count = 50
    promote_after: Count = 10
    """So many agreements in a row propose a promotion."""
    most_tries: Count = 3
    """An order that failed so often is parked."""
    log_bytes: Count = 5_000_000
    """A log or telemetry file that grew beyond is turned over; five old ones are kept."""

    def record(self) -> dict[str, Json]:
        return self.model_dump(mode="json")
