"""Options that name a pair, and the variables of an `--env-file`, which is parsed and never executed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.context import Door
from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem, NotPossibleNow
from podium.jobs.duet.models import Pair
from podium.jobs.duet.pairs import MAIN, PairRequest, kept_pair, pair_named

MAX_BYTES = 100_000

_LINE = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_]\w*)=(?P<value>.*)")
_VARIABLE = re.compile(r"\\(?P<plain>[$\\\"`])|\$(?:\{(?P<braced>\w+)\}|(?P<bare>[A-Za-z_]\w*))")
_RUNS_SOMETHING = re.compile(r"`|\$\(")


def read_env_file(file: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that the file sets, in its order, each with those before it and `environ` put in.

    Raises `BadInput` where it cannot be read, and `ConfigInvalid` with every line that is no plain setting.
    """
    try:
        if not file.is_file():
            raise BadInput(f"there is no file of variables {str(file)!r}; name one with --env-file")
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the file of variables {str(file)!r} cannot be read: {error}") from None
    if len(content) > MAX_BYTES:
        raise BadInput(f"{str(file)!r} is too large for a file of variables; look at it")
    found: dict[str, str] = {}
    faults = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            found.update(_setting(line.strip(), {**environ, **found}))
        except ValueError as error:
            faults.append(ConfigProblem(str(error), line=number))
    if faults:
        raise ConfigInvalid(str(file), faults)
    return found


def _setting(line: str, known: Mapping[str, str]) -> dict[str, str]:
    if not line or line.startswith("#"):
        return {}
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError("is no setting; write NAME=VALUE, or export NAME=VALUE")
    return {found["name"]: _value(found["value"], known)}


def _value(written: str, known: Mapping[str, str]) -> str:
    """One word, as a shell takes it."""
    if written.startswith("'"):
        return _one_word(written)
    if _RUNS_SOMETHING.search(written):
        raise ValueError("would run a command; write its result")
    quoted = written.startswith('"')
    if quoted:
        inner = re.fullmatch(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?', written)
        if inner is None:
            raise ValueError("has a quote that does not end")
        return _put_in(inner[1], known)
    return _put_in(_one_word(written), known)


def _one_word(written: str) -> str:
    try:
        words = shlex.split(written, comments=True)
    except ValueError:
        raise ValueError("has a quote that does not end") from None
    if len(words) > 1:
        raise ValueError("has several words; put them in quotes")
    return words[0] if words else ""


def _put_in(text: str, known: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        if found["plain"] is not None:
            return found["plain"]
        return known.get(found["braced"] or found["bare"], "")

    return _VARIABLE.sub(value, text)


PairOption = Annotated[
    str, typer.Option("--pair", metavar="NAME", help="Which pair; see `flows: duet: pairs:`.")
]
EnvFileOption = Annotated[
    Path | None,
    typer.Option(
        "--env-file",
        metavar="FILE",
        help='Variables such as PLANNER_CMD, as a shell would read them: export NAME="$HOME/x".',
    ),
]
TaskArgument = Annotated[
    str,
    typer.Argument(metavar="[TASK]", help="Id of the task, or a short form. Else the only one."),
]


def variables_of(env_file: Path | None) -> dict[str, str]:
    """The person's variables, with those of the file before them, as if it had been sourced."""
    if env_file is None:
        return dict(os.environ)
    return {**os.environ, **read_env_file(env_file, os.environ)}


def must_have_tasks(door: Door, task: str) -> None:
    """Raise `UnknownId` or `NotPossibleNow` where no task was ever recorded, without making a database to look in."""
    if task:
        door.must_have_state("run", task)
    elif not door.has_state:
        raise NotPossibleNow("no task was ever handed to a pair; `podium duet send TASK` does")


def pair_in_use(podium: Podium, name: str, variables: Mapping[str, str]) -> Pair:
    """The pair as it was brought up, or as it would be."""
    return kept_pair(podium, name) or pair_named(podium, name, PairRequest(), variables)


__all__ = [
    "MAIN",
    "EnvFileOption",
    "PairOption",
    "TaskArgument",
    "must_have_tasks",
    "pair_in_use",
    "variables_of",
]
