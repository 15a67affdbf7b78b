"""`podium db`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.databases import Databases, Pruned, prune
from podium.cli.app import command_app
from podium.cli.commands.workspaces import span
from podium.cli.context import Door
from podium.cli.progress import Progress
from podium.core.errors import BadInput
from podium.render.text import counted, local_time

app = command_app(group=True)

TELL_SECONDS = 1.0
"""How often long work says how far it is."""

DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL|PATH",
        help="Another one than the project's own: postgresql://…, a SQLite file or a project.",
        show_default=False,
    ),
]


@app.callback()
def db() -> None:
    """Look after the database that holds the record: SQLite, or PostgreSQL (PODIUM_DATABASE_URL)."""


@app.command()
def migrate(
    context: typer.Context,
    database: DatabaseOption = "",
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; leave with 1 when it is behind.")
    ] = False,
) -> None:
    """Bring the database to this Podium's schema. It is safe while others do the same.

    \b
    Example:
      podium db migrate
      podium db migrate --check
    """
    door = Door(context.obj, lenient=True)
    databases = _databases(door)
    name = database or databases.in_use
    before, wanted = databases.versions(name)
    if not check:
        # Also when the version is right: on a server the queues have tables of their own.
        databases.migrate(name)
    shown, is_behind = databases.display_name(name), before != wanted

    def words() -> None:
        if not is_behind:
            door.screen.line(f"{shown}: schema {wanted}, as it should be")
        elif check:
            door.screen.line(
                f"{shown}: {_version(before)}, this Podium's is {wanted}; run `podium db migrate`"
            )
        else:
            door.screen.line(f"{shown}: {_version(before)} → schema {wanted}")

    record = {"database": shown, "from": before, "to": wanted, "migrated": is_behind and not check}
    door.screen.answer(record, words)
    raise typer.Exit(1 if check and is_behind else 0)


@app.command()
def check(context: typer.Context, database: DatabaseOption = "") -> None:
    """Read everything and say what is not as it was written. Exits with 1 when something is not.

    Every record is read, events and steps are counted through, receipts are proved with their key, and
    the database looks at its own files. Nothing is changed, and work may go on.

    \b
    Example:
      podium db check
      podium db check --database backup/podium.db --json
    """
    door = Door(context.obj, lenient=True)
    databases = _databases(door)
    with _told() as tell:
        done = databases.check(database or databases.in_use, tell)

    def words() -> None:
        for fault in done.faults:
            where = f"{fault.table} {fault.row}".strip()
            door.screen.line(f"{where + ': ' if where else ''}{fault.problem}; {fault.remedy}")
        if done.more_faults:
            door.screen.line(f"and {done.more_faults} more like these")
        state = "sound" if done.sound else counted(len(done.faults) + done.more_faults, "fault")
        door.screen.line(f"{done.database}: {counted(done.rows, 'row')} read: {state}")

    door.screen.answer({"sound": done.sound, **done.model_dump(mode="json")}, words)
    raise typer.Exit(0 if done.sound else 1)


@app.command()
def copy(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="URL|PATH", help="Default: the project's own.", show_default=False
        ),
    ] = "",
    target: Annotated[
        str,
        typer.Option(
            "--to", metavar="URL|PATH", help="Default: the project's own.", show_default=False
        ),
    ] = "",
) -> None:
    """Move a project to another database, either way, and prove that all of it arrived.

    The target must be empty, and nobody may be at work in either. It is one transaction: every row is
    read back and compared before it is committed. The source stays as it is.

    \b
    Example:
      podium db copy --to postgresql://podium@db.example.org/podium
      podium db copy --from postgresql://podium@db.example.org/podium --to .podium/podium.db
    """
    door = Door(context.obj, lenient=True)
    databases = _databases(door)
    if not source and not target:
        raise BadInput(
            "say at least one of --from and --to; the other is the project's own database"
        )
    door.options.parting_words = "nothing was copied, the target is as it was; run it again"
    with _told() as tell:
        started = time.monotonic()
        done = databases.copy(source or databases.in_use, target or databases.in_use, tell)
        took = time.monotonic() - started

    def words() -> None:
        for table in done.tables:
            door.screen.line(
                f"{table.name.ljust(10)} {str(table.rows).rjust(10)}  {table.digest[:16]}"
            )
        for fault in done.chain_faults:
            door.screen.line(f"receipts, before as now: {fault}")
        door.screen.line(_proof_words(done.chains, done.proved, len(done.chain_faults)))
        door.screen.line(
            f"{done.source} → {done.target}: {counted(done.rows, 'row')} in {took:.1f} s, "
            "every one the same on both sides"
        )

    record = {"rows": done.rows, "seconds": round(took, 3), **done.model_dump(mode="json")}
    door.screen.answer(record, words)


@app.command("prune")
def prune_(
    context: typer.Context,
    older_than: Annotated[
        str, typer.Option("--older-than", help="Runs that ended longer ago than this: 12h, 30d.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many would go.")] = False,
) -> None:
    """Forget runs that ended long ago, with their events, steps and calls; work goes on meanwhile.

    Receipts and approvals stay, so that what was done can still be proved.

    \b
    Example:
      podium db prune --older-than 30d --dry-run
      podium db prune --older-than 30d
    """
    door = Door(context.obj)
    least = span(older_than)
    done: Pruned | None = None
    if door.has_state:
        with _told() as tell:

            async def work(podium: Podium) -> Pruned:
                return await prune(
                    await podium.store(),
                    least,
                    dry_run=dry_run,
                    report=lambda runs: tell("forgetting runs", runs, 0),
                )

            done = door.run(work)
    record = done.model_dump(mode="json") if done else {"runs": 0, "dry_run": dry_run}

    def words() -> None:
        if done is None or not done.runs:
            door.screen.line("no runs ended so long ago")
        else:
            verb = "would be forgotten" if dry_run else "forgotten"
            door.screen.line(
                f"{counted(done.runs, 'run')} {verb} that ended before {local_time(done.before)}"
            )

    door.screen.answer(record, words)


@app.command("begin-anew")
def begin_anew(context: typer.Context) -> None:
    """Start with an empty record where the old one is lost; the old chain heads and database are kept aside.

    A record that was rolled back to an older state stays as it is, and only the heads go aside. The key stays, so
    that receipts of a backup found later can still be proved: put the heads back with it.

    \b
    Example:
      podium db begin-anew
    """
    door = Door(context.obj, lenient=True)

    aside = door.run(Podium.begin_anew)

    def words() -> None:
        kept = f"; the old heads are in {str(aside.heads)!r}" if aside.heads else ""
        kept += (
            f"; the database that was there is {str(aside.database)!r}" if aside.database else ""
        )
        begun = "the older record goes on" if aside.rolled_back else "a new record begins"
        door.screen.line(f"{begun}{kept}")

    record = {
        "heads": str(aside.heads) if aside.heads else None,
        "database": str(aside.database) if aside.database else None,
        "rolled_back": aside.rolled_back,
    }
    door.screen.answer(record, words)


def _databases(door: Door) -> Databases:
    return Databases(Podium(door.configuration, os.environ))


def _version(number: int) -> str:
    return f"schema {number}" if number else "nothing of Podium's"


def _proof_words(chains: int, proved: bool, faults: int) -> str:
    if not chains:
        return "no receipts"
    if not proved:
        return (
            f"receipts of {counted(chains, 'run')}: the same, but not proved: their key is not here"
        )
    state = "proved" if not faults else f"{counted(faults, 'fault')}, which the source has, too"
    return f"receipts of {counted(chains, 'run')}: {state}"


@contextmanager
def _told() -> Iterator[Tell]:
    """How far long work is, on stderr: live on a terminal, a line in a while when piped."""
    with Progress(sys.stderr) as progress:
        yield Tell(progress)


class Tell:
    """Says how far it is, not more often than people can read."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._last = time.monotonic()

    def __call__(self, doing: str, done: int, of: int) -> None:
        now = time.monotonic()
        if now - self._last < TELL_SECONDS:
            return
        self._last = now
        words = f"{doing}: {done}" + (f" of {of}" if of else "")
        if self._progress.width:
            self._progress.doing(words)
        else:
            self._progress.line(words)
