"""Workspaces: spec by the settings, survey, recovery, and removal of what is no longer needed."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pydantic import BaseModel

from podium.app.run_list import with_host_status
from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options, options_models
from podium.core.errors import AmbiguousId, BadInput, NotPossibleNow, PodiumError, UnknownId
from podium.core.ids import SHORTEST_TAIL, short_id, tail_of
from podium.core.job import all_jobs, load
from podium.core.model import FrozenModel
from podium.core.steering_files import SteeringFile, steering_files
from podium.core.work import Run, RunStatus
from podium.core.workspaces import (
    Leftover,
    RecoveredBranch,
    RemovedWorkspace,
    SetupSpec,
    WorkLocation,
    WorkspaceListing,
    WorkspaceRecord,
    WorkspaceRemoval,
    WorkspaceSpec,
    WorktreeSnapshot,
)
from podium.ports import Clock, Engine, Store, Workspaces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.core.work import Run
    from podium.git.git_command import Git
    from podium.ports import Store


def workspace_spec(
    configuration: Configuration,
    closed: Sequence[str],
    task: str,
    *,
    base: str = "HEAD",
    branch: str = "",
    run_id: str = "",
) -> WorkspaceSpec:
    """Build the spec of a task's workspace; `closed` are the paths that the policy's zones protect.

    Raises `NotPossibleNow` for set-up that nobody has trusted.
    """
    settings, sandbox = configuration.workspaces, configuration.sandbox
    project = configuration.folders.project
    return WorkspaceSpec(
        task=task,
        repository=str(project),
        base=base,
        branch=branch,
        folder=str(project / settings.folder / task) if settings.folder else "",
        forbidden=tuple(dict.fromkeys((*settings.forbidden, *closed))),
        set_up=SetupSpec(
            copy_files=settings.copy_files,
            ports=settings.ports,
            after_create=tuple(_shell(line) for line in settings.after_create),
            ready=_shell(settings.ready) if settings.ready else (),
            seconds=settings.seconds,
            network=sandbox.network or "none",
            hosts=sandbox.hosts,
        ),
        run_id=run_id,
    )


def _shell(line: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", line)


def guarded_paths(configuration: Configuration, repository: str) -> list[str]:
    """From the top of the checkout on. In a repository of another project, what comes with Podium counts too.

    Raises `ConfigInvalid` for options of a flow that are wrong: what they name is not known then.
    """
    top = os.path.realpath(repository)
    project = os.path.realpath(configuration.folders.project)
    shapes = options_models()
    options = [
        shape.model_validate(flow_options(configuration, flow)) for flow, shape in shapes.items()
    ]
    names = _named_by([configuration.settings, *options], project)
    if os.path.commonpath((top, project)) != top:
        names += _named_by([shape() for shape in shapes.values()], top)
        return [name for name in map(posixpath.normpath, names) if _is_inside(name)]
    # By its name, and where links lead now.
    paths = [os.path.normpath(Path(project, name)) for name in names]
    paths += list(map(os.path.realpath, paths))
    return [inner for inner in (os.path.relpath(path, top) for path in paths) if _is_inside(inner)]


def _named_by(settings: Iterable[BaseModel], folder: str) -> list[str]:
    def is_meant(path: str, steering_file: SteeringFile) -> bool:
        return not (steering_file.files_only and Path(folder, path).is_dir())

    named = [pair for model in settings for pair in steering_files(model)]
    of_jobs = [path for job in all_jobs() if job.guarded_files for path in load(job.guarded_files)]
    return [*(path for path, steering_file in named if is_meant(path, steering_file)), *of_jobs]


def _is_inside(path: str) -> bool:
    return path not in (".", "..") and not path.startswith(("../", "/"))


class Overview(FrozenModel):
    """All workspaces at one look."""

    workspaces: tuple[WorkspaceListing, ...]
    leftovers: tuple[Leftover, ...]
    removed: tuple[RemovedWorkspace, ...] = ()
    elsewhere: int = 0
    """Number of workspaces of other repositories, when only one was surveyed."""


class Collected(FrozenModel):
    """Result of removing workspaces, or of a dry run."""

    removals: tuple[WorkspaceRemoval, ...]

    @property
    def bytes(self) -> int:
        return sum(removal.bytes for removal in self.removals if removal.removed)


_RETRIED_WITHIN = timedelta(days=7)

Needed = Callable[[WorkspaceRecord], Awaitable[str]]
"""Function that gives the reason why a run still needs a workspace; empty when none does."""


async def needed_by_none(record: WorkspaceRecord) -> str:
    """For where there are no runs."""
    return ""


def needed_by_runs(
    store: Store | None, project: str, clock: Clock, engine: Callable[[], Awaitable[Engine]]
) -> Needed:
    """Asks the project's record. A run that waits for a person for days holds no lock meanwhile.

    One that failed is retried soon or never. The engine tells who is hosted.
    """

    async def why(record: WorkspaceRecord) -> str:
        name = record.run_id
        if not name:
            return ""
        run = await store.read(lambda view: view.run(name)) if store is not None else None
        if run is not None and not run.status.ended:
            (listing,) = await with_host_status([run], engine)
            goes_on = (
                f"`podium resume {short_id(name)}` continues" if listing.interrupted else "works"
            )
            return f"run {short_id(name)} is {listing.shown_status} and {goes_on} in it"
        if run is not None and _may_be_retried(run, clock):
            return (
                f"run {short_id(name)} failed, and `podium retry {short_id(name)}` continues in it"
            )
        elsewhere = not PurePath(project).is_relative_to(record.repository)
        if run is None and elsewhere:
            return f"its run belongs to another project; run this command in {record.repository!r}"
        return ""

    return why


def _may_be_retried(run: Run, clock: Clock) -> bool:
    if run.status is not RunStatus.FAILED or run.finished_at is None:
        return False
    return clock.now() - run.finished_at < _RETRIED_WITHIN


async def survey_workspaces(
    workspaces: Workspaces,
    *,
    needed: Needed = needed_by_none,
    removed: bool = False,
    git_dir: str = "",
) -> Overview:
    """All workspaces and leftovers, and on demand what is remembered of those that are no more.

    With `git_dir` those of one repository, and leftovers of which nobody knows whose they are.
    """
    listings = [await _with_runs(listing, needed) for listing in await workspaces.listed(git_dir)]
    left = [
        leftover for leftover in await workspaces.leftovers() if _here(leftover.git_dir, git_dir)
    ]
    gone = await workspaces.removed() if removed else ()
    records = workspaces.existing()
    return Overview(
        workspaces=tuple(listings),
        leftovers=tuple(left),
        removed=tuple(workspace for workspace in gone if _here(workspace.record.git_dir, git_dir)),
        elsewhere=sum(not _here(record.git_dir, git_dir) for record in records),
    )


def _here(git_dir: str, chosen: str) -> bool:
    return "" in (git_dir, chosen) or git_dir == chosen


async def _with_runs(listing: WorkspaceListing, needed: Needed) -> WorkspaceListing:
    why = "" if listing.kept is WorkLocation.IN_USE else await needed(listing.record)
    if not why:
        return listing
    return listing.model_copy(update={"kept": WorkLocation.IN_USE, "because": why})


async def collect_workspaces(
    workspaces: Workspaces,
    clock: Clock,
    *,
    needed: Needed = needed_by_none,
    names: Sequence[str] = (),
    older_than: timedelta = timedelta(0),
    dry_run: bool = False,
    git_dir: str = "",
) -> Collected:
    """Remove workspaces whose work is safe elsewhere, and what killed processes left behind.

    With `names` only those, whatever their age; with `git_dir` those of one repository. Nothing whose work is unknown, and nothing that
    somebody works in or goes on with, is ever removed.
    """
    overview = await survey_workspaces(workspaces, needed=needed, git_dir=git_dir)
    chosen = _chosen(overview, names, workspaces.existing())
    latest = clock.now() - older_than
    removals = []
    for leftover in overview.leftovers:
        if not names or leftover.id in chosen:
            removals.append(await _cleared(workspaces, leftover, dry_run))
    for listing in overview.workspaces:
        is_chosen = listing.record.id in chosen if names else listing.changed_at <= latest
        if is_chosen:
            removals.append(await _removed(workspaces, listing, dry_run))
    return Collected(removals=tuple(removals))


async def _cleared(workspaces: Workspaces, leftover: Leftover, dry_run: bool) -> WorkspaceRemoval:
    if dry_run:
        return WorkspaceRemoval(
            id=leftover.id,
            task=leftover.task,
            removed=leftover.readable,
            because=leftover.because,
            bytes=leftover.bytes,
        )
    return await _attempt(leftover.id, leftover.task, workspaces.clear)


async def _removed(
    workspaces: Workspaces, listing: WorkspaceListing, dry_run: bool
) -> WorkspaceRemoval:
    name, safe = listing.record.id, listing.kept.is_safe
    if dry_run or not safe:
        return WorkspaceRemoval(
            id=name,
            task=listing.record.task,
            removed=safe,
            because=listing.because,
            kept=listing.kept,
            bytes=listing.bytes,
        )
    return await _attempt(name, listing.record.task, workspaces.remove)


async def _attempt(
    name: str, task: str, act: Callable[[str], Awaitable[WorkspaceRemoval]]
) -> WorkspaceRemoval:
    """One that cannot be removed keeps no other from it."""
    try:
        return await act(name)
    except PodiumError as error:
        return WorkspaceRemoval(id=name, task=task, removed=False, because=str(error), failed=True)


async def recover_workspace(
    workspaces: Workspaces, name: str, branch: str = "", git_dir: str = ""
) -> RecoveredBranch:
    """Make a branch of the newest snapshot of a workspace, removed or not."""
    record = await _any_record(workspaces, name, git_dir)
    return await workspaces.recover(record.id, branch or f"recovered/{record.task}")


def find_workspace(workspaces: Workspaces, name: str, repository: str = "") -> WorkspaceRecord:
    """The one that a person means; of several with the task's name the one of this repository."""
    records = workspaces.existing()
    here = [record for record in records if record.repository == repository and record.task == name]
    return _find(here or records, name)


