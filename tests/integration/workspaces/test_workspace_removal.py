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
from tests.integration.workspaces.git_project import GitProject, agent_commits
from tests.soaking import in_soak


@pytest.fixture
def git_project(tmp_path: Path) -> GitProject:
    return GitProject(tmp_path / "yard").build()


def nothing_is_left(git_project: GitProject, record: WorkspaceRecord) -> bool:
    entries = git_project.repository / ".git" / "worktrees"
    places = (Path(record.path), taken_away(record), Path(record.private), entries / record.admin)
    odd = list((git_project.repository / ".git").glob("podium-*"))
    return not odd and not any(os.path.lexists(place) for place in places)


async def test_fetched_bases_go_with_the_last_workspace_that_has_them(
    git_project: GitProject,
) -> None:
    tree = git_project.git("rev-parse", "main^{tree}")
    shared, own, loose = (
        git_project.git("commit-tree", "-p", "main", "-m", name, tree) for name in ("1", "2", "3")
    )
    for commit in (shared, own, loose):
        git_project.git("update-ref", f"refs/podium/bases/{commit}", commit)
    first, second = (
        (await git_project.made("first")).record,
        (await git_project.made("second")).record,
    )
    for record, commit in ((first, shared), (first, own), (second, shared)):
        note_merged_base(record, commit)

    def bases() -> set[str]:
        return {commit for name, commit in git_project.refs().items() if "/bases/" in name}

    assert (await git_project.workspaces.remove(first.id)).removed
    assert bases() == {shared, loose}
    assert (await git_project.workspaces.remove(second.id)).removed
    assert bases() == set()


async def test_an_unchanged_workspace_goes_with_its_unused_branch_and_leaves_no_snapshot(
    git_project: GitProject,
) -> None:
    record = (await git_project.made()).record
    before = git_project.refs()
    removal = await git_project.workspaces.remove(record.id)
    assert removal == WorkspaceRemoval(
        id=record.id,
        task="task",
        removed=True,
        because="it has no changes",
        kept=WorkLocation.UNCHANGED,
        bytes=removal.bytes,
    )
    assert nothing_is_left(git_project, record)
    assert git_project.refs() == {name: at for name, at in before.items() if name != record.branch}
    assert not (git_project.folder / ".worktrees").exists()
    assert await git_project.workspaces.listed() == []
    assert git_project.git("worktree", "list").count("\n") == 0


@pytest.mark.soak
async def test_merged_work_is_snapshotted_and_its_branch_stays(git_project: GitProject) -> None:
    workspace = await git_project.made()
    amended = agent_commits(workspace.record, "work.txt")
    await workspace.deliver()
    tip = git_project.git("rev-parse", "podium/task")
    git_project.git("merge", "--quiet", "podium/task")
    removal = await git_project.workspaces.remove(workspace.record.id)
    assert removal.removed
    assert removal.snapshot is not None
    assert git_project.git("rev-parse", "podium/task") == tip == amended
    assert git_project.git("show", f"{removal.snapshot.commit}:work.txt") == "work"
    assert nothing_is_left(git_project, workspace.record)


async def test_work_that_is_nowhere_else_stays_as_it_is(git_project: GitProject) -> None:
    record = (await git_project.made()).record
    (Path(record.path) / "untracked.txt").write_text("x")
    before = git_project.refs()
    removal = await git_project.workspaces.remove(record.id)
    assert not removal.removed
    assert removal.kept is WorkLocation.UNKNOWN
    assert "untracked.txt" in removal.because
    assert (Path(record.path) / "untracked.txt").read_text() == "x"
    assert git_project.refs() == before


async def test_a_workspace_in_use_stays_as_it_is(git_project: GitProject) -> None:
    workspace = await git_project.made()
    turn = await workspace.begin_turn()
    removal = await git_project.workspaces.remove(workspace.record.id)
    assert not removal.removed
    assert removal.kept is WorkLocation.IN_USE
    await workspace.end_turn(turn)
    assert (await git_project.workspaces.remove(workspace.record.id)).removed


