"""Workspaces in words."""

from __future__ import annotations

from datetime import datetime, timedelta

from podium.cli.screen import Screen
from podium.domain.ids import short_id
from podium.domain.workspaces import (
    Leftover,
    Recovered,
    Removal,
    RemovedWorkspace,
    Snapshot,
    WorkspaceListing,
)
from podium.telling.untrusted import shown_line
from podium.telling.wording import counted, moment
from podium.usecases import Collected, Overview


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


def tell_snapshot(screen: Screen, made: Snapshot) -> None:
    """Where it is, and what is not in it."""
    screen.line(f"{made.ref}: {made.commit}")
    for each in made.left_out:
        screen.line(f"left out: {shown_line(each)}")
    if made.left_out and made.complete:
        screen.aside("what git ignores and is large is no work: `gc` removes it with the workspace")


def tell_recovered(screen: Screen, made: Recovered) -> None:
    """Which branch it is, what only the snapshot has, and how to get that."""
    of = made.snapshot
    screen.line(f"{made.branch}: {made.commit} ({of.why}, {moment(of.at)})")
    for path in made.only_in_snapshot:
        screen.line(f"only in the snapshot: {shown_line(path)}")
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
    return (short_id(record.id), record.task, moment(removed.removed_at), count, record.repository)


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


def _removal_words(removal: Removal, dry_run: bool) -> str:
    name = f"{short_id(removal.id)} {removal.task}".rstrip()
    if not removal.removed:
        return f"stays: {name}: {removal.because}"
    verb = "would go" if dry_run else "removed"
    return f"{verb}: {name}: {removal.because}{_kept_words(removal.snapshot)}"


def _kept_words(snapshot: Snapshot | None) -> str:
    if snapshot is None:
        return ""
    left_out = (
        f", without {', '.join(map(shown_line, snapshot.left_out))}" if snapshot.left_out else ""
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
