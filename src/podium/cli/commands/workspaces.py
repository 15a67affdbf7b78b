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
from podium.cli.context import Door
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
    screen: Screen, seen: Overview, now: datetime, *, everywhere: bool = False
) -> None:
    """All of them in a table, then what kills left, then those that are no more."""
    if not seen.workspaces:
        screen.aside("no workspaces")
    else:
        more = ("REPOSITORY",) if everywhere else ()
        headers = ("WORKSPACE", "TASK", "KEPT", "SIZE", "AGE", *more, "WHERE", "BECAUSE")
        screen.table(headers, [_row(listing, now, everywhere) for listing in seen.workspaces])
    if seen.elsewhere:
        screen.aside(f"{counted(seen.elsewhere, 'workspace')} of other repositories: --all")
    for leftover in seen.leftovers:
        screen.line(f"leftover {short_id(leftover.id)}: {_leftover_words(leftover)}")
    if seen.leftovers:
        screen.aside("`podium workspaces gc` clears leftovers away")
    if seen.removed:
        titles = ("REMOVED", "TASK", "WHEN", "SNAPSHOTS", "REPOSITORY")
        screen.table(titles, [_removed_row(each) for each in seen.removed])
        screen.aside("`podium workspaces recover WORKSPACE` makes a branch of the newest snapshot")


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


def tell_snapshot(screen: Screen, made: WorktreeSnapshot) -> None:
    """Where it is, and what is not in it."""
    screen.line(f"{made.ref}: {made.commit}")
    for each in made.left_out:
        screen.line(f"left out: {escaped_line(each)}")
    if made.left_out and made.complete:
        screen.aside("what git ignores and is large is no work: `gc` removes it with the workspace")


def tell_recovered(screen: Screen, made: RecoveredBranch) -> None:
    """Which branch it is, what only the snapshot has, and how to get that."""
    of = made.snapshot
    screen.line(f"{made.branch}: {made.commit} ({of.why}, {local_time(of.at)})")
    for path in made.only_in_snapshot:
        screen.line(f"only in the snapshot: {escaped_line(path)}")
    if made.more:
        screen.line(f"only in the snapshot: {made.more} more")
    screen.aside(f"`git switch {made.branch}` goes there, `git show --stat {made.branch}` looks")
    if made.only_in_snapshot:
        screen.aside(
            "git would not carry those that are only in the snapshot; "
            f"`git show {of.ref}:PATH` prints one"
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


def _leftover_words(leftover: Leftover) -> str:
    places = ", ".join(leftover.places)
    there = f" (still there: {places})" if places else ""
    return f"{leftover.because}, {size(leftover.bytes)}{there}"


def tell_collected(screen: Screen, done: Collected, dry_run: bool) -> None:
    """What went and what stays, each with the reason."""
    for removal in done.removals:
        screen.line(_removal_words(removal, dry_run))
    gone = sum(removal.removed for removal in done.removals)
    verb = "would be removed" if dry_run else "removed"
    stay = len(done.removals) - gone
    screen.aside(f"{gone} {verb} ({size(done.bytes)}), {stay} left as they are")


def _removal_words(removal: WorkspaceRemoval, dry_run: bool) -> str:
    name = f"{short_id(removal.id)} {removal.task}".rstrip()
    if not removal.removed:
        return f"stays: {name}: {removal.because}"
    verb = "would go" if dry_run else "removed"
    return f"{verb}: {name}: {removal.because}{_kept_words(removal.snapshot)}"


def _kept_words(snapshot: WorktreeSnapshot | None) -> str:
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
    bool, typer.Option("--all", help="Of every repository, not of this project's alone.")
]


@app.callback(invoke_without_command=True)
def workspaces(context: typer.Context) -> None:
    """List, clean up and recover the worktrees of runs, or make one. Without a command: `list`."""
    if context.invoked_subcommand is None:
        list_(context)


app.command()(create)
app.command("exec", context_settings={"ignore_unknown_options": True})(exec_)
app.command()(deliver)


@app.command("list")
def list_(
    context: typer.Context,
    removed: Annotated[
        bool, typer.Option("--removed", help="Those that are no more, but have snapshots, too.")
    ] = False,
    everywhere: AllOption = False,
) -> None:
    """List workspaces with where their work is safe, their size and age.

    \b
    Example:
      podium workspaces list
      podium workspaces list --removed --json
    """
    door = Door(context.obj, lenient=True)

    async def work(podium: Podium) -> tuple[Overview, datetime]:
        needed = await _needed(door, podium)
        seen = await survey_workspaces(
            podium.workspaces,
            needed=needed,
            removed=removed,
            git_dir=await _scope(podium, everywhere),
        )
        return seen, podium.clock.now()

    seen, now = door.run(work)

    def words() -> None:
        show_overview(door.screen, seen, now, everywhere=everywhere)

    door.screen.answer(seen.model_dump(mode="json"), words)


