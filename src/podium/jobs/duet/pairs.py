"""Pairs of a project, resolved from flags, variables such as PLANNER_CMD, podium.yaml and defaults, in this order."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options
from podium.config.folders import write_whole
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, json_of
from podium.core.turns import Side
from podium.core.work import QueueSpec
from podium.jobs.duet.models import DUET, DuetLimits, Pair, PairSide, Transport
from podium.jobs.duet.options import DuetOptions, PairOptions

if TYPE_CHECKING:
    from podium.app.app import Podium


MAIN = "main"
KNOWN_CLIS = ("claude", "codex", "gemini")
GENERIC = "generic"
SIDES: tuple[Side, Side] = ("PLANNER", "EXECUTER")
_SEATING = (
    "PLANNER_CMD",
    "PLANNER_CWD",
    "EXECUTER_CMD",
    "EXECUTER_CWD",
    "POLI_TMUX_SOCKET",
    "POLI_TMUX_SESSION",
)
_LIMITS = {"POLI_PLAN_TIMEOUT": "plan_seconds", "POLI_EXEC_TIMEOUT": "result_seconds"}


class PairRequest(FrozenModel):
    """What a person said on the command line. Empty: nothing."""

    planner: str = ""
    executer: str = ""
    cwd: str = ""
    planner_cwd: str = ""
    executer_cwd: str = ""
    socket: str = ""
    session: str = ""
    transport: Transport | None = None


def duet_options(podium: Podium) -> DuetOptions:
    """What podium.yaml says of duets, completed."""
    return DuetOptions.model_validate(flow_options(podium.configuration, DUET))


def pair_named(
    podium: Podium, name: str, wishes: PairRequest, variables: Mapping[str, str]
) -> Pair:
    """A pair with everything decided. `variables` are the person's own, and hold for `main` alone.

    Raises `BadInput` for a pair that is not known, an agent that cannot be, or a folder that is not there.
    """
    options = duet_options(podium)
    if name != MAIN and name not in options.pairs:
        known = ", ".join([MAIN, *sorted(options.pairs)])
        raise BadInput(
            f"there is no pair {name!r}; pairs: {known}. Add it under `flows: duet: pairs:` in podium.yaml"
        )
    own = options.pairs.get(name, PairOptions())
    said = dict(variables) if name == MAIN else {}
    socket = wishes.socket or said.get("POLI_TMUX_SOCKET") or own.socket
    session = wishes.session or said.get("POLI_TMUX_SESSION") or own.session
    try:
        return Pair(
            name=name,
            planner=_seat(podium, "PLANNER", options, own, wishes, said),
            executer=_seat(podium, "EXECUTER", options, own, wishes, said),
            transport=wishes.transport or options.transport,
            socket=socket or ("poli" if name == MAIN else f"poli-{name}"),
            session=session or MAIN,
        )
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise BadInput(f"pair {name!r} cannot be: {faults}") from None


def kept_pair(podium: Podium, name: str) -> Pair | None:
    """The pair as it was brought up last. None: it was not, or what was kept of it cannot be read."""
    try:
        return Pair.model_validate_json(_file_of(podium, name).read_bytes())
    except (OSError, ValidationError):
        return None


def keep_pair(podium: Podium, pair: Pair) -> None:
    """Remember who sits where, for every later command."""
    (podium.folders.make_state() / DUET).mkdir(mode=0o700, exist_ok=True)
    write_whole(_file_of(podium, pair.name), f"{json_of(pair)}\n", mode=0o600)


def forget_pair(podium: Podium, name: str) -> None:
    _file_of(podium, name).unlink(missing_ok=True)


def duet_queues(configuration: Configuration) -> tuple[QueueSpec, ...]:
    """The queue of tasks, where the project has duets: as many at once as there are pairs."""
    used = (configuration.folders.state / DUET).is_dir()
    if not used and not any(DUET in layer.settings.flows for layer in configuration.layers):
        return ()
    return (duet_queue(configuration),)


def duet_queue(configuration: Configuration) -> QueueSpec:
    known = {spec.name: spec for spec in configuration.settings.queue_specs()}
    options = DuetOptions.model_validate(flow_options(configuration, DUET))
    pairs = len({MAIN, *options.pairs})
    return known.get(DUET) or QueueSpec(name=DUET, concurrency=pairs, worker_concurrency=pairs)


def _file_of(podium: Podium, name: str) -> Path:
    """Outside of the project, which may come from anywhere and must not choose programs and folders."""
    project = hashlib.sha256(str(podium.folders.project).encode()).hexdigest()[:16]
    return podium.folders.user_state / "duets" / "kept" / project / f"{name}.json"


def has_a_say(wishes: PairRequest, variables: Mapping[str, str]) -> bool:
    """Whether anything was said of who sits where."""
    return wishes != PairRequest() or any(variables.get(name) for name in _SEATING)


def all_pairs(podium: Podium, variables: Mapping[str, str]) -> tuple[Pair, ...]:
    """Every pair of the project, `main` first."""
    names = [MAIN, *(name for name in duet_options(podium).pairs if name != MAIN)]
    pairs = tuple(pair_named(podium, name, PairRequest(), variables) for name in names)
    _refuse_shared(podium, pairs)
    return pairs


def _refuse_shared(podium: Podium, pairs: Sequence[Pair]) -> None:
    """A pair is known by its server: two on one would be one."""
    taken: dict[Path, str] = {}
    for pair in pairs:
        socket = socket_path(pair.socket, podium.environ)
        if (other := taken.setdefault(socket, pair.name)) != pair.name:
            raise BadInput(
                f"pairs {other!r} and {pair.name!r} name one tmux server, {pair.socket!r}; give each its own"
            )


def duet_limits(podium: Podium, variables: Mapping[str, str]) -> DuetLimits:
    """How long legs may take. Raises `BadInput` for a variable that is no number of seconds."""
    limits = duet_options(podium).limits.model_dump()
    for variable, name in _LIMITS.items():
        if given := variables.get(variable):
            limits[name] = _seconds(variable, given)
    return DuetLimits.model_validate(limits)


def socket_path(name: str, environ: Mapping[str, str]) -> Path:
    """Where tmux itself would look for a socket of this name, so that `tmux -L NAME attach` finds it."""
    if "/" in name:
        return Path(name).absolute()
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}", name):
        raise BadInput(
            f"{name!r} cannot be the name of a tmux server; use letters, digits, - and _"
        )
    return Path(environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}" / name  # noqa: S108 — tmux's own place


def terminal_kind(podium: Podium, side: Side, seat: PairSide) -> str:
    """The kind of terminal program of a seat. Raises `BadInput` for an agent that has none."""
    settings = podium.settings.agents.get(seat.agent)
    kind = settings.kind if settings else seat.agent
    if kind in ("command", "tui"):
        return GENERIC
    if kind not in ("claude", "codex", "gemini", GENERIC):
        raise BadInput(
            f"{side} is agent {seat.agent!r} of kind {kind!r}, which has no terminal; choose claude, codex, gemini or a "
            "command, or set `flows: duet: transport: headless`"
        )
    return kind


def _seat(
    podium: Podium,
    side: Side,
    options: DuetOptions,
    own: PairOptions,
    wishes: PairRequest,
    said: Mapping[str, str],
) -> PairSide:
    role = side.lower()
    who = getattr(wishes, role) or said.get(f"{side}_CMD") or getattr(own, role)
    agent, command = _who(podium, side, who or getattr(options, role))
    own_cwd = getattr(wishes, f"{role}_cwd") or wishes.cwd
    where = own_cwd or said.get(f"{side}_CWD") or getattr(own, f"{role}_cwd")
    base = Path.cwd() if own_cwd else podium.folders.project
    folder = (base / (where or podium.folders.project)).expanduser().resolve()
    if not folder.is_dir():
        raise BadInput(f"{side} has no folder to work in: {str(folder)!r} is not there; create it")
    return PairSide(agent=agent, command=command, cwd=str(folder))


def _who(podium: Podium, side: Side, written: str) -> tuple[str, tuple[str, ...]]:
    """An agent by its name, or a program: then the agent is the kind of program that it is."""
    if written in podium.settings.agents or written in KNOWN_CLIS:
        return written, ()
    try:
        words = tuple(shlex.split(written))
    except ValueError as error:
        raise BadInput(f"{side} cannot be started by {written!r}: {error}") from None
    if not words:
        raise BadInput(f"{side} has no program; name one such as `claude`")
    kind = Path(words[0]).name
    return (kind if kind in KNOWN_CLIS else GENERIC), words


def _seconds(variable: str, written: str) -> float:
    try:
        seconds = float(written)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadInput(f"{variable} is {written!r}; give it a number of seconds above 0")
    return seconds
