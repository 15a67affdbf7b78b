"""Options that name a pair, variables of an `--env-file`, which is parsed and never executed, and the terminals that a subcommand uses."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem, NotPossibleNow, ToolMissing
from podium.jobs.duet.models import Pair, PairStatus
from podium.jobs.duet.pairs import PairRequest, pair_named, saved_pair
from podium.ports import TerminalPairs
from podium.render.text import escaped_line

MAX_BYTES = 100_000

_LINE = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_]\w*)=(?P<value>.*)")
_VARIABLE = re.compile(r"\\(?P<plain>[$\\\"`])|\$(?:\{(?P<braced>\w+)\}|(?P<bare>[A-Za-z_]\w*))")
_RUNS_SOMETHING = re.compile(r"`|\$\(")


def read_env_file(file: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Parse the variables of the file in order, expanding earlier ones and `environ`.

    Raises `BadInput` if it cannot be read, and `ConfigInvalid` with every line that is not a plain setting.
    """
    try:
        if not file.is_file():
            raise BadInput(f"env file {str(file)!r} does not exist; pass another with --env-file")
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"env file {str(file)!r} cannot be read: {error}") from None
    if len(content) > MAX_BYTES:
        raise BadInput(f"env file {str(file)!r} is larger than {MAX_BYTES} bytes")
    variables: dict[str, str] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            variables.update(_setting(line.strip(), {**environ, **variables}))
        except ValueError as error:
            problems.append(ConfigProblem(str(error), line=number))
    if problems:
        raise ConfigInvalid(str(file), problems)
    return variables


def _setting(line: str, variables: Mapping[str, str]) -> dict[str, str]:
    if not line or line.startswith("#"):
        return {}
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError("is not a setting; write NAME=VALUE, or export NAME=VALUE")
    return {match["name"]: _value(match["value"], variables)}


def _value(written: str, variables: Mapping[str, str]) -> str:
    """Parse a value as a shell would."""
    if written.startswith("'"):
        return _unquoted(written)
    if _RUNS_SOMETHING.search(written):
        raise ValueError("would run a command; write the result instead")
    quoted = written.startswith('"')
    if quoted:
        inner = re.fullmatch(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?', written)
        if inner is None:
            raise ValueError("has a quote that does not end")
        return _put_in(inner[1], variables)
    return _put_in(_unquoted(written), variables)


def _unquoted(written: str) -> str:
    try:
        tokens = shlex.split(written, comments=True)
    except ValueError:
        raise ValueError("has a quote that does not end") from None
    if len(tokens) > 1:
        raise ValueError("has several words; put them in quotes")
    return tokens[0] if tokens else ""


def _put_in(text: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match["plain"] is not None:
            return match["plain"]
        return variables.get(match["braced"] or match["bare"], "")

    return _VARIABLE.sub(value, text)


PairOption = Annotated[
    str, typer.Option("--pair", metavar="NAME", help="Name of the pair; see `flows: duet: pairs:`.")
]
EnvFileOption = Annotated[
    Path | None,
    typer.Option(
        "--env-file",
        metavar="FILE",
        help='File with variables such as PLANNER_CMD, in shell syntax: export NAME="$HOME/x".',
    ),
]
TaskArgument = Annotated[
    str,
    typer.Argument(
        metavar="[TASK]", help="Id of the task, or a short form. Default: the only one."
    ),
]


def variables_of(env_file: Path | None) -> dict[str, str]:
    """Return the environment with the variables of the file, as if it had been sourced."""
    if env_file is None:
        return dict(os.environ)
    return {**os.environ, **read_env_file(env_file, os.environ)}


def must_have_tasks(cli: CliContext, task: str) -> None:
    """Raise `UnknownId` or `NotPossibleNow` if no task was ever recorded, without creating a database."""
    if task:
        cli.must_have_state("run", task)
    elif not cli.has_state:
        raise NotPossibleNow("there are no tasks yet; start one with `podium duet send TASK`")


def pair_in_use(podium: Podium, name: str, variables: Mapping[str, str]) -> Pair:
    """Return the pair as it was brought up, or as it would be."""
    return saved_pair(podium, name) or pair_named(podium, name, PairRequest(), variables)


def open_terminals(
    podium: Podium, screen: Screen, at: str = "", certificates: Path | None = None
) -> AbstractAsyncContextManager[TerminalPairs]:
    """Open the terminals at `at`; else those of the project's daemon, or its own. Prints why a daemon is not used."""
    from podium.jobs.duet.project_terminals import is_served, terminals_of_project

    variables = variables_of(None)

    def notify(message: str) -> None:
        screen.stderr_line(f"podium: {message}")

    if at or is_served(podium):
        try:
            opened: AbstractAsyncContextManager[TerminalPairs]
            opened = typed_api().open_terminals(podium, variables, at, certificates, notify=notify)
            return opened
        except ToolMissing as missing:
            if at:
                raise
            notify(f"continuing without the daemon of `podium duet serve`: {missing}")
    return nullcontext(terminals_of_project(podium, variables))


def typed_api() -> ModuleType:
    """Import the gRPC client and server, an optional extra."""
    try:
        from podium.jobs.duet import daemon
    except ModuleNotFoundError as error:
        raise ToolMissing(
            f"package {error.name!r} is not installed; run `pip install 'podium[duet]'`"
        ) from None
    return daemon


def print_pair_status(screen: Screen, status: PairStatus) -> None:
    """Print one pair."""
    if status.transport == "headless":
        screen.line(f"pair {status.pair}: no terminals; each turn is an agent call")
        return
    if status.trouble:
        screen.line(f"pair {status.pair}: {status.trouble}")
        return
    if not status.up:
        screen.line(f"pair {status.pair}: not up; start it with `podium duet up`")
        return
    screen.line(
        f"tmux ready: -S {status.socket}, session {status.session} (planner left, executer right)"
    )
    rows = [
        (
            side.side,
            side.agent,
            side.pane,
            side.status,
            escaped_line(side.keyboard.who) if side.keyboard else "podium",
            side.question or side.cwd,
        )
        for side in status.sides
    ]
    screen.table(("SIDE", "AGENT", "PANE", "STATUS", "KEYBOARD", "WHERE"), rows)
