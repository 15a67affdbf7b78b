"""Getting work back: from living workspaces and from those that are no more."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from podium.core.errors import (
    BadInput,
    GuardedFilesChanged,
    ImportRefused,
    NotPossibleNow,
    UnknownId,
)
from podium.core.workspaces import SetupSpec, WorkLocation
from tests.integration.workspaces.git_project import GitProject, agent_commits
from tests.soaking import in_soak


@pytest.fixture
def git_project(tmp_path: Path) -> GitProject:
    return GitProject(tmp_path / "yard").build()


async def removed_with_work(git_project: GitProject) -> str:
    workspace = await git_project.made()
    agent_commits(workspace.record, "work.txt")
    (Path(workspace.record.path) / "untracked.txt").write_text("x")
    await workspace.snapshot("test")
    assert (await git_project.workspaces.remove(workspace.record.id)).removed
    return workspace.record.id


async def test_a_removed_workspace_comes_back_as_a_branch_with_everything(
    git_project: GitProject,
) -> None:
    gone = await removed_with_work(git_project)
    made = await git_project.workspaces.recover(gone, "again")
    assert git_project.git("rev-parse", "again") == made.commit
    assert made.only_in_snapshot == ()
    assert git_project.git("show", "again:untracked.txt") == "x"
    assert git_project.git("show", "again:work.txt") == "work"
    assert "work.txt" in git_project.git("log", "--format=%s", "again")
    git_project.git("fsck", "--strict")


@pytest.mark.soak
async def test_the_newest_snapshot_of_a_living_workspace_is_taken(git_project: GitProject) -> None:
    workspace = await git_project.made()
    for number in range(12):
        (Path(workspace.record.path) / "file").write_text(f"{number}")
        await workspace.snapshot(f"{number}")
    await git_project.workspaces.recover(workspace.record.id, "again")
    assert git_project.git("show", "again:file") == "11"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("path", "content", "why", "committed"),
    [
        ("work.txt", "TOKEN\n", r"secret was committed: work\.txt:1", True),
        ("podium.yaml", "checks: []\n", r"change podium\.yaml .*git branch again", False),
        in_soak("work.txt", "TOKEN\n", r"secret was committed: work\.txt:1", False),
        in_soak("podium.yaml", "checks: []\n", r"change podium\.yaml .*git branch again", True),
    ],
)
async def test_no_branch_is_made_of_what_may_not_come_back(
    git_project: GitProject, path: str, content: str, why: str, committed: bool
) -> None:
    git_project.secrets_in = lambda text: ("token",) if "TOKEN" in text else ()
    workspace = await git_project.made()
    if committed:
        agent_commits(workspace.record, path, content)
    else:
        (Path(workspace.record.path) / path).write_text(content)
    await workspace.snapshot("test")
    assert (await git_project.workspaces.remove(workspace.record.id)).removed
    before = git_project.refs()
    with pytest.raises(ImportRefused, match=why) as refused:
        await git_project.workspaces.recover(workspace.record.id, "again")
    assert refused.value.exit_code == 4
    assert "git log --patch" in str(refused.value)
    assert git_project.refs() == before


@pytest.mark.soak
async def test_guarded_files_that_came_back_with_an_approval_are_no_obstacle(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "podium.yaml", "checks: []\n")
    with pytest.raises(GuardedFilesChanged) as asked:
        await workspace.deliver()
    await workspace.deliver(asked.value.change.digest)
    agent_commits(workspace.record, "work.txt")
    await workspace.snapshot("test")
    assert (await git_project.workspaces.remove(workspace.record.id)).removed
    await git_project.workspaces.recover(workspace.record.id, "again")
    assert git_project.git("show", "again:work.txt") == "work"


async def test_a_name_that_is_no_branch_is_refused(git_project: GitProject) -> None:
    gone = await removed_with_work(git_project)
    before = git_project.refs()
    for name in ("", "-x", "a..b", "a b", "@{-1}", "@", "a.lock", "refs/../x"):
        with pytest.raises(BadInput):
            await git_project.workspaces.recover(gone, name)
        assert git_project.refs() == before


async def test_a_branch_that_exists_is_never_moved(git_project: GitProject) -> None:
    gone = await removed_with_work(git_project)
    before = git_project.refs()
    for name in ("main", "main/below"):
        with pytest.raises(NotPossibleNow, match="--branch"):
            await git_project.workspaces.recover(gone, name)
    assert git_project.refs() == before


async def test_without_a_snapshot_there_is_nothing_to_recover(git_project: GitProject) -> None:
    record = (await git_project.made()).record
    with pytest.raises(NotPossibleNow, match="no snapshot"):
        await git_project.workspaces.recover(record.id, "again")
    with pytest.raises(UnknownId):
        await git_project.workspaces.recover("ws_" + "0" * 32, "again")


@pytest.mark.soak
async def test_removed_workspaces_are_listed_while_they_have_snapshots(
    git_project: GitProject,
) -> None:
    unchanged = await git_project.made("unchanged")
    await git_project.workspaces.remove(unchanged.record.id)
    gone = await removed_with_work(git_project)
    (removed,) = await git_project.workspaces.removed()
    assert removed.record.id == gone
    assert len(removed.snapshots) == 1
    (git_project.state / "workspaces" / "removed" / f"{'x' * 5}.json").write_text("{")
    assert len(await git_project.workspaces.removed()) == 1


async def test_forgetting_drops_the_snapshots_of_a_removed_workspace_alone(
    git_project: GitProject,
) -> None:
    living = await git_project.made("living")
    (Path(living.record.path) / "file").write_text("x")
    await living.snapshot("test")
    gone = await removed_with_work(git_project)
    before = git_project.refs()
    dropped = await git_project.workspaces.forget(gone)
    refs = {snapshot.ref for snapshot in dropped}
    assert len(refs) == 1
    assert git_project.refs() == {name: at for name, at in before.items() if name not in refs}
    assert await git_project.workspaces.removed() == []
    with pytest.raises(NotPossibleNow, match="still exists"):
        await git_project.workspaces.forget(living.record.id)
    with pytest.raises(UnknownId):
        await git_project.workspaces.forget(gone)


async def test_a_repository_that_is_gone_is_no_error_when_looking(git_project: GitProject) -> None:
    gone = await removed_with_work(git_project)
    git_project.repository.rename(git_project.folder / "moved")
    assert await git_project.workspaces.removed() == []
    with pytest.raises(NotPossibleNow):
        await git_project.workspaces.recover(gone, "again")


@pytest.mark.sample(1)
@pytest.mark.parametrize("merged", [False, True])
async def test_commits_of_a_workspace_whose_folder_somebody_removed_are_kept_too(
    git_project: GitProject, merged: bool
) -> None:
    workspace = await git_project.made()
    commit = agent_commits(workspace.record, "work.txt")
    if merged:
        await workspace.deliver()
        git_project.git("merge", "--quiet", "podium/task")
    shutil.rmtree(workspace.record.path)
    if not merged:
        assert not (await git_project.workspaces.remove(workspace.record.id)).removed
        await (await git_project.workspaces.open(workspace.record.id)).snapshot("test")
    assert (await git_project.workspaces.remove(workspace.record.id)).removed
    await git_project.workspaces.recover(workspace.record.id, "again")
    assert git_project.git("merge-base", "again", commit) == commit
    assert git_project.git("show", "again:work.txt") == "work"


async def test_a_recovered_branch_holds_no_ignored_and_no_copied_files(
    git_project: GitProject,
) -> None:
    (git_project.repository / ".env").write_text("the user's secret")
    workspace = await git_project.made(set_up=SetupSpec(copy_files=(".env",)))
    (Path(workspace.record.path) / "notes.log").write_text("ignored")
    (Path(workspace.record.path) / "new.txt").write_text("work")
    snapshot = await workspace.snapshot("test")
    made = await git_project.workspaces.recover(workspace.record.id, "again")
    assert made.only_in_snapshot == (".env", "notes.log")
    assert git_project.git("diff", "--name-only", "main", "again") == "new.txt"
    assert git_project.git("show", f"{snapshot.ref}:notes.log") == "ignored"
    git_project.git("switch", "--quiet", "again")
    git_project.git("switch", "--quiet", "main")
    assert (git_project.repository / ".env").read_text() == "the user's secret"
    assert ".env" not in git_project.git("log", "--name-only", "--format=", "again")


async def test_a_recovered_branch_ends_lines_as_the_project_does(git_project: GitProject) -> None:
    (git_project.repository / ".gitattributes").write_text("*.txt text eol=crlf\n")
    git_project.git("add", "--all")
    git_project.git("commit", "--quiet", "--message=attributes")
    workspace = await git_project.made()
    (Path(workspace.record.path) / "new.txt").write_bytes(b"a\r\n")
    await workspace.snapshot("test")
    await git_project.workspaces.recover(workspace.record.id, "again")
    assert git_project.git("diff", "--name-only", "main", "again") == "new.txt"
    (listing,) = await git_project.workspaces.listed()
    assert listing.kept is WorkLocation.SNAPSHOTTED


async def test_a_recovered_branch_is_the_agents_own_when_all_was_committed(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    commit = agent_commits(workspace.record, "work.txt")
    await workspace.snapshot("test")
    assert (await git_project.workspaces.recover(workspace.record.id, "again")).commit == commit
