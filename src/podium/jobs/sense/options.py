"""Options of a project's sense loop; and those in force with the mode, merged from all layers of settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, Strict

from podium.config.flow_options import flow_options
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.steering_files import PACK_FOLDER, PROGRAM_FILES, STEERING_FILE
from podium.core.work import MODES, Mode, QueueSpec
from podium.jobs.sense.io.tick_files import MODE_VARIABLE
from podium.jobs.sense.job import SENSE
from podium.jobs.sense.models import lower_mode

if TYPE_CHECKING:
    from podium.config.configuration import Configuration
    from podium.config.layers import Layer


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
Propose little: items for what is broken, stuck or clearly due, and none for what works. One item per cause. \
Say what a work order must achieve and the few steps it takes, each checkable.
You cannot act and have no tools. You answer with one plan, and nothing else."""


class Layout(FrozenModel):
    """Paths of the files that the loop reads and writes, relative to the root."""

    health: NonEmpty = "g/telemetry/health_check_latest.json"
    """Result of the last health check."""
    acks: _Steering = "bridge/outbox/LIAM"
    """Folder of `*.ack.json`: the worker's answers."""
    sessions: NonEmpty = "state/clc_sessions"
    """Folder of session files."""
    inbox: _Steering = "bridge/inbox/CLC"
    """Folder of orders for the worker."""
    claimed: _Steering = "bridge/claimed/CLC"
    """Folder of orders that a worker has taken."""
    done: _Steering = "bridge/done/CLC"
    """Folder of orders that were done."""
    parked: _Steering = "bridge/parked/CLC"
    """Folder of orders that failed, each with its reason."""
    candidates: _Steering = "g/reports/wo_candidates"
    """Folder of proposed orders."""
    telemetry: NonEmpty = "g/telemetry/gmx_clc_orch.jsonl"
    """File with a line for each tick."""
    log: NonEmpty = "logs/gmx_clc_orchestrator.log"
    """Log of the loop."""
    parser_log: NonEmpty = "logs/gmx_clc_parse_plan.log"
    """Log of the plan parser."""


class SourceOptions(FrozenModel):
    """Another source of state."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
    """Name of the source, for rules and reports."""
    kind: Literal["file", "folder", "command", "http", "git", "log", "figures"]
    """Kind of source; it decides which of the other keys apply."""
    path: str = ""
    """file, folder, git, log, figures: path relative to the root."""
    pattern: str = "*"
    """folder: glob of file names."""
    newest: Count = 20
    """Number of files (folder), commits (git) or lines (log) to read, newest first."""
    command: Annotated[tuple[NonEmpty, ...], PROGRAM_FILES] = ()
    """command: program and arguments. In a project's file it needs `podium trust`."""
    url: str = ""
    """http: address. In a project's file it needs `podium trust`."""
    timeout_seconds: PositiveFloat = 10.0
    """command, http: time limit in seconds."""
    stale_seconds: PositiveFloat | None = None
    """Age in seconds from which the source is stale. Unset: never."""


class Profile(FrozenModel):
    """Settings of the planner's turn."""

    system: NonEmpty
    """System prompt."""
    model: str = ""
    """Model name. Empty: the agent's own default."""
    timeout_seconds: PositiveFloat = 180.0
    """Time limit of one plan, in seconds."""


class SenseOptions(FrozenModel):
    """Options of `podium sense` and of the worker's orders."""

    mode: Mode | None = None
    """Mode of the loop. Unset: the top-level `mode` if it is set, else `sensing`."""
    every_seconds: PositiveFloat = 300.0
    """Seconds between two ticks."""
    planner: NonEmpty = "gemini"
    """`rules`, `none`, or the name of an agent; `gemini` needs no entry under `agents`."""
    profile: NonEmpty = "clc-orchestrator"
    """Name of the entry in `profiles` to use."""
    profiles: dict[NonEmpty, Profile] = Field(
        default_factory=lambda: {"clc-orchestrator": Profile(system=CLC_ORCHESTRATOR)}
    )
    """Planner settings by name."""
    rules: Annotated[str, STEERING_FILE] = ""
    """File of rules for `planner: rules`, relative to the root. Empty: the built-in rules."""
    writer: str = ""
    """Agent that turns orders in plain words into operations. Empty: such orders wait for a person."""
    pack: Annotated[str, PACK_FOLDER] = ""
    """Tool pack that orders may use. Empty: none."""
    layout: Layout = Layout()
    """Paths of files and folders."""
    newest_acks: Count = 20
    """Number of the worker's answers to read."""
    newest_sessions: Count = 50
    """Number of sessions to read."""
    health_stale_seconds: PositiveFloat = 3600.0
    """Age in seconds from which the health file is stale."""
    session_stalled_seconds: PositiveFloat = 86_400.0
    """Seconds without a change after which a session is stalled."""
    sources: tuple[SourceOptions, ...] = ()
    """More sources of state."""
    file_bytes: Count = 200_000
    """Files above this size are named to the planner, not shown."""
    bundle_bytes: Count = 400_000
    """Maximum size of all that the planner is shown."""
    safe_zones: tuple[NonEmpty, ...] = SAFE_ZONES
    """Folders where orders may write, relative to the root."""
    forbidden_zones: tuple[NonEmpty, ...] = FORBIDDEN_ZONES
    """Folders that no order may touch, even inside safe zones."""
    replan_seconds: PositiveFloat | None = None
    """Seconds after which to plan again although nothing changed. Unset: never."""
    again_seconds: PositiveFloat = 3600.0
    """Seconds before the same order is proposed again after it was delivered or rejected."""
    orders_per_hour: Count = 12
    """Maximum number of orders in an hour."""
    orders_per_day: Count = 50
    """Maximum number of orders in a day."""
    promote_after: Count = 10
    """Number of approvals in a row after which more autonomy is proposed."""
    most_tries: Count = 3
    """Number of failures after which an order is parked."""
    log_bytes: Count = 5_000_000
    """Size at which logs and telemetry are rotated; five old files are kept."""

    def record(self) -> dict[str, Json]:
        return self.model_dump(mode="json")


