"""What setting up the sense loop says."""

from __future__ import annotations

import shlex

import typer

from podium.bridge import Scaffolded
from podium.bridge.schedulers import Change, Standing
from podium.cli.screen import Screen
from podium.telling.untrusted import shown_line


def tell_layout(screen: Screen, done: Scaffolded) -> None:
    """A line for each thing that was written or is there already."""
    for word in ("made", "replaced", "kept"):
        for path in getattr(done, word):
            screen.line(f"{word:9}{path}")
    for path in done.backups:
        screen.line(f"{'backup':9}{path}")
    for reason in done.refused.values():
        screen.aside(f"podium: {shown_line(reason)}")
    screen.line(f"{done.root}: next, `podium sense --once --root {shlex.quote(done.root)}`")


def tell_changes(screen: Screen, changes: list[Change], how: str) -> None:
    """What was done, and then the end of the command: 1 where a program refused."""

    def words() -> None:
        for change in changes:
            _tell_change(screen, change, how)

    records = [change.model_dump(mode="json") for change in changes]
    screen.answer({"changes": records}, words)
    raise typer.Exit(0 if all(change.done for change in changes) else 1)


def _tell_change(screen: Screen, change: Change, how: str) -> None:
    for path in change.written:
        screen.line(f"{change.scheduler}: wrote {path}")
    for path in change.backups:
        screen.line(f"{change.scheduler}: what was there is kept as {path}")
    for path in change.removed:
        screen.line(f"{change.scheduler}: {_removed(change, path)}")
    if change.loaded:
        screen.line(f"{change.scheduler}: a tick {how}")
    if not (change.written or change.removed or change.notes):
        screen.line(f"{change.scheduler}: nothing of this root is installed")
    for note in change.notes:
        screen.line(f"{change.scheduler}: {note}")
    if change.by_hand:
        screen.pass_on(f"{change.by_hand}\n".encode())


def _removed(change: Change, path: str) -> str:
    """Files of their own are gone; of a crontab it was one line."""
    return f"took its line out of {path}" if change.scheduler == "cron" else f"removed {path}"


def standing_cells(standing: Standing) -> list[str]:
    """A scheduler's row of the table."""
    return [
        standing.scheduler,
        "yes" if standing.installed else "no",
        {None: "", True: "yes", False: "no"}[standing.loaded],
        "" if standing.last_exit is None else str(standing.last_exit),
        standing.where,
        standing.why,
    ]