async def test_a_branch_that_the_user_has_checked_out_since_stays(git_project: GitProject) -> None:
    record = (await git_project.made()).record
    git_project.git("checkout", "--quiet", "--ignore-other-worktrees", "podium/task")
    assert (await git_project.workspaces.remove(record.id)).removed
    assert git_project.git("symbolic-ref", "HEAD") == record.branch
    git_project.git("status")


async def test_other_worktrees_and_workspaces_are_not_touched(git_project: GitProject) -> None:
    git_project.git("worktree", "add", "--quiet", str(git_project.folder / "mine"))
    first, second = (
        (await git_project.made("first")).record,
        (await git_project.made("second")).record,
    )
    assert (await git_project.workspaces.remove(first.id)).removed
    assert [row.record.id for row in await git_project.workspaces.listed()] == [second.id]
    assert len(git_project.git("worktree", "list").splitlines()) == 3
    git_project.git("-C", second.path, "status")


async def test_what_an_agent_left_in_odd_shapes_goes_too(git_project: GitProject) -> None:
    workspace = await git_project.made()
    worktree = Path(workspace.record.path)
    (worktree / "deep" / "er").mkdir(parents=True)
    (worktree / "deep" / "er" / "build.log").write_text("x")
    (worktree / "deep").chmod(0o500)
    (worktree / "out.log").symlink_to(git_project.repository)
    assert (await git_project.workspaces.remove(workspace.record.id)).removed
    assert nothing_is_left(git_project, workspace.record)
    assert (git_project.repository / "one.txt").exists()


async def test_a_folder_that_somebody_made_in_its_place_is_left_alone(
    git_project: GitProject,
) -> None:
    record = (await git_project.made()).record
    shutil.rmtree(record.path)
    Path(record.path).mkdir()
    (Path(record.path) / "mine.txt").write_text("mine")
    assert not (await git_project.workspaces.remove(record.id)).removed
    assert (Path(record.path) / "mine.txt").read_text() == "mine"


async def test_an_unknown_id_is_an_error(git_project: GitProject) -> None:
    for name in ("ws_" + "0" * 32, "../..", ""):
        with pytest.raises(UnknownId):
            await git_project.workspaces.remove(name)
        with pytest.raises(UnknownId):
            await git_project.workspaces.clear(name)


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
    git_project: GitProject, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    record = (await git_project.made()).record
    cut_at(monkeypatch, step, after)
    with pytest.raises(Cut):
        await git_project.workspaces.remove(record.id)
    monkeypatch.undo()
    if step == "note_removal" and not after:
        assert (await git_project.workspaces.remove(record.id)).removed
    else:
        assert await git_project.workspaces.listed() == []
        (leftover,) = await git_project.workspaces.leftovers()
        assert leftover.id == record.id
        assert "interrupted" in leftover.because
        assert (await git_project.workspaces.clear(record.id)).removed
    assert await git_project.workspaces.leftovers() == []
    assert nothing_is_left(git_project, record)
    assert record.branch not in git_project.refs()
    git_project.git("fsck", "--strict")


