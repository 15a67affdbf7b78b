"""Commands that name the root they are about."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from podium.domain.errors import BadInput, PodiumError, UnknownId
from podium.wiring import find_folders

RootToo = Annotated[
    Path | None,
    typer.Option("--root", metavar="DIR", help="Another word for --project.", show_default=False),
]


def root_words(root: Path) -> str:
    """What a command needs behind it to mean this root; empty where it does so anyway."""
    return f" --project {shlex.quote(from_here(root))}" if is_elsewhere(root) else ""


def take_root(context: typer.Context, root: Path | None) -> None:
    """Let `--root` say what `--project` says."""
    if root is not None:
        context.obj.project = root.expanduser()


@contextmanager
def naming_root(root: Path) -> Iterator[None]:
    """Whoever named what is not there is told where it was looked for."""
    try:
        yield
    except UnknownId as unknown:
        listed = f"podium {unknown.kind}s --all{root_words(root)}"
        raise BadInput(
            f"no {unknown.kind} {unknown.identifier!r} in {str(root)!r}; `{listed}` lists what there is, and "
            "--project names another root"
        ) from None


def is_elsewhere(root: Path) -> bool:
    """Whether a command said here would mean another root."""
    try:
        return find_folders(os.environ).project != root
    except PodiumError:
        return True


def from_here(root: Path) -> str:
    """The root's path as it is typed here."""
    here = Path.cwd()
    return str(root.relative_to(here)) if root.is_relative_to(here) else str(root)
