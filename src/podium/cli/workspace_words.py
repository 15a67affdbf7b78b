"""Workspaces in words."""

from __future__ import annotations

from datetime import datetime, timedelta

from podium.cli.screen import Screen, moment
from podium.domain.ids import short_id
from podium.domain.workspaces import Leftover, Removal, RemovedWorkspace, WorkspaceListing
from podium.usecases import Collected, Overview


def show_overview(screen: Screen, seen: Overview, now: datetime) -> None:
    """All of them in a table, then what kills left, then those that are no more."""
    if not seen.workspaces:
        screen.aside("no workspaces")
    else:
        headers = ("WORKSPACE", "TASK", "KEPT", "SIZE", "AGE", "WHERE", "BECAUSE")
        screen.table(headers, [_row(listing, now) for listing in seen.workspaces])
    for leftover in seen.leftovers:
        screen.line(f"leftover {leftover.id}: {_leftover_words(leftover)}")
    if seen.leftovers:
        screen.aside("`podium workspaces gc` clears leftovers away")
    if seen.removed:
        titles = ("REMOVED", "TASK", "WHEN", "SNAPSHOTS", "REPOSITORY")
        screen.table(titles, [_removed_row(each) for each in seen.removed])
        screen.aside("`podium workspaces recover WORKSPACE` makes a branch of the newest snapshot")


def _row(listing: WorkspaceListing, now: datetime) -> tuple[str, ...]:
    record = listing.record
    return (
        short_id(record.id),
        record.task,
        listing.kept.value,
        size(listing.bytes),
        age(now - listing.changed_at),
        record.path,
        listing.because,
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
    if removal.removed:
        verb = "would go" if dry_run else "removed"
        kept = f" (snapshot {removal.snapshot.ref})" if removal.snapshot is not None else ""
        return f"{verb}: {removal.id}: {removal.because}{kept}"
    return f"stays: {removal.id}: {removal.because}"


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
