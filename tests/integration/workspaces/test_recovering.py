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
from tests.integration.workspaces.yard import Yard, agent_commits
from tests.soaking import in_soak


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "yard").build()


async def removed_with_work(yard: Yard) -> str:
    workspace = await yard.made()
    agent_commits(workspace.record, "work.txt")
    (Path(workspace.record.path) / "untracked.txt").write_text("x")
    await workspace.snapshot("test")
    assert (await yard.workspaces.remove(workspace.record.id)).removed
    return workspace.record.id


async def test_a_removed_workspace_comes_back_as_a_branch_with_everything(yard: Yard) -> None:
    gone = await removed_with_work(yard)
    made = await yard.workspaces.recover(gone, "again")
    assert yard.git("rev-parse", "again") == made.commit
    assert made.only_in_snapshot == ()
    assert yard.git("show", "again:untracked.txt") == "x"
    assert yard.git("show", "again:work.txt") == "work"
    assert "work.txt" in yard.git("log", "--format=%s", "again")
    yard.git("fsck", "--strict")


@pytest.mark.soak
async def test_the_newest_snapshot_of_a_living_workspace_is_taken(yard: Yard) -> None:
    workspace = await yard.made()
    for number in range(12):
        (Path(workspace.record.path) / "file").write_text(f"{number}")
        await workspace.snapshot(f"{number}")
    await yard.workspaces.recover(workspace.record.id, "again")
    assert yard.git("show", "again:file") == "11"


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
    yard: Yard, path: str, content: str, why: str, committed: bool
) -> None:
    yard.secrets_in = lambda text: ("token",) if "TOKEN" in text else ()
    workspace = await yard.made()
    if committed:
        agent_commits(workspace.record, path, content)
    else:
        (Path(workspace.record.path) / path).write_text(content)
    await workspace.snapshot("test")
    assert (await yard.workspaces.remove(workspace.record.id)).removed
    before = yard.refs()
    with pytest.raises(ImportRefused, match=why) as refused:
        await yard.workspaces.recover(workspace.record.id, "again")
    assert refused.value.exit_code == 4
    assert "git log --patch" in str(refused.value)
    assert yard.refs() == before


@pytest.mark.soak
async def test_guarded_files_that_came_back_with_an_approval_are_no_obstacle(yard: Yard) -> None:
    workspace = await yard.made()
    agent_commits(workspace.record, "podium.yaml", "checks: []\n")
    with pytest.raises(GuardedFilesChanged) as asked:
        await workspace.deliver()
    await workspace.deliver(asked.value.change.digest)
    agent_commits(workspace.record, "work.txt")
    await workspace.snapshot("test")
    assert (await yard.workspaces.remove(workspace.record.id)).removed
    await yard.workspaces.recover(workspace.record.id, "again")
    assert yard.git("show", "again:work.txt") == "work"


async def test_a_name_that_is_no_branch_is_refused(yard: Yard) -> None:
    gone = await removed_with_work(yard)
    before = yard.refs()
    for name in ("", "-x", "a..b", "a b", "@{-1}", "@", "a.lock", "refs/../x"):
        with pytest.raises(BadInput):
            await yard.workspaces.recover(gone, name)
        assert yard.refs() == before


async def test_a_branch_that_exists_is_never_moved(yard: Yard) -> None:
    gone = await removed_with_work(yard)
    before = yard.refs()
    for name in ("main", "main/below"):
        with pytest.raises(NotPossibleNow, match="--branch"):
            await yard.workspaces.recover(gone, name)
    assert yard.refs() == before


async def test_without_a_snapshot_there_is_nothing_to_recover(yard: Yard) -> None:
    record = (await yard.made()).record
    with pytest.raises(NotPossibleNow, match="no snapshot"):
        await yard.workspaces.recover(record.id, "again")
    with pytest.raises(UnknownId):
        await yard.workspaces.recover("ws_" + "0" * 32, "again")


@pytest.mark.soak
async def test_removed_workspaces_are_listed_while_they_have_snapshots(yard: Yard) -> None:
    unchanged = await yard.made("unchanged")
    await yard.workspaces.remove(unchanged.record.id)
    gone = await removed_with_work(yard)
    (removed,) = await yard.workspaces.removed()
    assert removed.record.id == gone
    assert len(removed.snapshots) == 1
    (yard.state / "workspaces" / "removed" / f"{'x' * 5}.json").write_text("{")
    assert len(await yard.workspaces.removed()) == 1


