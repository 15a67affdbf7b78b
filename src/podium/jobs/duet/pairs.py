"""Pairs of a project, resolved from flags, variables such as PLANNER_CMD, podium.yaml and defaults, in this order."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options
from podium.config.folders import write_whole
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, json_of
from podium.core.turns import Side, TurnLimits
from podium.core.work import QueueSpec
from podium.jobs.duet.models import (
    DUET,
    DuetLimits,
    DuetOptions,
    Pair,
    PairOptions,
    PairSide,
    Transport,
)

if TYPE_CHECKING:
    from podium.agents.turn_step import RoleAgent
    from podium.app.app import Podium
    from podium.ports import Agent


MAIN = "main"
CLI_KINDS = ("claude", "codex", "gemini")
GENERIC = "generic"
SIDES: tuple[Side, Side] = ("PLANNER", "EXECUTER")
_PAIR_VARIABLES = (
    "PLANNER_CMD",
    "PLANNER_CWD",
    "EXECUTER_CMD",
    "EXECUTER_CWD",
    "POLI_TMUX_SOCKET",
    "POLI_TMUX_SESSION",
)
_LIMITS = {"POLI_PLAN_TIMEOUT": "plan_seconds", "POLI_EXEC_TIMEOUT": "result_seconds"}


class PairRequest(FrozenModel):
    """Options of the command line. Empty: not set."""

    planner: str = ""
    executer: str = ""
    cwd: str = ""
    planner_cwd: str = ""
    executer_cwd: str = ""
    socket: str = ""
    session: str = ""
    transport: Transport | None = None


def duet_options(podium: Podium) -> DuetOptions:
    """Read the duet options of podium.yaml, completed with defaults."""
    return DuetOptions.model_validate(flow_options(podium.configuration, DUET))


def pair_named(
    podium: Podium, name: str, request: PairRequest, variables: Mapping[str, str]
) -> Pair:
    """Resolve a pair. `variables` are the person's own, and apply to `main` only.

    Raises `BadInput` for an unknown pair, an invalid agent, or a missing folder.
    """
    options = duet_options(podium)
    if name != MAIN and name not in options.pairs:
        listing = ", ".join([MAIN, *sorted(options.pairs)])
        raise BadInput(
            f"there is no pair {name!r}; pairs: {listing}; add it under `flows: duet: pairs:` in podium.yaml"
        )
    own = options.pairs.get(name, PairOptions())
    pair_variables = dict(variables) if name == MAIN else {}
    socket = request.socket or pair_variables.get("POLI_TMUX_SOCKET") or own.socket
    session = request.session or pair_variables.get("POLI_TMUX_SESSION") or own.session
    try:
        return Pair(
            name=name,
            planner=_side(podium, "PLANNER", options, own, request, pair_variables),
            executer=_side(podium, "EXECUTER", options, own, request, pair_variables),
            transport=request.transport or options.transport,
            socket=socket or ("poli" if name == MAIN else f"poli-{name}"),
            session=session or MAIN,
        )
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise BadInput(f"pair {name!r} is not valid: {problems}") from None


def saved_pair(podium: Podium, name: str) -> Pair | None:
    """Return the pair as it was brought up last. None: it was not, or its file cannot be read."""
    try:
        return Pair.model_validate_json(_file_of(podium, name).read_bytes())
    except (OSError, ValidationError):
        return None


def save_pair(podium: Podium, pair: Pair) -> None:
    """Save the pair for later commands."""
    (podium.folders.make_state() / DUET).mkdir(mode=0o700, exist_ok=True)
    write_whole(_file_of(podium, pair.name), f"{json_of(pair)}\n", mode=0o600)


def forget_pair(podium: Podium, name: str) -> None:
    _file_of(podium, name).unlink(missing_ok=True)


def duet_queues(configuration: Configuration) -> tuple[QueueSpec, ...]:
    """Return the queue of tasks if the project has duets; its concurrency is the number of pairs."""
    used = (configuration.folders.state / DUET).is_dir()
    if not used and not any(DUET in layer.settings.flows for layer in configuration.layers):
        return ()
    return (duet_queue(configuration),)


def duet_queue(configuration: Configuration) -> QueueSpec:
    queues = {spec.name: spec for spec in configuration.settings.queue_specs()}
    options = DuetOptions.model_validate(flow_options(configuration, DUET))
    pairs = len({MAIN, *options.pairs})
    return queues.get(DUET) or QueueSpec(name=DUET, concurrency=pairs, worker_concurrency=pairs)


def _file_of(podium: Podium, name: str) -> Path:
    """Return a path outside of the project, which is untrusted and must not choose programs and folders."""
    project = hashlib.sha256(str(podium.folders.project).encode()).hexdigest()[:16]
    return podium.folders.user_state / "duets" / "kept" / project / f"{name}.json"


def has_a_say(request: PairRequest, variables: Mapping[str, str]) -> bool:
    """Check if options or variables describe a pair."""
    return request != PairRequest() or any(variables.get(name) for name in _PAIR_VARIABLES)


def all_pairs(podium: Podium, variables: Mapping[str, str]) -> tuple[Pair, ...]:
    """Resolve every pair of the project, `main` first."""
    names = [MAIN, *(name for name in duet_options(podium).pairs if name != MAIN)]
    pairs = tuple(pair_named(podium, name, PairRequest(), variables) for name in names)
    _refuse_shared(podium, pairs)
    return pairs


def _refuse_shared(podium: Podium, pairs: Sequence[Pair]) -> None:
    """Refuse pairs that share a tmux server."""
    taken: dict[Path, str] = {}
    for pair in pairs:
        socket = socket_path(pair.socket, podium.environ)
        if (other := taken.setdefault(socket, pair.name)) != pair.name:
            raise BadInput(
                f"pairs {other!r} and {pair.name!r} use the same tmux server {pair.socket!r}; give each its own"
            )


def duet_limits(podium: Podium, variables: Mapping[str, str]) -> DuetLimits:
    """Resolve the limits. Raises `BadInput` for a variable that is not a number of seconds."""
    limits = duet_options(podium).limits.model_dump()
    for variable, name in _LIMITS.items():
        if value := variables.get(variable):
            limits[name] = _seconds(variable, value)
    return DuetLimits.model_validate(limits)


def socket_path(name: str, environ: Mapping[str, str]) -> Path:
    """Resolve a socket name as tmux does, so that `tmux -L NAME attach` finds it."""
    if "/" in name:
        return Path(name).absolute()
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}", name):
        raise BadInput(
            f"{name!r} cannot be the name of a tmux server; use letters, digits, - and _"
        )
    return Path(environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}" / name  # noqa: S108 — tmux's own place


def terminal_kind(podium: Podium, side: Side, slot: PairSide) -> str:
    """Return the kind of terminal program of a slot. Raises `BadInput` for an agent without a terminal."""
    settings = podium.settings.agents.get(slot.agent)
    kind = settings.kind if settings else slot.agent
    if kind in ("command", "tui"):
        return GENERIC
    if kind not in ("claude", "codex", "gemini", GENERIC):
        raise BadInput(
            f"{side} is agent {slot.agent!r} of kind {kind!r}, which has no terminal; choose claude, codex, gemini or a "
            "command, or set `flows: duet: transport: headless`"
        )
    return kind


def _side(
    podium: Podium,
    side: Side,
    options: DuetOptions,
    own: PairOptions,
    request: PairRequest,
    variables: Mapping[str, str],
) -> PairSide:
    role = side.lower()
    who = getattr(request, role) or variables.get(f"{side}_CMD") or getattr(own, role)
    agent, command = _who(podium, side, who or getattr(options, role))
    own_cwd = getattr(request, f"{role}_cwd") or request.cwd
    where = own_cwd or variables.get(f"{side}_CWD") or getattr(own, f"{role}_cwd")
    base = Path.cwd() if own_cwd else podium.folders.project
    folder = (base / (where or podium.folders.project)).expanduser().resolve()
    if not folder.is_dir():
        raise BadInput(
            f"the folder of {side}, {str(folder)!r}, does not exist; pass another with --cwd DIR"
        )
    return PairSide(agent=agent, command=command, cwd=str(folder))


def _who(podium: Podium, side: Side, written: str) -> tuple[str, tuple[str, ...]]:
    """Resolve an agent name, or a command, whose agent is then the kind of program it runs."""
    if written in podium.settings.agents or written in CLI_KINDS:
        return written, ()
    try:
        argv = tuple(shlex.split(written))
    except ValueError as error:
        raise BadInput(f"the command of {side}, {written!r}, is not valid: {error}") from None
    if not argv:
        raise BadInput(f"the command of {side} is empty; pass a program such as `claude`")
    kind = Path(argv[0]).name
    return (kind if kind in CLI_KINDS else GENERIC), argv


def _seconds(variable: str, written: str) -> float:
    try:
        seconds = float(written)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadInput(f"{variable} must be a number of seconds above 0, not {written!r}")
    return seconds


def option_choices(podium: Podium) -> Mapping[str, Iterable[str]]:
    """Values that options of a request can have. Raises `PodiumError`."""
    return {"pairs": [pair.name for pair in all_pairs(podium, podium.environ)]}


def bind_role(podium: Podium, side: Side, slot: PairSide, agent: Agent) -> RoleAgent:
    """Bind an agent to role `planner` or `executer`. One that is not in podium.yaml is limited by the hop's time only."""
    from podium.agents.turn_step import RoleAgent

    role = side.lower()
    role_settings, settings = (
        podium.settings.roles.get(role),
        podium.settings.agents.get(slot.agent),
    )
    return RoleAgent(
        role=role,
        agent=agent,
        allowed_tools=role_settings.allowed_tools if role_settings else None,
        own_tools=role_settings.own_tools if role_settings else None,
        limits=settings.limits if settings else TurnLimits(seconds=None),
    )
