"""Command group `podium workspaces`: list, clean and recover."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.workspaces import (
    Collected,
    Needed,
    Overview,
    collect_workspaces,
    find_removed,
    needed_by_runs,
    recover_workspace,
    snapshot_workspace,
    survey_workspaces,
)
from podium.cli.app import command_app
from podium.cli.commands.workspace_use import NameArgument, create, deliver, exec_
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.ids import short_id
from podium.core.workspaces import (
    Leftover,
    RecoveredBranch,
    RemovedWorkspace,
    WorkLocation,
    WorkspaceListing,
    WorkspaceRemoval,
    WorktreeSnapshot,
)
from podium.render.text import counted, escaped_line, local_time


def show_overview(
    screen: Screen, overview: Overview, now: datetime, *, everywhere: bool = False
) -> None:
    """Print workspaces as a table, then leftovers, then removed ones."""
    if not overview.workspaces:
        screen.stderr_line("no workspaces")
    else:
        more = ("REPOSITORY",) if everywhere else ()
        headers = ("WORKSPACE", "TASK", "KEPT", "SIZE", "AGE", *more, "WHERE", "BECAUSE")
        screen.table(headers, [_row(listing, now, everywhere) for listing in overview.workspaces])
    if overview.elsewhere:
        screen.stderr_line(
            f"{counted(overview.elsewhere, 'workspace')} in other repositories; list them with --all"
        )
    for leftover in overview.leftovers:
        screen.line(f"leftover {short_id(leftover.id)}: {_leftover_text(leftover)}")
    if overview.leftovers:
        screen.stderr_line("remove leftovers with `podium workspaces gc`")
    if overview.removed:
        titles = ("REMOVED", "TASK", "WHEN", "SNAPSHOTS", "REPOSITORY")
        screen.table(titles, [_removed_row(removed) for removed in overview.removed])
        screen.stderr_line("recover one as a branch with `podium workspaces recover WORKSPACE`")


def _row(listing: WorkspaceListing, now: datetime, everywhere: bool) -> tuple[str, ...]:
    record = listing.record
    return (
        short_id(record.id),
        record.task,
        listing.kept.value,
        size(listing.bytes),
        age(now - listing.changed_at),
        *((record.repository,) if everywhere else ()),
        record.path,
        listing.because,
    )


def print_snapshot(screen: Screen, made: WorktreeSnapshot) -> None:
    """Print a snapshot, and what it left out."""
    screen.line(f"{made.ref}: {made.commit}")
    for path in made.left_out:
        screen.line(f"left out: {escaped_line(path)}")
    if made.left_out and made.complete:
        screen.stderr_line(
            "large ignored files do not count as work; `gc` removes them with the workspace"
        )


def print_recovered(screen: Screen, made: RecoveredBranch) -> None:
    """Print the recovered branch, and what only the snapshot has."""
    of = made.snapshot
    screen.line(f"{made.branch}: {made.commit} ({of.why}, {local_time(of.at)})")
    for path in made.only_in_snapshot:
        screen.line(f"only in the snapshot: {escaped_line(path)}")
    if made.more:
        screen.line(f"only in the snapshot: {made.more} more")
    screen.stderr_line(
        f"switch to it with `git switch {made.branch}`, or look with `git show --stat {made.branch}`"
    )
    if made.only_in_snapshot:
        screen.stderr_line(
            "files only in the snapshot are not on the branch; "
            f"print one with `git show {of.ref}:PATH`"
        )


def _removed_row(removed: RemovedWorkspace) -> tuple[str, ...]:
    record = removed.record
    count = str(len(removed.snapshots))
    return (
        short_id(record.id),
        record.task,
        local_time(removed.removed_at),
        count,
        record.repository,
    )


def _leftover_text(leftover: Leftover) -> str:
    paths = ", ".join(leftover.places)
    there = f" (still there: {paths})" if paths else ""
    return f"{leftover.because}, {size(leftover.bytes)}{there}"


def print_collected(screen: Screen, done: Collected, dry_run: bool) -> None:
    """Print what was removed and what stays, each with the reason."""
    for removal in done.removals:
        screen.line(_removal_text(removal, dry_run))
    gone = sum(removal.removed for removal in done.removals)
    verb = "would be removed" if dry_run else "removed"
    stay = len(done.removals) - gone
    screen.stderr_line(f"{gone} {verb} ({size(done.bytes)}), {stay} kept")


def _removal_text(removal: WorkspaceRemoval, dry_run: bool) -> str:
    name = f"{short_id(removal.id)} {removal.task}".rstrip()
    if not removal.removed:
        return f"stays: {name}: {removal.because}"
    verb = "would remove" if dry_run else "removed"
    return f"{verb}: {name}: {removal.because}{_snapshot_text(removal.snapshot)}"


def _snapshot_text(snapshot: WorktreeSnapshot | None) -> str:
    if snapshot is None:
        return ""
    left_out = (
        f", without {', '.join(map(escaped_line, snapshot.left_out))}" if snapshot.left_out else ""
    )
    return f" (snapshot {snapshot.ref}{left_out})"


def size(count: int) -> str:
    """`512 B`, `1.2 MB`."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def age(passed: timedelta) -> str:
    """`40s`, `12m`, `5h`, `3d`."""
    seconds = max(0, int(passed.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


app = command_app()

_NO_REPOSITORY = "none"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

AllOption = Annotated[
    bool, typer.Option("--all", help="Workspaces of every repository, not only this project's.")
]


@app.callback(invoke_without_command=True)
def workspaces(context: typer.Context) -> None:
    """List, clean up, recover or create the worktrees of runs. Without a command: `list`."""
    if context.invoked_subcommand is None:
        list_(context)


app.command()(create)
app.command("exec", context_settings={"ignore_unknown_options": True})(exec_)
app.command()(deliver)


@app.command("list")
def list_(
    context: typer.Context,
    removed: Annotated[
        bool, typer.Option("--removed", help="Include removed ones that have snapshots.")
    ] = False,
    everywhere: AllOption = False,
) -> None:
    """List workspaces: where their work is stored, size and age.

    \b
    Example:
      podium workspaces list
      podium workspaces list --removed --json
    """
    cli = CliContext(context.obj, lenient=True)

    async def work(podium: Podium) -> tuple[Overview, datetime]:
        needed = await _needed(cli, podium)
        overview = await survey_workspaces(
            podium.workspaces,
            needed=needed,
            removed=removed,
            git_dir=await _scope(podium, everywhere),
        )
        return overview, podium.clock.now()

    overview, now = cli.run(work)

    def render() -> None:
        show_overview(cli.screen, overview, now, everywhere=everywhere)

    cli.screen.answer(overview.model_dump(mode="json"), render)


@app.command()
def gc(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORKSPACE]...", help="Only these.", show_default=False),
    ] = None,
    older_than: Annotated[
        str,
        typer.Option("--older-than", help="Only those unchanged for this long, such as 12h or 7d."),
    ] = "0s",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be removed.")
    ] = False,
    everywhere: AllOption = False,
) -> None:
    """Remove workspaces whose work is merged, pushed, snapshotted or empty, and leftovers of crashes.

    Never removed: work that is stored nowhere else, and workspaces in use. A named workspace that
    stays makes this exit with 4, or with 7 when it is in use.

    \b
    Example:
      podium workspaces gc --older-than 7d --dry-run
      podium workspaces gc fix-login
    """
    cli = CliContext(context.obj)
    least = span(older_than)

    async def work(podium: Podium) -> Collected:
        await podium.end_orphans()
        return await collect_workspaces(
            podium.workspaces,
            podium.clock,
            needed=await _needed(cli, podium),
            names=names or (),
            older_than=least,
            dry_run=dry_run,
            git_dir=await _scope(podium, everywhere),
        )

    done = cli.run(work)
    record = {"dry_run": dry_run, "bytes": done.bytes, **done.model_dump(mode="json")}
    cli.screen.answer(record, lambda: print_collected(cli.screen, done, dry_run))
    raise typer.Exit(_exit_code(done, named=bool(names)))