async def snapshot_workspace(
    workspaces: Workspaces, name: str, why: str, git_dir: str = ""
) -> WorktreeSnapshot:
    """Keep everything in a workspace as it is now, so that it may be removed."""
    record = _find_here(workspaces.existing(), name, git_dir)
    return await (await workspaces.open(record.id)).snapshot(why)


async def find_removed(workspaces: Workspaces, name: str, git_dir: str = "") -> RemovedWorkspace:
    """A workspace that is no more, by id, short form or task."""
    removed = await workspaces.removed()
    record = _find_here([workspace.record for workspace in removed], name, git_dir)
    return next(workspace for workspace in removed if workspace.record.id == record.id)


async def _any_record(workspaces: Workspaces, name: str, git_dir: str) -> WorkspaceRecord:
    """A living one first: a task's name may come back after its workspace was removed."""
    living = workspaces.existing()
    gone = [removed.record for removed in await workspaces.removed()]
    for records in (living, gone):
        here = [record for record in records if _here(record.git_dir, git_dir)]
        with suppress(UnknownId):
            return _find(here, name)
    return _find_here([*living, *gone], name, git_dir)


def _chosen(
    overview: Overview, names: Sequence[str], all_records: Sequence[WorkspaceRecord]
) -> set[str]:
    records = [listing.record for listing in overview.workspaces]
    half = {leftover.id: leftover for leftover in overview.leftovers}
    return {_leftover(half, name) or _chosen_here(records, name, all_records).id for name in names}


