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
from podium.cli.context import CliContext
from podium.cli.progress import Progress
from podium.core.errors import BadInput
from podium.render.text import counted, local_time

app = command_app(group=True)

PROGRESS_SECONDS = 1.0
"""Interval of progress reports."""

DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL|PATH",
        help="Database other than the project's own: postgresql://…, a SQLite file or a project.",
        show_default=False,
    ),
]


@app.callback()
def db() -> None:
    """Migrate, check, copy or prune the database: SQLite, or PostgreSQL (PODIUM_DATABASE_URL)."""


@app.command()
def migrate(
    context: typer.Context,
    database: DatabaseOption = "",
    check: Annotated[
        bool,
        typer.Option("--check", help="Change nothing; exit with 1 when a migration is needed."),
    ] = False,
) -> None:
    """Migrate the database to this Podium's schema. Safe to run concurrently.

    \b
    Example:
      podium db migrate
      podium db migrate --check
    """
    cli = CliContext(context.obj, lenient=True)
    databases = _databases(cli)
    name = database or databases.in_use
    before, current = databases.versions(name)
    if not check:
        # Also when the version is right: on a server the queues have tables of their own.
        databases.migrate(name)
    label, is_behind = databases.display_name(name), before != current

    def render() -> None:
        if not is_behind:
            cli.screen.line(f"{label}: schema {current}, up to date")
        elif check:
            cli.screen.line(
                f"{label}: {_version(before)}, needs {current}; run `podium db migrate`"
            )
        else:
            cli.screen.line(f"{label}: {_version(before)} → schema {current}")

    record = {"database": label, "from": before, "to": current, "migrated": is_behind and not check}
    cli.screen.answer(record, render)
    raise typer.Exit(1 if check and is_behind else 0)


@app.command()
def check(context: typer.Context, database: DatabaseOption = "") -> None:
    """Verify every record in the database. Exits with 1 when a problem is found.

    Every record is read, events and steps are checked for gaps, receipts are verified with their key, and
    the database checks its own files. Nothing is changed, and work may continue.

    \b
    Example:
      podium db check
      podium db check --database backup/podium.db --json
    """
    cli = CliContext(context.obj, lenient=True)
    databases = _databases(cli)
    with _reporting() as progress:
        done = databases.check(database or databases.in_use, progress)

    def render() -> None:
        for problem in done.faults:
            where = f"{problem.table} {problem.row}".strip()
            cli.screen.line(f"{where + ': ' if where else ''}{problem.problem}; {problem.remedy}")
        if done.more_faults:
            cli.screen.line(f"and {done.more_faults} more")
        state = "sound" if done.sound else counted(len(done.faults) + done.more_faults, "fault")
        cli.screen.line(f"{done.database}: {counted(done.rows, 'row')} read: {state}")

    cli.screen.answer({"sound": done.sound, **done.model_dump(mode="json")}, render)
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
    """Copy a project to another database, in either direction, and verify the copy.

    The target must be empty, and neither may be in use. It is one transaction: every row is
    read back and compared before the commit. The source is not changed.

    \b
    Example:
      podium db copy --to postgresql://podium@db.example.org/podium
      podium db copy --from postgresql://podium@db.example.org/podium --to .podium/podium.db
    """
    cli = CliContext(context.obj, lenient=True)
    databases = _databases(cli)
    if not source and not target:
        raise BadInput("pass --from or --to; the other defaults to the project's own database")
    cli.options.parting_note = "nothing was copied and the target is unchanged; run it again"
    with _reporting() as progress:
        started = time.monotonic()
        done = databases.copy(source or databases.in_use, target or databases.in_use, progress)
        took = time.monotonic() - started

    def render() -> None:
        for table in done.tables:
            cli.screen.line(
                f"{table.name.ljust(10)} {str(table.rows).rjust(10)}  {table.digest[:16]}"
            )
        for problem in done.chain_faults:
            cli.screen.line(f"receipts, also in the source: {problem}")
        cli.screen.line(_proof_text(done.chains, done.proved, len(done.chain_faults)))
        cli.screen.line(
            f"{done.source} → {done.target}: {counted(done.rows, 'row')} in {took:.1f} s, verified"
        )

    record = {"rows": done.rows, "seconds": round(took, 3), **done.model_dump(mode="json")}
    cli.screen.answer(record, render)