@app.command()
def snapshot(context: typer.Context, name: NameArgument, everywhere: AllOption = False) -> None:
    """Snapshot a workspace, including untracked files, under a private ref; `gc` may remove it then.

    \b
    Example:
      podium workspaces snapshot fix-login
      podium workspaces snapshot fix-login --all
    """
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> WorktreeSnapshot:
        scope = await _scope(podium, everywhere)
        return await snapshot_workspace(podium.workspaces, name, "requested by a person", scope)

    made = cli.run(work)
    record = {"snapshot": made.model_dump(mode="json")}
    cli.screen.answer(record, lambda: print_snapshot(cli.screen, made))


@app.command()
def recover(
    context: typer.Context,
    name: NameArgument,
    branch: Annotated[
        str, typer.Option("--branch", help="Name of the branch; default recovered/TASK.")
    ] = "",
    everywhere: AllOption = False,
) -> None:
    """Create a branch from the newest snapshot of a workspace, also of a removed one.

    It has the files git tracks. Ignored and copied files stay in the snapshot, which `git show` reads.
    Changes that may not be delivered from a workspace are refused here too: it exits with 4.

    \b
    Example:
      podium workspaces recover fix-login --branch fix-login-again
      podium workspaces recover fix-login
    """
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> RecoveredBranch:
        scope = await _scope(podium, everywhere)
        return await recover_workspace(podium.workspaces, name, branch, scope)

    made = cli.run(work)
    cli.screen.answer(made.model_dump(mode="json"), lambda: print_recovered(cli.screen, made))