ORDERS = "orders"
"""The queue of claimed orders."""


def options_in_force(configuration: Configuration) -> SenseOptions:
    """The options of the strongest file, within what the user's file allows.

    Until a person trusts it, a project's file also stays within the zones that come with Podium. Raises
    `ConfigInvalid` at the place of a fault.
    """
    options = SenseOptions.model_validate(flow_options(configuration, SENSE))
    owners = [layer for layer in configuration.layers if SENSE in layer.settings.flows]
    if not owners or owners[-1].name != "project":
        return options
    for other in owners[:-1]:
        options = _within(options, _options_of(other), _keys_of(other))
    if not configuration.project_is_trusted():
        options = _within(options, SenseOptions(), {"safe_zones", "forbidden_zones"})
    return options


def sense_mode(
    configuration: Configuration, environ: Mapping[str, str], *, unsaid: Mode = "sensing"
) -> Mode:
    """Return the mode in force: the one given by --mode, else the strictest that is configured; lowered by the environment.

    Where nobody configured anything it only watches, or what `unsaid` says.
    """
    settings, origin = configuration.settings, configuration.origin_of("mode")
    if origin == "--mode":
        return lower_mode(settings.mode, environ.get(MODE_VARIABLE, "").strip())
    modes = [
        mode
        for layer in configuration.layers
        if SENSE in layer.settings.flows and (mode := _options_of(layer).mode) is not None
    ]
    if origin != "default":
        modes.append(settings.mode)
    configured = min(modes, key=MODES.index, default=unsaid)
    return lower_mode(configured, environ.get(MODE_VARIABLE, "").strip())


def order_queues(configuration: Configuration) -> tuple[QueueSpec, ...]:
    """Queues of the loop, which no podium.yaml needs to name. None without an inbox or options of the loop."""
    has_options = any(SENSE in layer.settings.flows for layer in configuration.layers)
    project = configuration.folders.project
    if not has_options and not (project / options_in_force(configuration).layout.inbox).is_dir():
        return ()
    named = {spec.name for spec in configuration.settings.queue_specs()}
    own = (QueueSpec(name=SENSE), QueueSpec(name=ORDERS))
    return tuple(spec for spec in own if spec.name not in named)


def _options_of(layer: Layer) -> SenseOptions:
    return SenseOptions.model_validate(layer.settings.flows[SENSE])


def _keys_of(layer: Layer) -> set[str]:
    return set(layer.settings.flows[SENSE])


def _within(options: SenseOptions, other: SenseOptions, keys: set[str]) -> SenseOptions:
    """Restrict the options to what another file allows for the same keys."""
    changed: dict[str, object] = {}
    if "safe_zones" in keys:
        changed["safe_zones"] = _common(options.safe_zones, other.safe_zones)
    if "forbidden_zones" in keys:
        both = (*options.forbidden_zones, *other.forbidden_zones)
        changed["forbidden_zones"] = tuple(dict.fromkeys(both))
    for key in ("orders_per_hour", "orders_per_day", "most_tries"):
        if key in keys:
            changed[key] = min(getattr(options, key), getattr(other, key))
    for key in ("again_seconds", "promote_after"):
        if key in keys:
            changed[key] = max(getattr(options, key), getattr(other, key))
    return options.model_copy(update=changed)


def _common(zones: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Intersect two lists of zones."""
    common = [zone for zone in zones if any(_inside(zone, other) for other in allowed)]
    common += [other for other in allowed if any(_inside(other, zone) for zone in zones)]
    return tuple(dict.fromkeys(common))


def _inside(zone: str, other: str) -> bool:
    return PurePosixPath(zone).is_relative_to(other)
