"""Working folders of runs, and restoring one to its state before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.app.id_lookup import find_id
from podium.core.errors import BadInput, LockHeld, NotPossibleNow
from podium.core.folder_snapshots import FolderRestore
from podium.core.work import Run
from podium.jobs.playbook.models import PLAYBOOK
from podium.ports import RunQuery, StoreView

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.git import FolderRestorer, GitWorkingFolders


_MAX_RUNS = 10_000


def working_folders(podium: Podium) -> GitWorkingFolders:
    """Build the service that snapshots, copies and compares folders of this project's runs."""
    from podium.git import GitWorkingFolders

    return GitWorkingFolders(podium.repository_git, podium.folders.grounds)


async def preview_restore(podium: Podium, run: str, *, undo: bool = False) -> FolderRestore:
    """Preview the restore of a run's folder. `undo` reverts the last restore.

    Raises `LockHeld` while the run, or another one in the same folder, is open, and `NotPossibleNow` without a
    snapshot.
    """
    return await (await _restoring(podium, run)).look(undo=undo)


async def restore_playbook(
    podium: Podium, run: str, preview: FolderRestore, *, undo: bool = False, over: bool = False
) -> FolderRestore:
    """Restore the folder to its state before the run, if it still matches the preview.

    Its current state is saved first. `over` overwrites later changes of others.
    """
    restoring = await _restoring(podium, run)
    return await restoring.put_back(preview, undo=undo, over=over)


async def _restoring(podium: Podium, name: str) -> FolderRestorer:
    from podium.git import FolderRestorer

    store = await podium.store()
    run = await store.read(lambda view: _ended_run(view, name))
    return FolderRestorer(working_folders(podium), run.id, run.finished_at)


def _ended_run(view: StoreView, name: str) -> Run:
    run = view.run(find_id(view, "run", name))
    if run is None or run.flow != PLAYBOOK:
        raise BadInput(f"{name!r} is not a playbook run; list runs with `podium runs`")
    root, dry_run = _folder_of(run)
    if dry_run:
        raise NotPossibleNow(f"run {run.id} worked in a copy, so there is nothing to restore")
    for other in (run, *view.runs(RunQuery(flow=PLAYBOOK, limit=_MAX_RUNS))):
        if not other.status.ended and _folder_of(other) == (root, False):
            raise LockHeld(
                f"playbook run {other.id} is working in {root!r}; end it with `podium cancel {other.id}`, then restore "
                "the folder"
            )
    return run


def _folder_of(run: Run) -> tuple[str, bool]:
    """Return its folder, and whether it is a dry run."""
    job = run.input if isinstance(run.input, dict) else {}
    return str(job.get("root", "")), bool(job.get("dry_run"))
