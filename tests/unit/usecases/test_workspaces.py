"""Looking after workspaces, tried on some that exist on paper."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from podium.app.run_list import list_by_status
from podium.app.workspaces import (
    collect_workspaces,
    find_removed,
    needed_by_runs,
    recover_workspace,
    survey_workspaces,
)
from podium.core.errors import AmbiguousId, BadInput, NotPossibleNow, UnknownId
from podium.core.work import Run, RunStatus
from podium.core.workspaces import (
    BranchConflict,
    Leftover,
    RecoveredBranch,
    RemovedWorkspace,
    WorkLocation,
    WorkspaceListing,
    WorkspaceRecord,
    WorkspaceRemoval,
    WorkspaceSpec,
    WorktreeSnapshot,
)
from podium.ports import Engine, Workspace
from podium.testing import FixedClock, MemoryStore, SteadyIds

CLOCK = FixedClock()
IDS = SteadyIds()


class PaperWorkspaces:
    """Workspaces that are rows of a list. It removes whatever it is asked to, so callers must not."""

    def __init__(self, *listings: WorkspaceListing, leftovers: Sequence[Leftover] = ()) -> None:
        self.listings = list(listings)
        self.left = list(leftovers)
        self.gone: list[RemovedWorkspace] = []
        self.asked: list[str] = []
        self.broken: set[str] = set()

    async def create(self, spec: WorkspaceSpec) -> Workspace:
        raise NotPossibleNow("on paper nothing is made")

    async def missing(self, workspace_id: str) -> str:
        raise NotPossibleNow("on paper nothing is there that could be gone")

    async def rebuild(
        self, record: WorkspaceRecord, spec: WorkspaceSpec, commit: str
    ) -> tuple[Workspace, WorktreeSnapshot | None]:
        raise NotPossibleNow("on paper nothing is made again")

    async def collisions(self, workspace_id: str) -> Sequence[BranchConflict]:
        raise NotPossibleNow("on paper nothing collides")

    async def open(self, workspace_id: str) -> Workspace:
        raise UnknownId("workspace", workspace_id)

    def at(self, path: str) -> WorkspaceRecord | None:
        return next((item.record for item in self.listings if item.record.path == path), None)

    def existing(self) -> Sequence[WorkspaceRecord]:
        return [listing.record for listing in self.listings]

    async def repository_of(self, folder: str) -> str:
        return f"{folder}/.git"

    async def listed(self, git_dir: str = "") -> Sequence[WorkspaceListing]:
        return [item for item in self.listings if git_dir in ("", item.record.git_dir)]

    async def leftovers(self) -> Sequence[Leftover]:
        return self.left

    async def clear(self, leftover_id: str) -> WorkspaceRemoval:
        return await self.remove(leftover_id)

    async def remove(self, workspace_id: str) -> WorkspaceRemoval:
        self.asked.append(workspace_id)
        if workspace_id in self.broken:
            raise NotPossibleNow("a file is in the way")
        return WorkspaceRemoval(id=workspace_id, removed=True, because="asked", bytes=10)

    async def removed(self) -> Sequence[RemovedWorkspace]:
        return self.gone

    async def recover(self, workspace_id: str, branch: str) -> RecoveredBranch:
        self.asked.append(f"{workspace_id} {branch}")
        return RecoveredBranch(branch=branch, commit="1" * 40, snapshot=snapshot())

    async def forget(self, workspace_id: str) -> Sequence[WorktreeSnapshot]:
        return []


def snapshot() -> WorktreeSnapshot:
    return WorktreeSnapshot(
        ref="refs/podium/snapshots/x/1", commit="1" * 40, why="test", at=CLOCK.now()
    )


def record(task: str) -> WorkspaceRecord:
    return WorkspaceRecord(
        id=IDS.new("ws"),
        task=task,
        repository="/r",
        git_dir="/r/.git",
        path=f"/w/{task}",
        private="/p",
        branch=f"refs/heads/podium/{task}",
        base="0" * 40,
        created_at=CLOCK.now(),
    )


def in_repository(listing: WorkspaceListing, folder: str) -> WorkspaceListing:
    moved = listing.record.model_copy(update={"repository": folder, "git_dir": f"{folder}/.git"})
    return listing.model_copy(update={"record": moved})


def of_run(listing: WorkspaceListing, run_id: str) -> WorkspaceListing:
    owned = listing.record.model_copy(update={"run_id": run_id})
    return listing.model_copy(update={"record": owned})


def listing(task: str, kept: WorkLocation, days: float = 0.0) -> WorkspaceListing:
    return WorkspaceListing(
        record=record(task),
        kept=kept,
        because=f"it is {kept.value}",
        bytes=10,
        changed_at=CLOCK.now() - timedelta(days=days),
    )


async def test_only_what_is_old_enough_is_collected() -> None:
    old, new = (
        listing("old", WorkLocation.MERGED, days=8),
        listing("new", WorkLocation.MERGED, days=6),
    )
    paper = PaperWorkspaces(old, new)
    done = await collect_workspaces(paper, CLOCK, older_than=timedelta(days=7))
    assert paper.asked == [old.record.id]
    assert done.bytes == 10


async def test_a_dry_run_says_what_would_go_and_asks_for_nothing() -> None:
    kinds = [listing(kept.value, kept) for kept in WorkLocation]
    left = Leftover(id="half", because="making it was cut off")
    paper = PaperWorkspaces(*kinds, leftovers=[left])
    done = await collect_workspaces(paper, CLOCK, dry_run=True)
    assert paper.asked == []
    stay = {removal.kept for removal in done.removals if not removal.removed}
    assert stay == {WorkLocation.UNKNOWN, WorkLocation.IN_USE}
    assert "half" in {removal.id for removal in done.removals if removal.removed}


async def test_named_ones_alone_are_collected_by_id_short_form_or_task() -> None:
    first, second, third = (listing(task, WorkLocation.MERGED) for task in ("one", "two", "three"))
    paper = PaperWorkspaces(first, second, third, leftovers=[Leftover(id="half", because="x")])
    names = ["one", second.record.id[-12:-6]]
    await collect_workspaces(paper, CLOCK, names=names, older_than=timedelta(days=7))
    assert paper.asked == [first.record.id, second.record.id]


async def test_a_name_that_fits_nothing_or_several_removes_nothing() -> None:
    paper = PaperWorkspaces(
        listing("same", WorkLocation.MERGED), listing("same", WorkLocation.MERGED)
    )
    for name, error in (("no", UnknownId), ("same", AmbiguousId), (" ", BadInput)):
        with pytest.raises(error):
            await collect_workspaces(paper, CLOCK, names=["same" if name == "same" else name])
    assert paper.asked == []


async def test_one_that_cannot_be_removed_keeps_no_other_from_it() -> None:
    first, second = listing("one", WorkLocation.MERGED), listing("two", WorkLocation.MERGED)
    paper = PaperWorkspaces(first, second)
    paper.broken.add(first.record.id)
    done = await collect_workspaces(paper, CLOCK)
    assert [removal.failed for removal in done.removals] == [True, False]
    assert [removal.removed for removal in done.removals] == [False, True]
    assert "in the way" in done.removals[0].because


async def nobody_hosts() -> Engine:
    raise AssertionError("no run here has an owner")


async def test_a_run_that_nobody_hosts_is_called_interrupted_as_in_the_list_of_runs() -> None:
    store = MemoryStore()
    left = Run(id="run_1", flow="f", status=RunStatus.RUNNING, created_at=CLOCK.now())
    await store.write(lambda tx: tx.add_run(left))
    paper = PaperWorkspaces(of_run(listing("run_1", WorkLocation.MERGED), "run_1"))
    needed = needed_by_runs(store, "/r", CLOCK, nobody_hosts)
    (removal,) = (await collect_workspaces(paper, CLOCK, needed=needed)).removals
    (status,) = await list_by_status(store, nobody_hosts)
    assert status.shown_status == "interrupted"
    assert "run run_1 is interrupted and `podium resume run_1` continues in it" in removal.because


async def test_what_a_run_goes_on_with_stays_although_nobody_holds_it_now() -> None:
    store = MemoryStore()
    waiting = Run(id="run_1", flow="f", status=RunStatus.WAITING, created_at=CLOCK.now())
    ended = Run(id="run_2", flow="f", status=RunStatus.SUCCEEDED, created_at=CLOCK.now())
    await store.write(lambda tx: tx.add_run(waiting))
    await store.write(lambda tx: tx.add_run(ended))
    listings = [
        of_run(listing(run, WorkLocation.MERGED), run)
        for run in ("run_1", "run_2", "run_not_known")
    ]
    paper = PaperWorkspaces(*listings)
    done = await collect_workspaces(
        paper, CLOCK, needed=needed_by_runs(store, "/r", CLOCK, nobody_hosts)
    )
    assert [removal.removed for removal in done.removals] == [False, True, True]
    assert done.removals[0].kept is WorkLocation.IN_USE
    assert "waiting" in done.removals[0].because
    paper.asked.clear()
    done = await collect_workspaces(
        paper, CLOCK, needed=needed_by_runs(None, "/other", CLOCK, nobody_hosts)
    )
    assert paper.asked == []
    assert all("another project" in removal.because for removal in done.removals)
    await store.close()


async def test_a_workspace_whose_work_is_nowhere_else_is_not_even_asked_for() -> None:
    paper = PaperWorkspaces(listing("a", WorkLocation.UNKNOWN), listing("b", WorkLocation.IN_USE))
    done = await collect_workspaces(paper, CLOCK, names=["a", "b"])
    assert paper.asked == []
    assert [removal.because for removal in done.removals] == ["it is unknown", "it is in_use"]


async def test_the_living_one_of_a_name_is_recovered_before_one_that_is_no_more() -> None:
    living = listing("task", WorkLocation.UNKNOWN)
    paper = PaperWorkspaces(living)
    paper.gone = [RemovedWorkspace(record=record("task"), removed_at=CLOCK.now(), because="x")]
    assert (await recover_workspace(paper, "task")).branch == "recovered/task"
    assert paper.asked == [f"{living.record.id} recovered/task"]
    paper.listings = []
    await recover_workspace(paper, "task", "mine")
    assert paper.asked[1] == f"{paper.gone[0].record.id} mine"
    assert (await find_removed(paper, "task")).record == paper.gone[0].record


async def test_survey_includes_removed_workspaces_only_when_requested() -> None:
    paper = PaperWorkspaces(listing("one", WorkLocation.MERGED))
    paper.gone = [RemovedWorkspace(record=record("two"), removed_at=CLOCK.now(), because="x")]
    assert (await survey_workspaces(paper)).removed == ()
    assert len((await survey_workspaces(paper, removed=True)).removed) == 1


async def test_only_workspaces_of_the_one_repository_are_looked_at_and_collected() -> None:
    here = listing("task", WorkLocation.MERGED)
    there = in_repository(listing("task", WorkLocation.MERGED), "/other")
    lost = in_repository(listing("lost", WorkLocation.MERGED), "/other")
    half = Leftover(id="half", because="x", git_dir="/other/.git")
    paper = PaperWorkspaces(
        here, there, lost, leftovers=[half, Leftover(id="nobodys", because="x")]
    )
    seen = await survey_workspaces(paper, git_dir="/r/.git")
    assert [workspace.record.id for workspace in seen.workspaces] == [here.record.id]
    assert [leftover.id for leftover in seen.leftovers] == ["nobodys"]
    assert seen.elsewhere == 2
    await collect_workspaces(paper, CLOCK, git_dir="/r/.git")
    assert paper.asked == ["nobodys", here.record.id]
    paper.asked.clear()
    await collect_workspaces(paper, CLOCK, names=["task"], git_dir="/other/.git")
    assert paper.asked == [there.record.id]


async def test_name_only_in_another_repository_is_reported_and_left_alone() -> None:
    paper = PaperWorkspaces(in_repository(listing("lost", WorkLocation.MERGED), "/other"))
    with pytest.raises(NotPossibleNow, match="belongs to '/other'"):
        await collect_workspaces(paper, CLOCK, names=["lost"], git_dir="/r/.git")
    with pytest.raises(NotPossibleNow, match="--all"):
        await recover_workspace(paper, "lost", git_dir="/r/.git")
    assert paper.asked == []