@app.command("prune")
def prune_(
    context: typer.Context,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than", help="Runs that ended longer ago than this, such as 12h or 30d."
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be deleted.")
    ] = False,
) -> None:
    """Delete old ended runs with their events, steps and calls; work continues meanwhile.

    Receipts and approvals are kept as proof of what was done.

    \b
    Example:
      podium db prune --older-than 30d --dry-run
      podium db prune --older-than 30d
    """
    cli = CliContext(context.obj)
    least = span(older_than)
    done: Pruned | None = None
    if cli.has_state:
        with _reporting() as progress:

            async def work(podium: Podium) -> Pruned:
                return await prune(
                    await podium.store(),
                    least,
                    dry_run=dry_run,
                    report=lambda runs: progress("deleting runs", runs, 0),
                )

            done = cli.run(work)
    record = done.model_dump(mode="json") if done else {"runs": 0, "dry_run": dry_run}

    def render() -> None:
        if done is None or not done.runs:
            cli.screen.line("no runs ended that long ago")
        else:
            verb = "would be deleted" if dry_run else "deleted"
            cli.screen.line(
                f"{counted(done.runs, 'run')} {verb} that ended before {local_time(done.before)}"
            )

    cli.screen.answer(record, render)


@app.command("begin-anew")
def begin_anew(context: typer.Context) -> None:
    """Start with an empty record where the old one is lost; the old chain heads and database are archived.

    A record that was rolled back to an older state is kept, and only the heads are archived. The key stays, so
    that receipts of a backup found later can still be verified: restore the heads with it.

    \b
    Example:
      podium db begin-anew
      podium db begin-anew --json
    """
    cli = CliContext(context.obj, lenient=True)

    archived = cli.run(Podium.begin_anew)

    def render() -> None:
        details = f"; old heads in {str(archived.heads)!r}" if archived.heads else ""
        details += f"; old database in {str(archived.database)!r}" if archived.database else ""
        begun = "kept the older record" if archived.rolled_back else "started a new record"
        cli.screen.line(f"{begun}{details}")

    record = {
        "heads": str(archived.heads) if archived.heads else None,
        "database": str(archived.database) if archived.database else None,
        "rolled_back": archived.rolled_back,
    }
    cli.screen.answer(record, render)


def _databases(cli: CliContext) -> Databases:
    return Databases(Podium(cli.configuration, os.environ))


def _version(number: int) -> str:
    return f"schema {number}" if number else "no Podium schema"


def _proof_text(chains: int, proved: bool, problems: int) -> str:
    if not chains:
        return "no receipts"
    if not proved:
        return f"receipts of {counted(chains, 'run')}: equal, but not verified: the key is missing"
    state = "verified" if not problems else f"{counted(problems, 'problem')}, also in the source"
    return f"receipts of {counted(chains, 'run')}: {state}"


@contextmanager
def _reporting() -> Iterator[CopyProgress]:
    """Report progress on stderr: live on a terminal, occasional lines when piped."""
    with Progress(sys.stderr) as progress:
        yield CopyProgress(progress)


class CopyProgress:
    """Progress callback, limited to one report per interval."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._last = time.monotonic()

    def __call__(self, doing: str, done: int, of: int) -> None:
        now = time.monotonic()
        if now - self._last < PROGRESS_SECONDS:
            return
        self._last = now
        line = f"{doing}: {done}" + (f" of {of}" if of else "")
        if self._progress.width:
            self._progress.doing(line)
        else:
            self._progress.line(line)