@app.command()
def forget(
    context: typer.Context,
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    everywhere: AllOption = False,
) -> None:
    """Delete all snapshots of a removed workspace. This cannot be undone.

    \b
    Example:
      podium workspaces forget fix-login --yes
      podium workspaces forget fix-login
    """
    cli = CliContext(context.obj)

    async def look(podium: Podium) -> RemovedWorkspace:
        return await find_removed(podium.workspaces, name, await _scope(podium, everywhere))

    removed = cli.run(look)
    count = counted(len(removed.snapshots), "snapshot")
    if not yes:
        _ask(cli, f"delete {count} of {removed.record.task!r}? This cannot be undone.")

    async def work(podium: Podium) -> Sequence[WorktreeSnapshot]:
        return await podium.workspaces.forget(removed.record.id)

    dropped = cli.run(work)
    record = {"dropped": [snapshot.model_dump(mode="json") for snapshot in dropped]}

    def render() -> None:
        for snapshot in dropped:
            cli.screen.line(f"deleted {snapshot.ref}: {snapshot.commit}")

    cli.screen.answer(record, render)


async def _scope(podium: Podium, everywhere: bool) -> str:
    """Return the repository to filter by; empty for all."""
    if everywhere:
        return ""
    return await podium.workspaces.repository_of(str(podium.folders.project)) or _NO_REPOSITORY


async def _needed(cli: CliContext, podium: Podium) -> Needed:
    """Return what the runs of this project need, without creating a database."""
    store = await podium.store() if cli.has_state else None
    return needed_by_runs(store, str(podium.folders.project), podium.clock, podium.engine)


def span(text: str) -> timedelta:
    """`90s`, `30m`, `12h`, `7d`, `2w`."""
    match = re.fullmatch(r"\s*(\d{1,6})\s*([smhdw])\s*", text)
    if match is None:
        raise BadInput(f"{text!r} is not a duration; use a number and a unit, such as 12h or 7d")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def _ask(cli: CliContext, question: str) -> None:
    if cli.screen.json or not typer.get_text_stream("stdin").isatty():
        raise NotPossibleNow(f"{question} Not a terminal; pass --yes to confirm")
    typer.confirm(question, abort=True, err=True)


def _exit_code(done: Collected, *, named: bool) -> int:
    stays = [removal for removal in done.removals if not removal.removed]
    if any(removal.failed for removal in stays):
        return 1
    if not named or not stays:
        return 0
    return 7 if all(removal.kept is WorkLocation.IN_USE for removal in stays) else 4
