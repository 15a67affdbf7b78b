"""Removing workspaces: only what is safe elsewhere goes, wholly, and what was cut off is finished."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow, PodiumError, UnknownId
from podium.core.workspaces import WorkLocation, WorkspaceRecord, WorkspaceRemoval, WorkspaceSpec
from podium.git import inventory
from podium.git.inventory import taken_away
from podium.git.records import RemovedWorkspaces, WorkspaceRecords, note_merged_base
from tests.integration.workspaces.yard import Yard, agent_commits
from tests.soaking import in_soak


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "yard").build()


def nothing_is_left(yard: Yard, record: WorkspaceRecord) -> bool:
    entries = yard.repository / ".git" / "worktrees"
    places = (Path(record.path), taken_away(record), Path(record.private), entries / record.admin)
    odd = list((yard.repository / ".git").glob("podium-*"))
    return not odd and not any(os.path.lexists(place) for place in places)


async def test_fetched_bases_go_with_the_last_workspace_that_has_them(yard: Yard) -> None:
    tree = yard.git("rev-parse", "main^{tree}")
    shared, own, loose = (
        yard.git("commit-tree", "-p", "main", "-m", name, tree) for name in ("1", "2", "3")
    )
    for commit in (shared, own, loose):
        yard.git("update-ref", f"refs/podium/bases/{commit}", commit)
    first, second = (await yard.made("first")).record, (await yard.made("second")).record
    for record, commit in ((first, shared), (first, own), (second, shared)):
        note_merged_base(record, commit)

    def bases() -> set[str]:
        return {commit for name, commit in yard.refs().items() if "/bases/" in name}

    assert (await yard.workspaces.remove(first.id)).removed
    assert bases() == {shared, loose}
    assert (await yard.workspaces.remove(second.id)).removed
    assert bases() == set()


async def test_an_unchanged_workspace_goes_with_its_unused_branch_and_leaves_no_snapshot(
    yard: Yard,
) -> None:
    record = (await yard.made()).record
    before = yard.refs()
    removal = await yard.workspaces.remove(record.id)
    assert removal == WorkspaceRemoval(
        id=record.id,
        task="task",
        removed=True,
        because="it has no changes",
        kept=WorkLocation.UNCHANGED,
        bytes=removal.bytes,
    )
    assert nothing_is_left(yard, record)
    assert yard.refs() == {name: at for name, at in before.items() if name != record.branch}
    assert not (yard.folder / ".worktrees").exists()
    assert await yard.workspaces.listed() == []
    assert yard.git("worktree", "list").count("\n") == 0


@pytest.mark.soak
async def test_merged_work_is_snapshotted_and_its_branch_stays(yard: Yard) -> None:
    workspace = await yard.made()
    amended = agent_commits(workspace.record, "work.txt")
    await workspace.deliver()
    tip = yard.git("rev-parse", "podium/task")
    yard.git("merge", "--quiet", "podium/task")
    removal = await yard.workspaces.remove(workspace.record.id)
    assert removal.removed
    assert removal.snapshot is not None
    assert yard.git("rev-parse", "podium/task") == tip == amended
    assert yard.git("show", f"{removal.snapshot.commit}:work.txt") == "work"
    assert nothing_is_left(yard, workspace.record)


async def test_work_that_is_nowhere_else_stays_as_it_is(yard: Yard) -> None:
    record = (await yard.made()).record
    (Path(record.path) / "untracked.txt").write_text("x")
    before = yard.refs()
    removal = await yard.workspaces.remove(record.id)
    assert not removal.removed
    assert removal.kept is WorkLocation.UNKNOWN
    assert "untracked.txt" in removal.because
    assert (Path(record.path) / "untracked.txt").read_text() == "x"
    assert yard.refs() == before


async def test_a_workspace_in_use_stays_as_it_is(yard: Yard) -> None:
    workspace = await yard.made()
    turn = await workspace.begin_turn()
    removal = await yard.workspaces.remove(workspace.record.id)
    assert not removal.removed
    assert removal.kept is WorkLocation.IN_USE
    await workspace.end_turn(turn)
    assert (await yard.workspaces.remove(workspace.record.id)).removed


async def test_a_branch_that_the_user_has_checked_out_since_stays(yard: Yard) -> None:
    record = (await yard.made()).record
    yard.git("checkout", "--quiet", "--ignore-other-worktrees", "podium/task")
    assert (await yard.workspaces.remove(record.id)).removed
    assert yard.git("symbolic-ref", "HEAD") == record.branch
    yard.git("status")


async def test_other_worktrees_and_workspaces_are_not_touched(yard: Yard) -> None:
    yard.git("worktree", "add", "--quiet", str(yard.folder / "mine"))
    first, second = (await yard.made("first")).record, (await yard.made("second")).record
    assert (await yard.workspaces.remove(first.id)).removed
    assert [each.record.id for each in await yard.workspaces.listed()] == [second.id]
    assert len(yard.git("worktree", "list").splitlines()) == 3
    yard.git("-C", second.path, "status")


async def test_what_an_agent_left_in_odd_shapes_goes_too(yard: Yard) -> None:
    workspace = await yard.made()
    worktree = Path(workspace.record.path)
    (worktree / "deep" / "er").mkdir(parents=True)
    (worktree / "deep" / "er" / "build.log").write_text("x")
    (worktree / "deep").chmod(0o500)
    (worktree / "out.log").symlink_to(yard.repository)
    assert (await yard.workspaces.remove(workspace.record.id)).removed
    assert nothing_is_left(yard, workspace.record)
    assert (yard.repository / "one.txt").exists()


async def test_a_folder_that_somebody_made_in_its_place_is_left_alone(yard: Yard) -> None:
    record = (await yard.made()).record
    shutil.rmtree(record.path)
    Path(record.path).mkdir()
    (Path(record.path) / "mine.txt").write_text("mine")
    assert not (await yard.workspaces.remove(record.id)).removed
    assert (Path(record.path) / "mine.txt").read_text() == "mine"


async def test_an_unknown_id_is_an_error(yard: Yard) -> None:
    for name in ("ws_" + "0" * 32, "../..", ""):
        with pytest.raises(UnknownId):
            await yard.workspaces.remove(name)
        with pytest.raises(UnknownId):
            await yard.workspaces.clear(name)


class Cut(BaseException):
    """Stands for a kill: nothing catches it."""


STEPS = (
    "note_removal",
    "_move",
    "_move_away",
    "_drop_unused_branch",
    "write_whole",
    "remember",
    "_empty_moved",
    "_move_private_away",
    "clear_away",
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, in_soak(True)], ids=["before", "after"])
async def test_a_removal_that_is_cut_off_at_a_step_is_explained_and_finished(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    record = (await yard.made()).record
    cut_at(monkeypatch, step, after)
    with pytest.raises(Cut):
        await yard.workspaces.remove(record.id)
    monkeypatch.undo()
    if step == "note_removal" and not after:
        assert (await yard.workspaces.remove(record.id)).removed
    else:
        assert await yard.workspaces.listed() == []
        (leftover,) = await yard.workspaces.leftovers()
        assert leftover.id == record.id
        assert "interrupted" in leftover.because
        assert (await yard.workspaces.clear(record.id)).removed
    assert await yard.workspaces.leftovers() == []
    assert nothing_is_left(yard, record)
    assert record.branch not in yard.refs()
    yard.git("fsck", "--strict")


def cut_at(monkeypatch: pytest.MonkeyPatch, step: str, after: bool) -> None:
    """Make one step of removing raise, before or after it is done."""
    owners: list[object] = [
        inventory.WorkspaceRemover,
        WorkspaceRecords,
        RemovedWorkspaces,
        inventory,
    ]
    owner = next(each for each in owners if hasattr(each, step))
    real = getattr(owner, step)

    def broken(*arguments: object, **named: object) -> object:
        if after:
            real(*arguments, **named)
        raise Cut

    async def broken_later(*arguments: object) -> object:
        if after:
            await real(*arguments)
        raise Cut

    is_async = step == "_drop_unused_branch"
    monkeypatch.setattr(owner, step, broken_later if is_async else broken)


async def test_a_removal_that_something_hinders_goes_on_when_it_is_asked_again(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = (await yard.made()).record

    def hindered(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(inventory, "clear_away", hindered)
    with pytest.raises(NotPossibleNow, match="Permission denied"):
        await yard.workspaces.remove(record.id)
    monkeypatch.undo()
    assert (await yard.workspaces.clear(record.id)).removed
    assert nothing_is_left(yard, record)


@pytest.mark.sample(1)
@pytest.mark.parametrize("step", ["_move_away", "_drop_unused_branch", "remember", "_empty_moved"])
async def test_a_workspace_made_in_the_place_of_a_half_removed_one_is_not_removed_with_it(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    old = (await yard.made()).record
    yard.git("switch", "--quiet", "--detach")
    cut_at(monkeypatch, step, after=True)
    with pytest.raises(Cut):
        await yard.workspaces.remove(old.id)
    monkeypatch.undo()
    if step == "_move_away":
        yard.git("branch", "--delete", "--force", "podium/task")
    new = (await yard.made()).record
    assert (new.path, new.admin) == (old.path, old.admin)
    (Path(new.path) / "untracked.txt").write_text("x")
    assert (await yard.workspaces.clear(old.id)).removed
    assert (Path(new.path) / "untracked.txt").read_text() == "x"
    assert yard.git("rev-parse", new.branch) == new.base
    assert [each.record.id for each in await yard.workspaces.listed()] == [new.id]
    yard.git("-C", new.path, "status")


async def test_an_unreadable_record_is_told_and_stays(yard: Yard) -> None:
    record = (await yard.made()).record
    (Path(record.private) / "record.json").write_text("{")
    (leftover,) = await yard.workspaces.leftovers()
    assert "is not a valid record" in leftover.because
    with pytest.raises(PodiumError, match="is not a valid record"):
        await yard.workspaces.clear(record.id)
    assert Path(record.path).exists()


async def test_an_empty_private_folder_is_a_leftover_that_goes(yard: Yard) -> None:
    name = "ws_" + "a" * 32
    (yard.state / "workspaces" / name).mkdir(parents=True)
    (leftover,) = await yard.workspaces.leftovers()
    assert "before anything was created" in leftover.because
    assert (await yard.workspaces.clear(name)).removed
    assert await yard.workspaces.leftovers() == []


async def test_the_branch_of_a_removed_workspace_is_told_when_the_task_comes_back(
    yard: Yard,
) -> None:
    workspace = await yard.made()
    agent_commits(workspace.record, "work.txt")
    await workspace.deliver()
    taken = WorkspaceSpec(task="other", repository=str(yard.repository), branch="podium/task")
    with pytest.raises(
        NotPossibleNow, match="to the workspace 'task'; name another branch with --branch"
    ):
        await yard.workspaces.create(taken)
    yard.git("merge", "--quiet", "podium/task")
    assert (await yard.workspaces.remove(workspace.record.id)).removed
    with pytest.raises(NotPossibleNow, match="a workspace that was removed on") as said:
        await yard.made()
    assert "git branch -d podium/task" in str(said.value)
    yard.git("branch", "-d", "podium/task")
    await yard.made()


async def test_repositories_side_by_side_can_have_tasks_of_one_name(yard: Yard) -> None:
    mine = await yard.made()
    sibling = Yard(yard.folder)
    sibling.repository = yard.folder / "sibling"
    sibling.build()
    theirs = await sibling.made()
    assert theirs.record.path == str(Path(mine.record.path).parent / "sibling-task")
    assert (await sibling.workspaces.remove(theirs.record.id)).removed
    assert Path(mine.record.path).is_dir()


async def test_a_folder_in_the_way_is_told_whose_it_is_and_never_to_be_deleted(yard: Yard) -> None:
    first = await yard.made()
    spec = WorkspaceSpec(task="task", repository=str(yard.repository), branch="other")
    with pytest.raises(NotPossibleNow, match="it belongs to the workspace 'task' of") as said:
        await yard.workspaces.create(spec)
    assert "podium workspaces gc task" in str(said.value)
    private = Path(first.record.private)
    (private / "record.json").rename(private / "creating.json")
    with pytest.raises(NotPossibleNow, match="run `podium workspaces gc` to remove it"):
        await yard.workspaces.create(spec)
    (Path(first.record.path).parent / "foreign").mkdir()
    with pytest.raises(NotPossibleNow, match="Podium did not create it"):
        await yard.made("foreign")
