"""A copy of a folder is private and whole, and nothing leads from it back to the original."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.folder_snapshots import WorkingFolder
from podium.git.folder_copy import FolderLimits
from tests.integration.workspaces.folder_harness import RUN, folder_in, git, grounds_in, image


def committed(root: Path) -> Path:
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


async def copied(place: Path, root: Path) -> Path:
    return Path((await grounds_in(place).prepare(RUN, str(root), as_copy=True)).root)


async def test_a_copy_is_private_whole_and_gone_afterwards(tmp_path: Path) -> None:
    ignored = {".gitignore": b"dep/\n.podium/\n", "dep/huge": bytes(2_000_000)}
    root = folder_in(tmp_path, {"a": b"1", "tool": b"x", ".podium/own": b"state", **ignored})
    (root / "tool").chmod(0o755)
    committed(root)
    before = image(root)
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root), as_copy=True)
    copy = Path(ground.root)
    assert ground.is_copy
    for private in (copy, copy.parent, tmp_path / "grounds"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert not (copy / ".podium").exists()
    assert (copy / "dep/huge").stat().st_size == 2_000_000
    assert stat.S_IMODE((copy / "tool").stat().st_mode) == 0o755
    assert git(copy, "status", "--porcelain") == ""
    (copy / "a").write_bytes(b"2")
    assert (await grounds.changes(ground, str(root))).paths == ("a",)
    assert image(root) == before
    assert await grounds.prepare(RUN, str(root), as_copy=True) == ground
    await grounds.leave(ground)
    await grounds.leave(ground)
    assert not copy.exists()
    assert list((tmp_path / "grounds/copies").iterdir()) == []


async def test_nothing_done_in_a_copy_reaches_the_original_or_its_remote(tmp_path: Path) -> None:
    root = committed(folder_in(tmp_path, {"a": b"1", "b/c": b"2"}))
    (root / "b/here").symlink_to(root / "a")
    git(root, "remote", "add", "origin", "https://example.invalid/x")
    git(root, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(root, "config", "core.worktree", str(root))
    before, own = image(root), image(root / ".git", never=())
    copy = await copied(tmp_path, root)
    assert git(copy, "remote") == ""
    assert len(git(copy, "worktree", "list").splitlines()) == 1
    (copy / "b/here").write_bytes(b"through the link")
    assert (copy / "a").read_bytes() == b"through the link"
    git(copy, "commit", "-qam", "two")
    git(copy, "clean", "-qffdx")
    git(copy, "reset", "-q", "--hard", "HEAD~1")
    assert image(root) == before
    assert image(root / ".git", never=()) == own


async def test_no_file_of_a_copy_is_one_of_the_original(tmp_path: Path) -> None:
    root = committed(folder_in(tmp_path, {"a": b"1"}))
    copy = await copied(tmp_path, root)
    theirs = {path.lstat().st_ino for path in root.rglob("*") if path.is_file()}
    mine = {path.lstat().st_ino for path in copy.rglob("*") if path.is_file()}
    assert len(mine) > 3
    assert not theirs & mine


async def test_the_copy_of_a_linked_worktree_has_a_repository_of_its_own(tmp_path: Path) -> None:
    main = committed(folder_in(tmp_path, {"a": b"1"}))
    linked = tmp_path / "linked"
    git(main, "worktree", "add", "-q", "-b", "side", str(linked))
    (linked / "a").write_bytes(b"2")
    refs = git(main, "for-each-ref")
    copy = await copied(tmp_path, linked)
    assert git(copy, "status", "--porcelain") == "M a"
    assert git(copy, "branch", "--show-current") == "side"
    git(copy, "commit", "-qam", "two")
    assert git(main, "for-each-ref") == refs


async def test_a_repository_that_borrows_objects_by_a_relative_way_can_still_be_read(
    tmp_path: Path,
) -> None:
    lender = committed(folder_in(tmp_path, {"a": b"1"}))
    root = tmp_path / "borrower"
    git(tmp_path, "clone", "-q", "--shared", str(lender), str(root))
    (root / ".git/objects/info/alternates").write_text("../../../folder/.git/objects\n")
    assert git(root, "show", "HEAD:a") == "1"
    assert git(await copied(tmp_path, root), "show", "HEAD:a") == "1"


async def test_pointers_of_repositories_within_are_copied_only_where_they_stay_within(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    root = folder_in(tmp_path, {"away/a": b"1", "link/a": b"1", "near/a": b"1"})
    (root / "away/.git").write_text(f"gitdir: {other}/.git\n")
    (root / "near/.git").write_text("gitdir: ../.git/modules/near\n")
    (root / "link/.git").symlink_to(other / ".git")
    copy = await copied(tmp_path, root)
    assert os.listdir(copy / "away") == ["a"]
    assert os.listdir(copy / "link") == ["a"]
    assert sorted(os.listdir(copy / "near")) == [".git", "a"]


@pytest.mark.parametrize("limits", [FolderLimits(copied_files=3), FolderLimits(copied_bytes=10)])
async def test_a_folder_that_is_too_large_is_not_copied_and_nothing_is_left(
    tmp_path: Path, limits: FolderLimits
) -> None:
    root = folder_in(tmp_path, {f"{number}": b"four" for number in range(4)})
    grounds = grounds_in(tmp_path, limits)
    with pytest.raises(NotPossibleNow, match="more than"):
        await grounds.prepare(RUN, str(root), as_copy=True)
    assert list((tmp_path / "grounds/copies").iterdir()) == []


async def test_only_a_copy_of_its_own_is_ever_removed(tmp_path: Path) -> None:
    root = folder_in(tmp_path, {"a": b"1"})
    grounds = grounds_in(tmp_path)
    await grounds.leave(WorkingFolder(root=str(root)))
    with pytest.raises(BadInput, match="left unchanged"):
        await grounds.leave(WorkingFolder(root=str(root), is_copy=True))
    assert (root / "a").exists()


@pytest.mark.soak
async def test_tidying_removes_copies_of_ended_runs_and_keeps_what_is_recent(
    tmp_path: Path,
) -> None:
    root = folder_in(tmp_path, {"a": b"1"})
    grounds = grounds_in(tmp_path)
    ended = Path((await grounds.prepare("run_ended", str(root), as_copy=True)).root)
    going = Path((await grounds.prepare("run_going", str(root), as_copy=True)).root)
    runs = [f"run_{number:02}" for number in range(21)]
    for run in runs:
        await grounds.prepare(run, str(root))
    long_ago = datetime(2020, 1, 1, tzinfo=UTC).timestamp()
    for run in runs[1:]:
        os.utime(grounds.index_of(run), (long_ago, long_ago))
    await grounds.tidy(lambda run: run not in ("run_going", "run_01"))
    assert not ended.exists()
    assert going.exists()
    kept = [run for run in runs if await grounds.shadow.refs(run)]
    assert kept == runs
    os.utime(grounds.index_of("run_00"), (long_ago, long_ago))
    await grounds.tidy(lambda run: run not in ("run_going", "run_01"))
    kept = [run for run in runs if await grounds.shadow.refs(run)]
    assert kept == runs[1:]
