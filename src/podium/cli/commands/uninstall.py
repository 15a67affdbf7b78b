"""`podium uninstall`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.inventory import Blocker, Inventory, ProjectData
from podium.app.uninstall import COMMAND, RemovalOutcome, Uninstaller
from podium.cli.app import Options, command_app
from podium.cli.commands.workspaces import size
from podium.cli.context import run_to_end
from podium.cli.screen import Screen
from podium.config.configuration import load_readable
from podium.core.errors import BadInput
from podium.render.text import counted

app = command_app()

PACKAGE = "podium"
UNTOUCHED = "not touched: podium.yaml and your other files, branches that hold commits, snapshots and histories of runs in refs/podium/"


@app.command()
def uninstall(
    context: typer.Context,
    everywhere: Annotated[
        bool, typer.Option("--all", help="Every project, and your settings and keys.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list; remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    confirm: Annotated[
        list[str] | None,
        typer.Option(
            "--confirm", metavar="SENTENCE", help="A sentence it asks for; may be repeated."
        ),
    ] = None,
) -> None:
    """List what Podium stores for this project, or with --all on this machine, and remove it after asking.

    Your files, branches, commits and podium.yaml stay, and so do records on a PostgreSQL server. While a process is using a project, or a
    workspace has work that is stored nowhere else, nothing is removed: it exits with 7 or 4 and says what to do. Unfinished runs are abandoned, and
    keys of missing projects deleted, only with --confirm and the sentence that it prints. Without a terminal, --yes is required.

    \b
    Example:
      podium uninstall --dry-run
      podium uninstall
      podium uninstall --all --dry-run --json
      podium uninstall --yes --confirm "abandon 2 runs"
    """
    options: Options = context.obj
    screen = Screen(json=options.json)
    asks = not (dry_run or yes)
    if asks and (screen.json or not typer.get_text_stream("stdin").isatty()):
        raise BadInput(f"not a terminal; pass --yes to confirm, or look with `{COMMAND} --dry-run`")
    # A record on a server is never touched, and one variable cannot tell of which project it is.
    environ = {name: value for name, value in os.environ.items() if name != "PODIUM_DATABASE_URL"}
    configuration, _ = load_readable(environ, project=options.project)
    uninstaller = Uninstaller(Podium(configuration, environ))
    inventory = run_to_end(uninstaller.survey(everywhere=everywhere))
    if not screen.json:
        _show(screen, inventory)
    outcome = RemovalOutcome(blockers=inventory.blockers)
    missing = [text for text in inventory.confirmations if text not in (confirm or ())]
    if not (dry_run or inventory.blockers or missing):
        chosen = _ask(screen, inventory) if asks and not inventory.is_empty else inventory
        outcome = run_to_end(uninstaller.remove(chosen, everywhere=everywhere))
    record = {
        **inventory.model_dump(mode="json"),
        "blockers": [blocker.model_dump(mode="json") for blocker in outcome.blockers],
        "confirm": missing,
        "removed": outcome.removed,
        "remaining": outcome.remaining,
        "package": remove_package_command(),
    }
    screen.answer(
        record, lambda: _end(screen, outcome, missing, dry_run=dry_run, everywhere=everywhere)
    )
    if not dry_run:
        raise typer.Exit(_exit_code(outcome.blockers, missing))


def _ask(screen: Screen, inventory: Inventory) -> Inventory:
    """Ask what to remove. Shared state stays when a project stays."""
    projects = [
        project
        for project in inventory.projects
        if not (project.paths or project.workspaces) or typer.confirm(_question(project), err=True)
    ]
    shared = inventory.shared if len(projects) == len(inventory.projects) else None
    if inventory.shared and projects and not shared:
        screen.stderr_line("settings and shared state stay, because a project stays")
    if shared is not None and not typer.confirm("remove settings and shared state?", err=True):
        shared = None
    if not projects and shared is None:
        raise typer.Abort
    return inventory.model_copy(update={"projects": tuple(projects), "shared": shared})


def _question(project: ProjectData) -> str:
    return f"remove {size(project.bytes)} that Podium stores for {project.folder or project.id}?"


def _show(screen: Screen, inventory: Inventory) -> None:
    rows = [
        (project.folder or project.id, size(project.bytes), _contents(project))
        for project in inventory.projects
        if project.paths or project.workspaces
    ]
    if inventory.shared is not None and inventory.shared.folders:
        where = ", ".join(inventory.shared.folders)
        rows.append((where, size(inventory.shared.bytes), "settings and shared state"))
    if rows:
        screen.table(("WHERE", "SIZE", "WHAT"), rows)
    elif not inventory.blockers:
        screen.line("nothing to remove")
    remaining = [line for project in inventory.projects for line in project.remaining]
    for line in (*remaining, *(inventory.shared.remaining if inventory.shared else ())):
        screen.line(f"stays: {line}")
    for line in (line for project in inventory.projects for line in project.runs):
        screen.line(f"unfinished run: {line}")
    screen.line(UNTOUCHED)


def _contents(project: ProjectData) -> str:
    paths = [Path(path) for path in project.paths]
    names = [path.name if path.name.startswith(".") else path.parent.name for path in paths]
    more = [counted(len(project.workspaces), "workspace")] if project.workspaces else []
    return ", ".join([*names, *more, *(["its record is missing"] if project.missing else [])])


def _end(
    screen: Screen,
    outcome: RemovalOutcome,
    missing: Sequence[str],
    *,
    dry_run: bool,
    everywhere: bool,
) -> None:
    for blocker in outcome.blockers:
        screen.line(f"blocked: {blocker.what}: {blocker.why}")
    for path in outcome.removed:
        screen.line(f"removed {path}")
    if missing:
        sentences = " ".join(f"--confirm {shlex.quote(text)}" for text in missing)
        screen.stderr_line(
            f"unfinished runs (`podium cancel RUN` ends one) and keys of missing projects are removed only with {sentences}"
        )
    if dry_run:
        return
    if outcome.blockers:
        what = "only workspaces were removed" if outcome.removed else "nothing was removed"
        screen.stderr_line(f"{what}; resolve what blocks, then run `{COMMAND}` again")
    elif missing:
        screen.stderr_line("nothing was removed")
    elif everywhere:
        screen.stderr_line(f"to remove the program: `{remove_package_command()}`")


def _exit_code(blockers: Sequence[Blocker], missing: Sequence[str]) -> int:
    if blockers:
        return 7 if all(blocker.busy for blocker in blockers) else 4
    return 4 if missing else 0


def remove_package_command() -> str:
    """Command that removes the package, by how it was installed."""
    parts = Path(sys.prefix).parts
    if "pipx" in parts:
        return f"pipx uninstall {PACKAGE}"
    if "uv" in parts and "tools" in parts:
        return f"uv tool uninstall {PACKAGE}"
    return f"{shlex.quote(sys.executable)} -m pip uninstall {PACKAGE}"
