"""`podium workspaces`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.commands.workspace_use import create, deliver, exec_
from podium.cli.door import Door
from podium.cli.screen import counted, moment
from podium.cli.workspace_words import show_overview, tell_collected
from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.workspaces import Kept, Snapshot
from podium.usecases import (
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
from podium.wiring import Podium

app = command_app(group=True)

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

NameArgument = Annotated[
    str, typer.Argument(metavar="WORKSPACE", help="Its id, a short form, or its task.")
]


@app.callback()
def workspaces() -> None:
    """Make workspaces, work in them, and look after them: clear away what is safe, get work back."""


app.command()(create)
app.command("exec", context_settings={"ignore_unknown_options": True})(exec_)
app.command()(deliver)


@app.command("list")
def list_(
    context: typer.Context,
    removed: Annotated[
        bool, typer.Option("--removed", help="Those that are no more, but have snapshots, too.")
    ] = False,
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
        seen = await survey_workspaces(podium.workspaces, needed=needed, removed=removed)
        return seen, podium.clock.now()

    seen, now = door.run(work)
    door.screen.answer(seen.model_dump(mode="json"), lambda: show_overview(door.screen, seen, now))


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
        )

    done = door.run(work)
    record = {"dry_run": dry_run, "bytes": done.bytes, **done.model_dump(mode="json")}
    door.screen.answer(record, lambda: tell_collected(door.screen, done, dry_run))
    raise typer.Exit(_exit_code(done, named=bool(names)))


@app.command()
def snapshot(context: typer.Context, name: NameArgument) -> None:
    """Keep everything in a workspace under a private ref, untracked files too; `gc` may remove it then.

    \b
    Example:
      podium workspaces snapshot fix-login
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> Snapshot:
        return await snapshot_workspace(podium.workspaces, name, "asked for by a person")

    made = door.run(work)
    record = {"snapshot": made.model_dump(mode="json")}
    door.screen.answer(record, lambda: door.screen.line(f"{made.ref}: {made.commit}"))


@app.command()
def recover(
    context: typer.Context,
    name: NameArgument,
    branch: Annotated[
        str, typer.Option("--branch", help="Its name; without it recovered/TASK.")
    ] = "",
) -> None:
    """Make a branch of the newest snapshot of a workspace, also of one that was removed.

    \b
    Example:
      podium workspaces recover fix-login --branch fix-login-again
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> tuple[str, Snapshot]:
        return await recover_workspace(podium.workspaces, name, branch)

    made, of = door.run(work)
    record = {"branch": made, "snapshot": of.model_dump(mode="json")}

    def words() -> None:
        door.screen.line(f"{made}: {of.commit} ({of.why}, {moment(of.at)})")
        door.screen.aside(f"`git switch {made}` goes there, `git show --stat {made}` looks")

    door.screen.answer(record, words)


@app.command()
def forget(
    context: typer.Context,
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Drop all snapshots of a workspace that was removed. They cannot come back.

    \b
    Example:
      podium workspaces forget fix-login --yes
    """
    door = Door(context.obj)
    found = door.run(lambda podium: find_removed(podium.workspaces, name))
    count = counted(len(found.snapshots), "snapshot")
    if not yes:
        _ask(door, f"drop {count} of {found.record.task!r} for good?")

    async def work(podium: Podium) -> Sequence[Snapshot]:
        return await podium.workspaces.forget(found.record.id)

    dropped = door.run(work)
    record = {"dropped": [each.model_dump(mode="json") for each in dropped]}

    def words() -> None:
        for each in dropped:
            door.screen.line(f"dropped {each.ref}: {each.commit}")

    door.screen.answer(record, words)


async def _needed(door: Door, podium: Podium) -> Needed:
    """What the runs of this project need. Looking must not make a database."""
    store = await podium.store() if door.has_state else None
    return needed_by_runs(store, str(podium.folders.project))


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
    return 7 if all(removal.kept is Kept.IN_USE for removal in stays) else 4
