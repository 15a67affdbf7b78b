"""Nothing that could be work is lost with a workspace because nobody counted it."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.workspaces import WorkLocation, WorkspaceListing, WorkspaceRecord
from podium.git import planted
from podium.git.snapshots import _read
from tests.integration.workspaces.workspace_harness import Place, needs_bwrap


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def _seen(place: Place, record: WorkspaceRecord) -> WorkspaceListing:
    return next(row for row in await place.workspaces.listed() if row.record.id == record.id)


@pytest.mark.sample(1)
@needs_bwrap()
@pytest.mark.parametrize("trace", ["logged", "dangling"])
async def test_a_commit_that_was_reset_away_is_not_unchanged(place: Place, trace: str) -> None:
    workspace = await place.make()
    forget = "rm -rf $(git rev-parse --git-common-dir)/logs $(git rev-parse --git-dir)/logs"
    lost = await place.works(
        workspace,
        "echo precious > p; git add p; git commit -qm precious; git rev-parse HEAD; "
        f"git reset -q --hard HEAD~1; {forget if trace == 'dangling' else ':'}",
    )
    found = await _seen(place, workspace.record)
    assert found.kept is WorkLocation.UNKNOWN
    assert "1 commit" in found.because
    assert not (await place.workspaces.remove(workspace.record.id)).removed
    taken = await workspace.snapshot("now")
    assert (await _seen(place, workspace.record)).kept is WorkLocation.SNAPSHOTTED
    assert (await place.workspaces.remove(workspace.record.id)).removed
    assert place.user("merge-base", lost, taken.commit) == lost


@pytest.mark.soak
@needs_bwrap()
async def test_an_amended_commit_keeps_merged_work_from_nothing(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace, "echo a > a; git add a; git commit -qm a; git commit -q --amend -m b"
    )
    await workspace.deliver()
    place.user("merge", "-q", "podium/t1")
    assert (await _seen(place, workspace.record)).kept is WorkLocation.MERGED
    assert (await place.workspaces.remove(workspace.record.id)).removed


_PLANT = """
mkdir ign; cd ign; git init -q .; echo precious > p; git add p
git -c user.name=a -c user.email=b@c commit -qm precious; rm p
"""


@needs_bwrap()
async def test_a_planted_repository_is_not_unchanged(place: Place) -> None:
    workspace = await place.make()
    (Path(workspace.record.git_dir) / "info/exclude").write_text("ign/\n")
    seen = await workspace.begin_turn()
    await place.works(workspace, _PLANT)
    await workspace.end_turn(seen)
    found = await _seen(place, workspace.record)
    assert found.kept is WorkLocation.UNKNOWN
    assert "moved out of the worktree" in found.because
    assert not (await place.workspaces.remove(workspace.record.id)).removed
    await workspace.snapshot("now")
    assert (await _seen(place, workspace.record)).kept is WorkLocation.SNAPSHOTTED
    assert (await place.workspaces.remove(workspace.record.id)).removed


@pytest.mark.soak
@needs_bwrap()
async def test_merged_work_stays_when_what_is_beside_it_cannot_be_kept(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted, "MAX_BYTES", 1000)
    workspace = await place.make()
    await place.works(workspace, f"echo a > a; git add a; git commit -qm a; {_PLANT}")
    await workspace.deliver()
    place.user("merge", "-q", "podium/t1")
    removal = await place.workspaces.remove(workspace.record.id)
    assert not removal.removed
    assert "planted" in removal.because
    assert Path(workspace.record.path).is_dir()


@needs_bwrap()
async def test_an_incomplete_snapshot_is_never_read_as_complete(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted, "MAX_BYTES", 1000)
    workspace = await place.make()
    worktree = Path(workspace.record.path)
    (worktree / ".gitignore").write_text("*.log\nign/\n")
    await place.works(workspace, _PLANT)
    (worktree / "podium-snapshot: x.log").write_bytes(b"x" * 3_000_000)
    taken = await workspace.snapshot("now")
    assert not taken.complete
    found = await _seen(place, workspace.record)
    assert found.snapshots == (taken,)
    assert found.kept is WorkLocation.UNKNOWN


@pytest.mark.parametrize("message", ["", "podium-snapshot: {", "podium-snapshot: []", "x"])
def test_what_is_no_snapshot_of_podiums_keeps_nothing(message: str) -> None:
    read = _read(f"refs/podium/snapshots/a/1 {'a' * 40} {'b' * 40}\n{message}")
    assert read is not None
    assert not read.complete
