"""A workspace that is gone is made again on its branch, and goes on as if it had never been away."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow, SetUpFailed
from podium.core.workspaces import SetupSpec, WorkspaceRecord, WorkspaceSpec, WorktreeSnapshot
from podium.git.records import CREATING, RECORD
from podium.git.snapshots import Snapshots
from podium.git.workspace_reset import WorkspaceReset
from podium.ports import Workspace
from tests.integration.workspaces.git_project import GitProject, agent_commits, agent_git, run_git
from tests.soaking import in_soak


@pytest.fixture
def git_project(tmp_path: Path) -> GitProject:
    return GitProject(tmp_path).build()


def spec(git_project: GitProject, record: WorkspaceRecord, **more: object) -> WorkspaceSpec:
    fields = {"task": record.task, "repository": str(git_project.repository), **more}
    return WorkspaceSpec.model_validate(fields)


async def delivered(git_project: GitProject) -> tuple[Workspace, str]:
    workspace = await git_project.made()
    head = agent_commits(workspace.record, "three.txt")
    await workspace.deliver()
    return workspace, head


async def goes_on(git_project: GitProject, workspace: Workspace, head: str) -> None:
    """It stands at the head, clean, and what is committed next comes back."""
    state = await workspace.state()
    assert (state.head, state.is_clean) == (head, True)
    assert await workspace.delivered() == head
    assert not await git_project.workspaces.missing(workspace.record.id)
    tip = agent_commits(workspace.record, "next.txt")
    assert (await workspace.deliver()).after == tip
    assert git_project.git("rev-parse", workspace.record.branch) == tip
    assert [entry.subject for entry in await workspace.history(workspace.record.base)][-1] == (
        "next.txt"
    )


async def test_with_its_folder_gone_it_is_made_in_the_same_place(git_project: GitProject) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record
    shutil.rmtree(record.path)
    assert record.path in await git_project.workspaces.missing(record.id)
    made, _ = await git_project.workspaces.rebuild(record, spec(git_project, record), head)
    assert (made.record.id, made.record.path) == (record.id, record.path)
    assert Path(record.path, "three.txt").read_text() == "work\n"
    await goes_on(git_project, await git_project.workspaces.open(record.id), head)


@pytest.mark.soak
async def test_commits_that_only_the_old_one_had_are_in_the_snapshot(
    git_project: GitProject,
) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record
    only = agent_commits(record, "four.txt")
    shutil.rmtree(record.path)
    made, kept = await git_project.workspaces.rebuild(record, spec(git_project, record), head)
    assert kept is not None
    assert git_project.git("rev-parse", f"{kept.commit}^1") == only
    await made.restore(kept)
    assert Path(made.record.path, "four.txt").exists()
    assert (await made.deliver()).after == only


async def test_where_nothing_was_delivered_it_starts_from_the_base(git_project: GitProject) -> None:
    workspace = await git_project.made()
    record = workspace.record
    shutil.rmtree(record.path)
    made, _ = await git_project.workspaces.rebuild(record, spec(git_project, record), record.base)
    await goes_on(git_project, made, record.base)


@pytest.mark.soak
async def test_a_branch_that_somebody_deleted_is_made_again_where_its_commit_is_there(
    git_project: GitProject,
) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record
    shutil.rmtree(record.path)
    git_project.git("update-ref", "-d", record.branch)
    made, _ = await git_project.workspaces.rebuild(record, spec(git_project, record), head)
    await goes_on(git_project, made, head)


def moved(
    git_project: GitProject, record: WorkspaceRecord, start: str, message: str = "elsewhere"
) -> str:
    """Somebody else puts a commit of his own on the branch."""
    other = git_project.git("commit-tree", f"{start}^{{tree}}", "-p", start, "-m", message)
    git_project.git("update-ref", record.branch, other)
    return other


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("start", "known"),
    [("main", True), ("its branch", False), in_soak("main", False), in_soak("its branch", True)],
)
async def test_branch_moved_by_somebody_else_stays_and_a_person_is_shown_what_to_do(
    git_project: GitProject, start: str, known: bool
) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record
    other = moved(git_project, record, record.branch if start == "its branch" else start)
    shutil.rmtree(record.path)
    if not known:
        shutil.rmtree(record.private)
        git_project.git("worktree", "prune")
    for _ in range(2):
        with pytest.raises(NotPossibleNow, match=f"git update-ref {record.branch} {head}"):
            await git_project.workspaces.rebuild(record, spec(git_project, record), head)
        assert git_project.git("rev-parse", record.branch) == other
    git_project.git("update-ref", record.branch, head)
    made, _ = await git_project.workspaces.rebuild(record, spec(git_project, record), head)
    await goes_on(git_project, made, head)


async def test_what_the_run_itself_put_there_on_another_host_is_kept_before_it_is_moved(
    git_project: GitProject,
) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record.model_copy(update={"run_id": "run_1"})
    shutil.rmtree(record.path)
    shutil.rmtree(record.private)
    git_project.git("worktree", "prune")
    other = moved(git_project, record, "main", "Evidence\n\nPodium-Run: run_1\n")
    made, _ = await git_project.workspaces.rebuild(record, spec(git_project, record), head)
    assert await made.delivered() == head
    kept = [
        ref for ref in git_project.refs() if ref.startswith(f"refs/podium/snapshots/{record.id}/")
    ]
    assert any(git_project.git("merge-base", other, ref) == other for ref in kept)


async def test_repository_without_the_commit_is_reported_and_nothing_is_made(
    git_project: GitProject,
) -> None:
    workspace, head = await delivered(git_project)
    other = GitProject(git_project.folder / "elsewhere")
    other.folder.mkdir()
    words = ("clone", "--quiet", "--single-branch", git_project.repository.as_uri())
    run_git(*words, str(other.repository), cwd=other.folder)
    before = other.refs()
    with pytest.raises(NotPossibleNow, match=head[:12]):
        await other.workspaces.rebuild(workspace.record, spec(other, workspace.record), head)
    assert other.refs() == before
    assert await other.workspaces.leftovers() == []
    assert not (other.folder / ".worktrees").exists()


@pytest.mark.soak
async def test_a_set_up_that_fails_leaves_the_branch_and_can_be_asked_again(
    git_project: GitProject,
) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record
    shutil.rmtree(record.path)
    broken = spec(git_project, record, set_up=SetupSpec(after_create=(("/bin/false",),)))
    with pytest.raises(SetUpFailed):
        await git_project.workspaces.rebuild(record, broken, head)
    assert git_project.git("rev-parse", record.branch) == head
    assert await git_project.workspaces.missing(record.id)
    made, _ = await git_project.workspaces.rebuild(record, spec(git_project, record), head)
    await goes_on(git_project, made, head)


async def test_one_whose_making_was_killed_is_made_all_the_same(git_project: GitProject) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record
    # As a kill right before its end leaves it.
    Path(record.private, RECORD).rename(Path(record.private, CREATING))
    assert await git_project.workspaces.missing(record.id)
    made, kept = await git_project.workspaces.rebuild(record, spec(git_project, record), head)
    assert kept is None
    await goes_on(git_project, made, head)


async def test_the_set_up_is_done_anew(git_project: GitProject) -> None:
    (git_project.repository / "local.log").write_text("mine\n")
    workspace, head = await delivered(git_project)
    record = workspace.record
    shutil.rmtree(record.path)
    wanted = spec(git_project, record, set_up=SetupSpec(copy_files=("local.log",), ports=("PORT",)))
    made, _ = await git_project.workspaces.rebuild(record, wanted, head)
    assert Path(made.record.path, "local.log").read_text() == "mine\n"
    assert made.record.ports["PORT"]


@pytest.mark.soak
async def test_one_that_was_tidied_away_comes_back_and_is_no_longer_listed_as_removed(
    git_project: GitProject,
) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record
    git_project.git("merge", "--quiet", "--ff-only", record.branch)
    assert (await git_project.workspaces.remove(record.id)).removed
    made, _ = await git_project.workspaces.rebuild(record, spec(git_project, record), head)
    assert await git_project.workspaces.removed() == []
    await goes_on(git_project, made, head)


async def test_going_back_moves_branch_and_worktree_and_keeps_where_they_were(
    git_project: GitProject,
) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record
    later = agent_commits(record, "four.txt")
    await workspace.deliver()
    only = agent_commits(record, "five.txt")
    kept = await workspace.stand_at(head, "a second try")
    assert kept is not None
    assert kept.why == "a second try"
    assert git_project.git("merge-base", later, kept.ref) == later
    assert only in git_project.git("rev-list", "--all").split()
    assert not Path(record.path, "four.txt").exists()
    assert agent_git(record, "status", "--porcelain") == ""
    await goes_on(git_project, workspace, head)


async def test_what_somebody_commits_while_the_branch_goes_back_stays_on_it(
    git_project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, head = await delivered(git_project)
    agent_commits(workspace.record, "four.txt")
    await workspace.deliver()
    keep, made = Snapshots.keep, []

    async def meanwhile(self: Snapshots, record: WorkspaceRecord, *words: str) -> WorktreeSnapshot:
        made.append(moved(git_project, record, record.branch))
        return await keep(self, record, *words)

    # Patched: no other place is between the look at the branch and its move.
    monkeypatch.setattr(Snapshots, "keep", meanwhile)
    with pytest.raises(NotPossibleNow, match="try again"):
        await workspace.stand_at(head, "a second try")
    assert git_project.git("rev-parse", workspace.record.branch) == made[0]


@pytest.mark.soak
async def test_going_back_that_was_cut_off_is_ended_when_it_is_asked_again(
    git_project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, head = await delivered(git_project)
    agent_commits(workspace.record, "four.txt")
    await workspace.deliver()

    async def killed(*_: object) -> list[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(WorkspaceReset, "reset", killed)
        with pytest.raises(KeyboardInterrupt):
            await workspace.stand_at(head, "a second try")
    again = await git_project.workspaces.open(workspace.record.id)
    await again.stand_at(head, "a second try")
    await goes_on(git_project, again, head)


@pytest.mark.soak
async def test_going_back_can_leave_commits_that_are_yet_to_be_delivered(
    git_project: GitProject,
) -> None:
    workspace, head = await delivered(git_project)
    tip = agent_commits(workspace.record, "four.txt")
    await workspace.deliver()
    assert await workspace.holds(head)
    await workspace.stand_at(head, "a second try", tip=tip)
    assert git_project.git("rev-parse", workspace.record.branch) == head
    assert (await workspace.state()).head == tip
    assert (await workspace.deliver()).commits == (tip,)


@pytest.mark.soak
async def test_one_that_was_left_behind_goes_forward_and_loses_nothing(
    git_project: GitProject,
) -> None:
    workspace, head = await delivered(git_project)
    record = workspace.record
    later = git_project.git("commit-tree", "-p", head, "-m", "elsewhere", f"{head}^{{tree}}")
    assert not await workspace.holds(later)
    assert await workspace.stand_at(later, "it went on elsewhere") is None
    await goes_on(git_project, workspace, later)
    assert await workspace.holds(head)
    assert git_project.git("merge-base", head, record.branch) == head