def _leftover(half: Mapping[str, Leftover], name: str) -> str:
    """The leftover that a person means by its id, or a short form as it is shown."""
    fitting = [
        leftover_id for leftover_id in half if name == leftover_id or _fits(leftover_id, name)
    ]
    return fitting[0] if len(fitting) == 1 else ""


def _chosen_here(
    here: Sequence[WorkspaceRecord], name: str, all_records: Sequence[WorkspaceRecord]
) -> WorkspaceRecord:
    try:
        return _find(here, name)
    except UnknownId:
        _refuse_elsewhere(all_records, name)
        raise


def _find_here(records: Sequence[WorkspaceRecord], name: str, git_dir: str) -> WorkspaceRecord:
    here = [record for record in records if _here(record.git_dir, git_dir)]
    return _chosen_here(here, name, records)


def _refuse_elsewhere(all_records: Sequence[WorkspaceRecord], name: str) -> None:
    """Raise with where it is, if another repository has it."""
    with suppress(UnknownId, AmbiguousId):
        record = _find(all_records, name)
        raise NotPossibleNow(
            f"workspace {name!r} belongs to {record.repository!r}; change to that folder, or pass --all"
        )


def _find(records: Sequence[WorkspaceRecord], text: str) -> WorkspaceRecord:
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


RETRY_WINDOW = timedelta(days=7)
"""A run that failed may be retried, and its agents then go on with their conversations."""


async def tidy_homes(homes: Path, store: Store, clock: Clock) -> None:
    """Remove the homes of runs that are over, and copies of logins that a killed Podium left behind."""
    if not await asyncio.to_thread(homes.is_dir):
        return
    from podium.agents import sweep_homes

    names = await asyncio.to_thread(os.listdir, homes)
    now = clock.now()
    over = await store.read(lambda view: {name for name in names if _is_over(view.run(name), now)})
    await asyncio.to_thread(sweep_homes, homes, over.__contains__)


async def tidy_grounds(folder: Path, git: Git, store: Store, clock: Clock) -> None:
    """Remove copies that runs worked in, and what was kept of folders long ago."""
    if not await asyncio.to_thread(folder.is_dir):
        return
    from podium.git import GitWorkingFolders

    grounds = GitWorkingFolders(git, folder)
    names = await asyncio.to_thread(grounds.runs)
    now = clock.now()
    over = await store.read(lambda view: {name for name in names if _is_over(view.run(name), now)})
    await grounds.tidy(over.__contains__)


def _is_over(run: Run | None, now: datetime) -> bool:
    """True when nobody will continue the run. An unknown one was a check."""
    if run is None or run.status in (RunStatus.SUCCEEDED, RunStatus.CANCELLED):
        return True
    if run.status is not RunStatus.FAILED or run.finished_at is None:
        return False
    return now - run.finished_at > RETRY_WINDOW
