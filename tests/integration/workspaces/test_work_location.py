"""Safety of the work in a workspace: every class on real repositories, and unknown where there is any doubt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from podium.core.errors import ImportRefused
from podium.core.workspaces import WorkLocation, WorkspaceListing, WorkspaceRecord
from tests.integration.workspaces.git_project import GitProject, agent_commits, agent_git


@pytest.fixture
def git_project(tmp_path: Path) -> GitProject:
    return GitProject(tmp_path / "yard").build()


async def seen(git_project: GitProject, record: WorkspaceRecord) -> WorkspaceListing:
    return next(row for row in await git_project.workspaces.listed() if row.record.id == record.id)


async def kept(git_project: GitProject, record: WorkspaceRecord) -> WorkLocation:
    return (await seen(git_project, record)).kept


async def test_a_fresh_workspace_is_unchanged_and_has_a_size(git_project: GitProject) -> None:
    record = (await git_project.made()).record
    listing = await seen(git_project, record)
    assert listing.kept is WorkLocation.UNCHANGED
    assert listing.bytes > 0
    assert listing.changed_at >= record.created_at


async def test_files_that_git_ignores_are_no_work(git_project: GitProject) -> None:
    record = (await git_project.made()).record
    (Path(record.path) / "build.log").write_text("made by a build")
    assert await kept(git_project, record) is WorkLocation.UNCHANGED


@pytest.mark.sample(3)
@pytest.mark.parametrize("change", ["untracked", "changed", "deleted", "mode", "staged", "link"])
async def test_anything_uncommitted_is_unknown_and_named(
    git_project: GitProject, change: str
) -> None:
    record = (await git_project.made()).record
    worktree = Path(record.path)
    match change:
        case "untracked":
            (worktree / "new.txt").write_text("x")
        case "changed":
            (worktree / "one.txt").write_text("x")
        case "deleted":
            (worktree / "one.txt").unlink()
        case "mode":
            (worktree / "one.txt").chmod(0o755)
        case "staged":
            (worktree / "new.txt").write_text("x")
            agent_git(record, "add", "new.txt")
        case "link":
            (worktree / "new.txt").symlink_to("one.txt")
    listing = await seen(git_project, record)
    assert listing.kept is WorkLocation.UNKNOWN
    assert "not committed" in listing.because
    assert "podium workspaces snapshot" in listing.because


async def test_a_commit_that_was_not_delivered_is_unknown(git_project: GitProject) -> None:
    record = (await git_project.made()).record
    agent_commits(record, "work.txt")
    listing = await seen(git_project, record)
    assert listing.kept is WorkLocation.UNKNOWN
    assert "1 commit neither merged nor pushed" in listing.because


async def test_a_delivered_commit_on_the_own_branch_alone_is_unknown(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt")
    await workspace.deliver()
    assert await kept(git_project, workspace.record) is WorkLocation.UNKNOWN


@pytest.mark.soak
async def test_a_commit_on_the_branch_of_another_workspace_is_not_merged(
    git_project: GitProject,
) -> None:
    first = await git_project.made("first")
    agent_commits(first.record, "work.txt")
    await first.deliver()
    second = await git_project.made("second")
    git_project.git("update-ref", second.record.branch, first.record.branch)
    assert await kept(git_project, first.record) is WorkLocation.UNKNOWN


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", ["--ff-only", "--no-ff"])
async def test_merged_work_is_merged(git_project: GitProject, how: str) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt")
    await workspace.deliver()
    git_project.git("merge", "--quiet", how, "podium/task")
    assert await kept(git_project, workspace.record) is WorkLocation.MERGED


@pytest.mark.soak
async def test_merged_work_with_something_new_beside_it_is_unknown(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt")
    await workspace.deliver()
    git_project.git("merge", "--quiet", "podium/task")
    (Path(workspace.record.path) / "more.txt").write_text("x")
    assert await kept(git_project, workspace.record) is WorkLocation.UNKNOWN
    (Path(workspace.record.path) / "more.txt").unlink()
    assert await kept(git_project, workspace.record) is WorkLocation.MERGED
    agent_commits(workspace.record, "more.txt")
    assert await kept(git_project, workspace.record) is WorkLocation.UNKNOWN


async def test_squashed_work_is_merged_when_one_commit_has_every_file_of_it(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt", "first\n")
    agent_commits(workspace.record, "work.txt", "second\n")
    (Path(workspace.record.path) / "one.txt").unlink()
    agent_commits(workspace.record, "more.txt")
    await workspace.deliver()
    git_project.git("merge", "--quiet", "--squash", "podium/task")
    git_project.git("commit", "--quiet", "--message=squashed")
    (git_project.repository / "work.txt").write_text("changed again later\n")
    git_project.git("commit", "--quiet", "--all", "--message=later")
    listing = await seen(git_project, workspace.record)
    assert listing.kept is WorkLocation.MERGED
    assert "the same files as this workspace" in listing.because


async def test_a_squash_that_changed_one_file_is_unknown(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt", "if x:\n  y\n")
    agent_commits(workspace.record, "more.txt")
    await workspace.deliver()
    git_project.git("merge", "--quiet", "--squash", "podium/task")
    # White space is what some ways of comparing patches leave out.
    (git_project.repository / "work.txt").write_text("if x:\n y\n")
    git_project.git("add", "--all")
    git_project.git("commit", "--quiet", "--message=squashed")
    assert await kept(git_project, workspace.record) is WorkLocation.UNKNOWN


async def test_pushed_work_is_pushed(git_project: GitProject) -> None:
    git_project.git("init", "--quiet", "--bare", str(git_project.folder / "remote.git"))
    git_project.git("remote", "add", "origin", str(git_project.folder / "remote.git"))
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt")
    await workspace.deliver()
    git_project.git("push", "--quiet", "origin", "podium/task")
    assert await kept(git_project, workspace.record) is WorkLocation.PUSHED


async def test_snapshotted_work_is_so_until_something_changes(git_project: GitProject) -> None:
    workspace = await git_project.made()
    worktree = Path(workspace.record.path)
    agent_commits(workspace.record, "work.txt")
    (worktree / "untracked.txt").write_text("x")
    snapshot = await workspace.snapshot("test")
    listing = await seen(git_project, workspace.record)
    assert listing.kept is WorkLocation.SNAPSHOTTED
    assert listing.snapshots == (snapshot,)
    assert snapshot.ref in listing.because
    (worktree / "untracked.txt").write_text("y")
    assert await kept(git_project, workspace.record) is WorkLocation.UNKNOWN
    (worktree / "untracked.txt").write_text("x")
    (worktree / "one.txt").unlink()
    assert await kept(git_project, workspace.record) is WorkLocation.SNAPSHOTTED
    agent_commits(workspace.record, "more.txt")
    assert await kept(git_project, workspace.record) is WorkLocation.UNKNOWN


async def test_a_snapshot_whose_ref_is_gone_keeps_nothing(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt")
    snapshot = await workspace.snapshot("test")
    git_project.git("update-ref", "-d", snapshot.ref)
    assert await kept(git_project, workspace.record) is WorkLocation.UNKNOWN


@pytest.mark.sample(1)
@pytest.mark.parametrize("where", ["branch", "stash", "detached"])
async def test_what_the_agent_has_on_another_branch_or_stashed_counts(
    git_project: GitProject, where: str
) -> None:
    record = (await git_project.made()).record
    (Path(record.path) / "one.txt").write_text("elsewhere\n")
    if where == "stash":
        agent_git(record, "stash")
    else:
        agent_git(
            record, "checkout", "--quiet", *(["-b", "side"] if where == "branch" else ["--detach"])
        )
        agent_git(record, "commit", "--quiet", "--all", "--message=aside")
        if where == "branch":
            agent_git(record, "checkout", "--quiet", "podium/task")
    listing = await seen(git_project, record)
    assert listing.kept is WorkLocation.UNKNOWN
    assert "neither merged nor pushed" in listing.because


async def test_a_workspace_that_somebody_works_in_is_in_use(git_project: GitProject) -> None:
    workspace = await git_project.made()
    turn = await workspace.begin_turn()
    assert await kept(git_project, workspace.record) is WorkLocation.IN_USE
    await workspace.end_turn(turn)
    assert await kept(git_project, workspace.record) is WorkLocation.UNCHANGED


async def test_what_cannot_be_looked_into_is_unknown_and_hides_no_other(
    git_project: GitProject,
) -> None:
    broken = (await git_project.made("broken")).record
    fine = (await git_project.made("fine")).record
    (Path(broken.path) / ".git").write_text("gitdir: /elsewhere\n")
    assert await kept(git_project, broken) is WorkLocation.UNKNOWN
    assert await kept(git_project, fine) is WorkLocation.UNCHANGED


async def test_a_head_in_capitals_is_the_commit_that_it_names(git_project: GitProject) -> None:
    record = (await git_project.made()).record
    commit = agent_commits(record, "new.txt")
    head = Path(record.private) / "git" / "worktrees" / record.admin / "HEAD"
    head.write_text(f"{commit.upper()}\n")
    listing = await seen(git_project, record)
    assert listing.kept is WorkLocation.UNKNOWN
    assert "cannot be checked" not in listing.because


async def test_a_tree_with_an_odd_mode_is_refused_and_hides_no_other(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made("odd")
    record, fine = workspace.record, (await git_project.made("fine")).record
    blob = agent_git(record, "hash-object", "-w", "one.txt")
    odd = Path(record.private) / "odd"
    odd.write_bytes(b"1000000000000100644 f\0" + bytes.fromhex(blob))
    tree = agent_git(record, "hash-object", "-t", "tree", "--literally", "-w", str(odd))
    agent_git(
        record,
        "update-ref",
        "HEAD",
        agent_git(record, "commit-tree", "-p", "HEAD", "-m", "x", tree),
    )
    assert await kept(git_project, record) is WorkLocation.UNKNOWN
    assert await kept(git_project, fine) is WorkLocation.UNCHANGED
    with pytest.raises(ImportRefused):
        await workspace.deliver()


async def test_a_ref_that_names_what_never_was_is_no_work(git_project: GitProject) -> None:
    record = (await git_project.made()).record
    private = Path(record.private) / "git" / "refs" / "heads"
    (private / "odd").write_text("1" * 40 + "\n")
    (private / "odder").write_text("ref: refs/heads/odder\n")
    assert await kept(git_project, record) is WorkLocation.UNCHANGED


async def test_a_worktree_that_is_gone_leaves_its_commits_to_be_judged(
    git_project: GitProject,
) -> None:
    empty = (await git_project.made("empty")).record
    full = (await git_project.made("full")).record
    agent_commits(full, "work.txt")
    shutil.rmtree(empty.path)
    shutil.rmtree(full.path)
    assert await kept(git_project, empty) is WorkLocation.UNCHANGED
    assert await kept(git_project, full) is WorkLocation.UNKNOWN


async def test_a_repository_that_is_gone_makes_its_workspaces_unknown(
    git_project: GitProject,
) -> None:
    record = (await git_project.made()).record
    git_project.repository.rename(git_project.folder / "moved")
    listing = await seen(git_project, record)
    assert listing.kept is WorkLocation.UNKNOWN
    assert "is gone" in listing.because


async def test_looking_changes_neither_refs_nor_files(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt")
    (Path(workspace.record.path) / "untracked.txt").write_text("x")
    before = git_project.refs()
    names = sorted(path.name for path in Path(workspace.record.private).iterdir())
    await git_project.workspaces.listed()
    assert git_project.refs() == before
    assert sorted(path.name for path in Path(workspace.record.private).iterdir()) == names


@pytest.mark.soak
async def test_commits_that_another_workspace_delivered_before_are_no_work_of_this_one(
    git_project: GitProject,
) -> None:
    first = await git_project.made("first")
    agent_commits(first.record, "work.txt")
    await first.deliver()
    second = await git_project.made("second")
    assert await kept(git_project, second.record) is WorkLocation.UNCHANGED
    git_project.git("update-ref", "-d", first.record.branch)
    assert await kept(git_project, second.record) is WorkLocation.UNCHANGED
    (Path(second.record.path) / "new.txt").write_text("x")
    assert await kept(git_project, second.record) is WorkLocation.UNKNOWN
    await second.snapshot("test")
    assert await kept(git_project, second.record) is WorkLocation.SNAPSHOTTED


@pytest.mark.soak
async def test_a_branch_of_the_agents_own_on_top_of_another_workspaces_work_is_work(
    git_project: GitProject,
) -> None:
    first = await git_project.made("first")
    agent_commits(first.record, "work.txt")
    await first.deliver()
    second = await git_project.made("second")
    agent_git(second.record, "checkout", "--quiet", "-b", "more", "podium/first")
    agent_commits(second.record, "more.txt")
    agent_git(second.record, "checkout", "--quiet", "podium/second")
    assert "1 commit neither" in (await seen(git_project, second.record)).because
    await second.snapshot("test")
    assert await kept(git_project, second.record) is WorkLocation.SNAPSHOTTED


async def test_large_ignored_files_are_reported_and_keep_nothing_from_being_safe(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    (Path(workspace.record.path) / "new.txt").write_text("x")
    (Path(workspace.record.path) / "big.log").write_bytes(bytes(2_000_000))
    snapshot = await workspace.snapshot("test")
    assert snapshot.left_out == ("ignored: 'big.log' (2.0 MB)",)
    listing = await seen(git_project, workspace.record)
    assert listing.kept is WorkLocation.SNAPSHOTTED
    assert "everything except" in listing.because
    assert "big.log" in listing.because
    assert listing.snapshots == (snapshot,)
