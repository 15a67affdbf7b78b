"""`podium uninstall`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door, run_to_end
from podium.cli.screen import Screen
from podium.cli.workspace_words import size
from podium.domain.errors import BadInput, NotPossibleNow
from podium.telling.untrusted import shown_line
from podium.wiring.uninstalling import (
    Keeps,
    KeptProject,
    find_what_is_kept,
    remove_folder,
    remove_project,
)

app = command_app()


@app.command()
def uninstall(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list; remove nothing.")] = False,
    here: Annotated[
        bool, typer.Option("--here", help="Only what is kept of this project.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """List what Podium keeps on this machine and remove it, project by project, after asking.

    Your files, branches and podium.yaml stay. A project in which something runs, or which has a workspace with
    work that is nowhere else, is left as it is, and so are your settings then: it leaves with 4. Without a
    terminal, and with --json, --yes or --dry-run is needed.

    \b
    Example:
      podium uninstall --dry-run
      podium uninstall --here --yes
    """
    door = Door(context.obj, lenient=True)
    asks = not (dry_run or yes)
    if asks and (door.screen.json or not typer.get_text_stream("stdin").isatty()):
        raise BadInput(
            "removing needs a person at a terminal, or --yes; `podium uninstall --dry-run` lists what is kept"
        )
    folders = door.configuration.folders
    keeps = run_to_end(find_what_is_kept(folders, os.environ))
    if here:
        own = tuple(each for each in keeps.projects if Path(each.folder) == folders.project)
        keeps = keeps.model_copy(update={"projects": own})
    if not door.screen.json:
        _show(door.screen, keeps, home=not here)
    removed: list[str] = []
    left: dict[str, str] = {}
    if not dry_run:
        removed, left = _remove(door, keeps, home=not here, asks=asks)
    record = {
        **keeps.model_dump(mode="json"),
        "removed": removed,
        "left": left,
        "package": remove_package_command(),
    }
    door.screen.answer(record, lambda: _end(door.screen, removed, left, dry_run=dry_run))
    if left:
        raise typer.Exit(4)


def _remove(
    door: Door, keeps: Keeps, *, home: bool, asks: bool
) -> tuple[list[str], dict[str, str]]:
    """The paths that were removed, and why what else is there was left."""
    folders = door.configuration.folders
    removed: list[str] = []
    left: dict[str, str] = {}
    for project in keeps.projects:
        if project.blocked:
            left[project.folder] = project.blocked
        elif asks and not typer.confirm(f"remove what is kept of {project.folder}?", err=True):
            left[project.folder] = "you said no"
        else:
            try:
                done = run_to_end(remove_project(project, folders, os.environ))
                removed.extend(done.paths)
            except NotPossibleNow as error:
                left[project.folder] = str(error)
    if not home or not keeps.home.paths:
        return removed, left
    what = ", ".join(keeps.home.paths)
    if left or keeps.home.blocked:
        left[what] = keeps.home.blocked or "what is left of projects needs it"
    elif asks and not typer.confirm(f"remove your settings and keys in {what}?", err=True):
        left[what] = "you said no"
    else:
        for path in keeps.home.paths:
            remove_folder(Path(path))
            removed.append(path)
    return removed, left


def _show(screen: Screen, keeps: Keeps, *, home: bool) -> None:
    rows = [
        (each.folder, size(each.bytes), each.blocked or _parts(each)) for each in keeps.projects
    ]
    if home:
        rows += [
            (
                path,
                size(keeps.home.bytes) if path == keeps.home.paths[-1] else "",
                "settings and keys",
            )
            for path in keeps.home.paths
        ]
    if rows:
        screen.table(("WHERE", "SIZE", "WHAT"), rows)
    else:
        screen.line("Podium keeps nothing here")


def _parts(project: KeptProject) -> str:
    names = [
        Path(path).name if path.endswith(".podium") else Path(path).parent.name
        for path in project.paths
    ]
    return ", ".join(names)


def _end(screen: Screen, removed: list[str], left: dict[str, str], *, dry_run: bool) -> None:
    for path in removed:
        screen.line(f"removed {path}")
    for what, why in left.items():
        screen.line(f"left    {what}: {shown_line(why)}")
    if not dry_run and not left:
        screen.aside(f"the program itself: `{remove_package_command()}`")


def remove_package_command() -> str:
    """Command that removes the package, by how it was installed."""
    place = Path(sys.prefix).parts
    if "pipx" in place:
        return "pipx uninstall podium"
    if "uv" in place and "tools" in place:
        return "uv tool uninstall podium"
    return f"{sys.executable} -m pip uninstall podium"