def cut_at(monkeypatch: pytest.MonkeyPatch, step: str, after: bool) -> None:
    """Make one step of removing raise, before or after it is done."""
    owners: list[object] = [
        inventory.WorkspaceRemover,
        WorkspaceRecords,
        RemovedWorkspaces,
        inventory,
    ]
    owner = next(item for item in owners if hasattr(item, step))
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
    git_project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = (await git_project.made()).record

    def hindered(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(inventory, "clear_away", hindered)
    with pytest.raises(NotPossibleNow, match="Permission denied"):
        await git_project.workspaces.remove(record.id)
    monkeypatch.undo()
    assert (await git_project.workspaces.clear(record.id)).removed
    assert nothing_is_left(git_project, record)


@pytest.mark.sample(1)
@pytest.mark.parametrize("step", ["_move_away", "_drop_unused_branch", "remember", "_empty_moved"])
async def test_a_workspace_made_in_the_place_of_a_half_removed_one_is_not_removed_with_it(
    git_project: GitProject, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    old = (await git_project.made()).record
    git_project.git("switch", "--quiet", "--detach")
    cut_at(monkeypatch, step, after=True)
    with pytest.raises(Cut):
        await git_project.workspaces.remove(old.id)
    monkeypatch.undo()
    if step == "_move_away":
        git_project.git("branch", "--delete", "--force", "podium/task")
    new = (await git_project.made()).record
    assert (new.path, new.admin) == (old.path, old.admin)
    (Path(new.path) / "untracked.txt").write_text("x")
    assert (await git_project.workspaces.clear(old.id)).removed
    assert (Path(new.path) / "untracked.txt").read_text() == "x"
    assert git_project.git("rev-parse", new.branch) == new.base
    assert [row.record.id for row in await git_project.workspaces.listed()] == [new.id]
    git_project.git("-C", new.path, "status")


async def test_unreadable_record_is_reported_and_stays(git_project: GitProject) -> None:
    record = (await git_project.made()).record
    (Path(record.private) / "record.json").write_text("{")
    (leftover,) = await git_project.workspaces.leftovers()
    assert "is not a valid record" in leftover.because
    with pytest.raises(PodiumError, match="is not a valid record"):
        await git_project.workspaces.clear(record.id)
    assert Path(record.path).exists()


async def test_an_empty_private_folder_is_a_leftover_that_goes(git_project: GitProject) -> None:
    name = "ws_" + "a" * 32
    (git_project.state / "workspaces" / name).mkdir(parents=True)
    (leftover,) = await git_project.workspaces.leftovers()
    assert "before anything was created" in leftover.because
    assert (await git_project.workspaces.clear(name)).removed
    assert await git_project.workspaces.leftovers() == []


async def test_branch_of_a_removed_workspace_is_reported_when_the_task_returns(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt")
    await workspace.deliver()
    taken = WorkspaceSpec(
        task="other", repository=str(git_project.repository), branch="podium/task"
    )
    with pytest.raises(
        NotPossibleNow, match="to the workspace 'task'; name another branch with --branch"
    ):
        await git_project.workspaces.create(taken)
    git_project.git("merge", "--quiet", "podium/task")
    assert (await git_project.workspaces.remove(workspace.record.id)).removed
    with pytest.raises(NotPossibleNow, match="a workspace that was removed on") as error:
        await git_project.made()
    assert "git branch -d podium/task" in str(error.value)
    git_project.git("branch", "-d", "podium/task")
    await git_project.made()


async def test_repositories_side_by_side_can_have_tasks_of_one_name(
    git_project: GitProject,
) -> None:
    mine = await git_project.made()
    sibling = GitProject(git_project.folder)
    sibling.repository = git_project.folder / "sibling"
    sibling.build()
    theirs = await sibling.made()
    assert theirs.record.path == str(Path(mine.record.path).parent / "sibling-task")
    assert (await sibling.workspaces.remove(theirs.record.id)).removed
    assert Path(mine.record.path).is_dir()


async def test_folder_in_the_way_is_reported_with_its_owner_and_never_to_be_deleted(
    git_project: GitProject,
) -> None:
    first = await git_project.made()
    spec = WorkspaceSpec(task="task", repository=str(git_project.repository), branch="other")
    with pytest.raises(NotPossibleNow, match="it belongs to the workspace 'task' of") as error:
        await git_project.workspaces.create(spec)
    assert "podium workspaces gc task" in str(error.value)
    private = Path(first.record.private)
    (private / "record.json").rename(private / "creating.json")
    with pytest.raises(NotPossibleNow, match="run `podium workspaces gc` to remove it"):
        await git_project.workspaces.create(spec)
    (Path(first.record.path).parent / "foreign").mkdir()
    with pytest.raises(NotPossibleNow, match="Podium did not create it"):
        await git_project.made("foreign")
