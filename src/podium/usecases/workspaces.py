"""Looking after workspaces: what is in them, where that is safe, and clearing away what is not needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import PurePath

from podium.domain.errors import AmbiguousId, BadInput, PodiumError, UnknownId
from podium.domain.ids import SHORTEST_TAIL, short_id, tail_of
from podium.domain.model import Noun
from podium.domain.workspaces import (
    Kept,
    Leftover,
    Removal,
    RemovedWorkspace,
    Snapshot,
    WorkspaceListing,
    WorkspaceRecord,
)
from podium.ports import Clock, Store, Workspaces


class Overview(Noun):
    """All workspaces at one look."""

    workspaces: tuple[WorkspaceListing, ...]
    leftovers: tuple[Leftover, ...]
    removed: tuple[RemovedWorkspace, ...] = ()


class Collected(Noun):
    """What clearing away did, or would do."""

    removals: tuple[Removal, ...]

    @property
    def bytes(self) -> int:
        return sum(removal.bytes for removal in self.removals if removal.removed)


Needed = Callable[[WorkspaceRecord], Awaitable[str]]
"""Why a run that has not ended needs a workspace; empty when none does."""


async def needed_by_none(record: WorkspaceRecord) -> str:
    """For where there are no runs."""
    return ""


def needed_by_runs(store: Store | None, project: str) -> Needed:
    """Asks the project's record. A run that waits for a person for days holds no lock meanwhile."""

    async def why(record: WorkspaceRecord) -> str:
        name = record.run_id
        if not name:
            return ""
        run = await store.read(lambda view: view.run(name)) if store is not None else None
        if run is not None and not run.status.ended:
            return f"run {short_id(name)} is {run.status.value} and goes on in it"
        elsewhere = not PurePath(project).is_relative_to(record.repository)
        if run is None and elsewhere:
            return f"its run belongs to another project; look from {record.repository!r}"
        return ""

    return why


async def survey_workspaces(
    workspaces: Workspaces, *, needed: Needed = needed_by_none, removed: bool = False
) -> Overview:
    """All workspaces and leftovers, and on demand what is remembered of those that are no more."""
    listings = [await _with_runs(each, needed) for each in await workspaces.listed()]
    return Overview(
        workspaces=tuple(listings),
        leftovers=tuple(await workspaces.leftovers()),
        removed=tuple(await workspaces.removed()) if removed else (),
    )


async def _with_runs(listing: WorkspaceListing, needed: Needed) -> WorkspaceListing:
    why = "" if listing.kept is Kept.IN_USE else await needed(listing.record)
    if not why:
        return listing
    return listing.model_copy(update={"kept": Kept.IN_USE, "because": why})


async def collect_workspaces(
    workspaces: Workspaces,
    clock: Clock,
    *,
    needed: Needed = needed_by_none,
    names: Sequence[str] = (),
    older_than: timedelta = timedelta(0),
    dry_run: bool = False,
) -> Collected:
    """Remove workspaces whose work is safe elsewhere, and what killed processes left behind.

    With `names` only those, whatever their age. Nothing whose work is unknown, and nothing that
    somebody works in or goes on with, is ever removed.
    """
    seen = await survey_workspaces(workspaces, needed=needed)
    chosen = _chosen(seen, names)
    latest = clock.now() - older_than
    removals = []
    for leftover in seen.leftovers:
        if not names or leftover.id in chosen:
            removals.append(await _cleared(workspaces, leftover, dry_run))
    for listing in seen.workspaces:
        wanted = listing.record.id in chosen if names else listing.changed_at <= latest
        if wanted:
            removals.append(await _removed(workspaces, listing, dry_run))
    return Collected(removals=tuple(removals))


async def _cleared(workspaces: Workspaces, leftover: Leftover, dry_run: bool) -> Removal:
    if dry_run:
        return Removal(id=leftover.id, removed=True, because=leftover.because, bytes=leftover.bytes)
    return await _attempt(leftover.id, workspaces.clear)


async def _removed(workspaces: Workspaces, listing: WorkspaceListing, dry_run: bool) -> Removal:
    name, safe = listing.record.id, listing.kept.is_safe
    if dry_run or not safe:
        return Removal(
            id=name, removed=safe, because=listing.because, kept=listing.kept, bytes=listing.bytes
        )
    return await _attempt(name, workspaces.remove)


async def _attempt(name: str, act: Callable[[str], Awaitable[Removal]]) -> Removal:
    """One that cannot be removed keeps no other from it."""
    try:
        return await act(name)
    except PodiumError as error:
        return Removal(id=name, removed=False, because=str(error), failed=True)


async def recover_workspace(
    workspaces: Workspaces, name: str, branch: str = ""
) -> tuple[str, Snapshot]:
    """Make a branch of the newest snapshot of a workspace, removed or not, and give its name."""
    record = await _any_record(workspaces, name)
    chosen = branch or f"recovered/{record.task}"
    return chosen, await workspaces.recover(record.id, chosen)


def find_workspace(workspaces: Workspaces, name: str, repository: str = "") -> WorkspaceRecord:
    """The one that a person means; of several with the task's name the one of this repository."""
    known = workspaces.known()
    here = [record for record in known if record.repository == repository and record.task == name]
    return _found(here or known, name)


async def snapshot_workspace(workspaces: Workspaces, name: str, why: str) -> Snapshot:
    """Keep everything in a workspace as it is now, so that it may be removed."""
    workspace = await workspaces.open(find_workspace(workspaces, name).id)
    return await workspace.snapshot(why)


async def find_removed(workspaces: Workspaces, name: str) -> RemovedWorkspace:
    """A workspace that is no more, by id, short form or task."""
    removed = await workspaces.removed()
    record = _found([each.record for each in removed], name)
    return next(each for each in removed if each.record.id == record.id)


async def _any_record(workspaces: Workspaces, name: str) -> WorkspaceRecord:
    """A living one first: a task's name may come back after its workspace was removed."""
    seen = await survey_workspaces(workspaces, removed=True)
    living = [listing.record for listing in seen.workspaces]
    gone = [removed.record for removed in seen.removed]
    try:
        return _found(living, name)
    except UnknownId:
        return _found(gone, name)


def _chosen(seen: Overview, names: Sequence[str]) -> set[str]:
    records = [listing.record for listing in seen.workspaces]
    half = {leftover.id for leftover in seen.leftovers}
    return {name if name in half else _found(records, name).id for name in names}


def _found(records: Sequence[WorkspaceRecord], text: str) -> WorkspaceRecord:
    """The one that a person means by its id, a short form of it, or its task."""
    name = text.strip()
    if not name:
        raise BadInput("name a workspace by its id or task; `podium workspaces list` shows both")
    exact = [record for record in records if name in (record.id, record.task)]
    fitting = exact or [record for record in records if _fits(record.id, name)]
    if not fitting:
        raise UnknownId("workspace", text)
    if len(fitting) > 1:
        raise AmbiguousId("workspace", text, [record.id for record in fitting])
    return fitting[0]


def _fits(identifier: str, name: str) -> bool:
    if len(name) < SHORTEST_TAIL:
        return False
    return identifier.startswith(name) or tail_of(identifier).startswith(name)
