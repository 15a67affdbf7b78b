"""The options by which commands of `podium duet` name a pair, and what becomes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.door import Door
from podium.domain.duets import Pair
from podium.domain.errors import NotPossibleNow
from podium.wiring import Podium
from podium.wiring.duet_env import read_env_file
from podium.wiring.duet_pairs import MAIN, PairWishes, kept_pair, pair_named

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
    return kept_pair(podium, name) or pair_named(podium, name, PairWishes(), variables)


__all__ = [
    "MAIN",
    "EnvFileOption",
    "PairOption",
    "TaskArgument",
    "must_have_tasks",
    "pair_in_use",
    "variables_of",
]