@app.command()
def gc(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORKSPACE]...", help="Only these.", show_default=False),
    ] = None,
    older_than: Annotated[
        str, typer.Option("--older-than", help="Only what nobody changed for so long: 12h, 7d.")
    ] = "0s",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    everywhere: AllOption = False,
) -> None:
    """Remove workspaces whose work is merged, pushed, snapshotted or none, and what crashes left.

    Never removed: work that is nowhere else, and workspaces in use. A workspace that is named and
    stays makes this leave with 4, or with 7 when somebody works in it.

    \b
    Example:
      podium workspaces gc --older-than 7d --dry-run
      podium workspaces gc fix-login
    """
    door = Door(context.obj)
    least = span(older_than)

    async def work(podium: Podium) -> Collected:
        await podium.end_orphans()
        return await collect_workspaces(
            podium.workspaces,
            podium.clock,
            needed=await _needed(door, podium),
            names=names or (),
            older_than=least,
            dry_run=dry_run,
            git_dir=await _scope(podium, everywhere),
        )

    done = door.run(work)
    record = {"dry_run": dry_run, "bytes": done.bytes, **done.model_dump(mode="json")}
    door.screen.answer(record, lambda: tell_collected(door.screen, done, dry_run))
    raise typer.Exit(_exit_code(done, named=bool(names)))


@app.command()
def snapshot(context: typer.Context, name: NameArgument, everywhere: AllOption = False) -> None:
    """Keep everything in a workspace under a private ref, untracked files too; `gc` may remove it then.

    \b
    Example:
      podium workspaces snapshot fix-login
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> WorktreeSnapshot:
        scope = await _scope(podium, everywhere)
        return await snapshot_workspace(podium.workspaces, name, "asked for by a person", scope)

    made = door.run(work)
    record = {"snapshot": made.model_dump(mode="json")}
    door.screen.answer(record, lambda: tell_snapshot(door.screen, made))


@app.command()
def recover(
    context: typer.Context,
    name: NameArgument,
    branch: Annotated[
        str, typer.Option("--branch", help="Its name; without it recovered/TASK.")
    ] = "",
    everywhere: AllOption = False,
) -> None:
    """Make a branch of the newest snapshot of a workspace, also of one that was removed.

    It holds what git would carry. Ignored and copied files stay in the snapshot, which `git show` reads.
    What may not come back from a workspace becomes no branch either: it exits with 4.

    \b
    Example:
      podium workspaces recover fix-login --branch fix-login-again
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> RecoveredBranch:
        scope = await _scope(podium, everywhere)
        return await recover_workspace(podium.workspaces, name, branch, scope)

    made = door.run(work)
    door.screen.answer(made.model_dump(mode="json"), lambda: tell_recovered(door.screen, made))


@app.command()
def forget(
    context: typer.Context,
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    everywhere: AllOption = False,
) -> None:
    """Drop all snapshots of a workspace that was removed. They cannot come back.

    \b
    Example:
      podium workspaces forget fix-login --yes
    """
    door = Door(context.obj)

    async def look(podium: Podium) -> RemovedWorkspace:
        return await find_removed(podium.workspaces, name, await _scope(podium, everywhere))

    found = door.run(look)
    count = counted(len(found.snapshots), "snapshot")
    if not yes:
        _ask(door, f"drop {count} of {found.record.task!r} for good?")

    async def work(podium: Podium) -> Sequence[WorktreeSnapshot]:
        return await podium.workspaces.forget(found.record.id)

    dropped = door.run(work)
    record = {"dropped": [each.model_dump(mode="json") for each in dropped]}

    def words() -> None:
        for each in dropped:
            door.screen.line(f"dropped {each.ref}: {each.commit}")

    door.screen.answer(record, words)


async def _scope(podium: Podium, everywhere: bool) -> str:
    """The repository whose workspaces are meant; empty for all. A folder in none has none."""
    if everywhere:
        return ""
    return await podium.workspaces.repository_of(str(podium.folders.project)) or _NO_REPOSITORY


async def _needed(door: Door, podium: Podium) -> Needed:
    """What the runs of this project need. Looking must not make a database."""
    store = await podium.store() if door.has_state else None
    return needed_by_runs(store, str(podium.folders.project), podium.clock, podium.engine)


def span(text: str) -> timedelta:
    """`90s`, `30m`, `12h`, `7d`, `2w`."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*([smhdw])\s*", text)
    if found is None:
        raise BadInput(f"{text!r} is no span of time; write a number and a unit, as in 12h or 7d")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _ask(door: Door, question: str) -> None:
    if door.screen.json or not typer.get_text_stream("stdin").isatty():
        raise NotPossibleNow(f"{question} nobody is here to answer; say it with --yes")
    typer.confirm(question, abort=True, err=True)


def _exit_code(done: Collected, *, named: bool) -> int:
    stays = [removal for removal in done.removals if not removal.removed]
    if any(removal.failed for removal in stays):
        return 1
    if not named or not stays:
        return 0
    return 7 if all(removal.kept is WorkLocation.IN_USE for removal in stays) else 4