async def test_forgetting_drops_the_snapshots_of_a_removed_workspace_alone(yard: Yard) -> None:
    living = await yard.made("living")
    (Path(living.record.path) / "file").write_text("x")
    await living.snapshot("test")
    gone = await removed_with_work(yard)
    before = yard.refs()
    dropped = await yard.workspaces.forget(gone)
    refs = {snapshot.ref for snapshot in dropped}
    assert len(refs) == 1
    assert yard.refs() == {name: at for name, at in before.items() if name not in refs}
    assert await yard.workspaces.removed() == []
    with pytest.raises(NotPossibleNow, match="still exists"):
        await yard.workspaces.forget(living.record.id)
    with pytest.raises(UnknownId):
        await yard.workspaces.forget(gone)


async def test_a_repository_that_is_gone_is_no_error_when_looking(yard: Yard) -> None:
    gone = await removed_with_work(yard)
    yard.repository.rename(yard.folder / "moved")
    assert await yard.workspaces.removed() == []
    with pytest.raises(NotPossibleNow):
        await yard.workspaces.recover(gone, "again")


@pytest.mark.sample(1)
@pytest.mark.parametrize("merged", [False, True])
async def test_commits_of_a_workspace_whose_folder_somebody_removed_are_kept_too(
    yard: Yard, merged: bool
) -> None:
    workspace = await yard.made()
    commit = agent_commits(workspace.record, "work.txt")
    if merged:
        await workspace.deliver()
        yard.git("merge", "--quiet", "podium/task")
    shutil.rmtree(workspace.record.path)
    if not merged:
        assert not (await yard.workspaces.remove(workspace.record.id)).removed
        await (await yard.workspaces.open(workspace.record.id)).snapshot("test")
    assert (await yard.workspaces.remove(workspace.record.id)).removed
    await yard.workspaces.recover(workspace.record.id, "again")
    assert yard.git("merge-base", "again", commit) == commit
    assert yard.git("show", "again:work.txt") == "work"


async def test_a_recovered_branch_holds_no_ignored_and_no_copied_files(yard: Yard) -> None:
    (yard.repository / ".env").write_text("the user's secret")
    workspace = await yard.made(set_up=SetupSpec(copy_files=(".env",)))
    (Path(workspace.record.path) / "notes.log").write_text("ignored")
    (Path(workspace.record.path) / "new.txt").write_text("work")
    snapshot = await workspace.snapshot("test")
    made = await yard.workspaces.recover(workspace.record.id, "again")
    assert made.only_in_snapshot == (".env", "notes.log")
    assert yard.git("diff", "--name-only", "main", "again") == "new.txt"
    assert yard.git("show", f"{snapshot.ref}:notes.log") == "ignored"
    yard.git("switch", "--quiet", "again")
    yard.git("switch", "--quiet", "main")
    assert (yard.repository / ".env").read_text() == "the user's secret"
    assert ".env" not in yard.git("log", "--name-only", "--format=", "again")


async def test_a_recovered_branch_ends_lines_as_the_project_does(yard: Yard) -> None:
    (yard.repository / ".gitattributes").write_text("*.txt text eol=crlf\n")
    yard.git("add", "--all")
    yard.git("commit", "--quiet", "--message=attributes")
    workspace = await yard.made()
    (Path(workspace.record.path) / "new.txt").write_bytes(b"a\r\n")
    await workspace.snapshot("test")
    await yard.workspaces.recover(workspace.record.id, "again")
    assert yard.git("diff", "--name-only", "main", "again") == "new.txt"
    (listing,) = await yard.workspaces.listed()
    assert listing.kept is WorkLocation.SNAPSHOTTED


async def test_a_recovered_branch_is_the_agents_own_when_all_was_committed(yard: Yard) -> None:
    workspace = await yard.made()
    commit = agent_commits(workspace.record, "work.txt")
    await workspace.snapshot("test")
    assert (await yard.workspaces.recover(workspace.record.id, "again")).commit == commit
