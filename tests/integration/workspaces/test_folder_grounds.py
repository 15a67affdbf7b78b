"""Folders that playbooks work in are kept byte for byte, compared, and put back."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow
from podium.git import FolderRestorer, GitWorkingFolders
from podium.git.folder_copy import FolderLimits
from podium.git.git_command import Git
from tests.integration.workspaces.folder_harness import (
    RUN,
    DyingLauncher,
    folder_in,
    git,
    grounds_in,
    image,
    restored,
)
from tests.soaking import in_soak

HOSTILE = "#!/bin/sh\ntouch {}\ncat\n"


async def test_whatever_a_run_changed_comes_back_byte_for_byte(tmp_path: Path) -> None:
    root = folder_in(
        tmp_path, {"a.txt": b"one\r\ntwo\n", "deep/er/b.bin": b"\0\xff" * 50, "tool": b"x"}
    )
    odd = [b"new\nline", b'quo"te\\', "ünïcode".encode(), b"not-\xff-text", b" lead", b"-dash"]
    for name in (*odd, b"git~1", b".GITMODULES"):
        Path(os.fsdecode(os.path.join(os.fsencode(root), name))).write_bytes(name)
    (root / "tool").chmod(0o751)
    (root / "secret").write_bytes(b"s")
    (root / "secret").chmod(0o600)
    (root / "empty/inner").mkdir(parents=True)
    (root / "empty").chmod(0o750)
    (root / "in").symlink_to("./deep//er")
    (root / "out").symlink_to("/nowhere/at/all")
    before = image(root)
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    assert ground.snapshot
    assert not ground.is_copy

    for name in odd:
        os.unlink(os.path.join(os.fsencode(root), name))
    (root / "a.txt").write_bytes(b"one\ntwo\n")
    (root / "tool").chmod(0o700)
    (root / "secret").chmod(0o644)
    (root / "empty/inner").rmdir()
    (root / "empty").rmdir()
    (root / "empty").write_bytes(b"a file in place of a folder")
    (root / "in").unlink()
    (root / "in").mkdir()
    (root / "in/new").write_bytes(b"a folder in place of a link")
    (root / "out").unlink()
    (root / "deep/er/b.bin").unlink()
    (root / "deep/er").rmdir()
    (root / "deep/er").symlink_to("/etc")
    changes = await grounds.changes(ground, str(root))
    assert not changes.unknown
    expected = {"a.txt", "tool", "secret", "in/new", "deep/er", "out", "not-\ufffd-text"}
    assert expected <= set(changes.paths)
    assert "-one\r\n" in changes.diff
    assert "Binary files a/deep/er/b.bin and /dev/null differ" in changes.diff

    done = await restored(grounds)
    assert image(root) == before
    assert "a.txt" in done.written
    assert "in/new" in done.removed
    assert os.readlink(root / "in") == "./deep//er"


@pytest.mark.soak
async def test_a_restore_can_be_taken_back_and_forth(tmp_path: Path) -> None:
    root = folder_in(tmp_path, {"a": b"1"})
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    before = image(root)
    folder_in(tmp_path, {"a": b"2", "b": b"new"})
    after = image(root)
    await grounds.changes(ground, str(root))
    assert (await restored(grounds)).kept.endswith("/aside/1")
    assert image(root) == before
    await restored(grounds, undo=True)
    assert image(root) == after
    await restored(grounds, undo=True)
    assert image(root) == before
    assert (await restored(grounds)).paths == ()


async def test_settings_filters_attributes_and_hooks_of_the_folders_repository_never_run(
    tmp_path: Path,
) -> None:
    ran = tmp_path / "ran"
    wild = b"* text=auto eol=crlf ident filter=evil working-tree-encoding=UTF-16\n"
    root = folder_in(tmp_path, {".gitattributes": wild, "a.txt": b"$Id$\nlf\ncrlf\r\n"})
    git(root, "init", "-q")
    script = tmp_path / "evil"
    script.write_text(HOSTILE.format(ran))
    script.chmod(0o755)
    for name in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "diff.external"):
        git(root, "config", name, str(script))
    git(root, "config", "core.autocrlf", "true")
    for hook in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
        (root / ".git/hooks" / hook).write_text(HOSTILE.format(ran))
        (root / ".git/hooks" / hook).chmod(0o755)
    ran.unlink(missing_ok=True)
    own = image(root / ".git", never=())
    before = image(root)
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    (root / "a.txt").write_bytes(b"other\n")
    assert (await grounds.changes(ground, str(root))).paths == ("a.txt",)
    await restored(grounds)
    assert image(root) == before
    assert image(root / ".git", never=()) == own
    assert not ran.exists()


async def test_files_of_a_repository_within_come_back_and_its_history_is_left_alone(
    tmp_path: Path,
) -> None:
    root = folder_in(tmp_path, {"sub/a": b"1", "sub/b": b"2", ".podium/own": b"state"})
    git(root / "sub", "init", "-q")
    git(root / "sub", "add", "a")
    git(root / "sub", "commit", "-qm", "one")
    before = image(root)
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    folder_in(tmp_path, {"sub/a": b"changed", "sub/c": b"new", ".podium/own": b"newer state"})
    (root / "sub/b").unlink()
    git(root / "sub", "commit", "-qam", "two")
    newer = git(root / "sub", "rev-parse", "HEAD")
    assert (await grounds.changes(ground, str(root))).paths == ("sub/a", "sub/b", "sub/c")
    await restored(grounds)
    assert image(root) == before
    assert git(root / "sub", "rev-parse", "HEAD") == newer
    assert (root / ".podium/own").read_bytes() == b"newer state"


async def test_small_ignored_files_are_kept_and_large_ones_are_named_and_left_alone(
    tmp_path: Path,
) -> None:
    large = bytes(2_000_000)
    root = folder_in(
        tmp_path,
        {
            ".gitignore": b".env\nbuild/\n*.log\n",
            ".env": b"SECRET=1",
            "build/huge": large,
            "tracked.log": large,
        },
    )
    git(root, "init", "-q")
    git(root, "add", "-f", "tracked.log")
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    assert ["'build'" in line for line in ground.left_out] == [True]
    (root / ".env").unlink()
    (root / "tracked.log").write_bytes(b"short")
    (root / "build/huge").write_bytes(b"now small")
    (root / "build/more").write_bytes(b"made by the run")
    folder_in(tmp_path, {"node/x.log": large})
    changes = await grounds.changes(ground, str(root))
    assert changes.paths == (".env", "tracked.log")
    done = await restored(grounds)
    assert (root / ".env").read_bytes() == b"SECRET=1"
    assert (root / "tracked.log").read_bytes() == large
    assert (root / "build/huge").read_bytes() == b"now small"
    assert (root / "build/more").exists()
    assert (root / "node/x.log").exists()
    assert done.left_out == ground.left_out


async def test_a_diff_is_without_the_files_that_git_ignores(tmp_path: Path) -> None:
    root = folder_in(
        tmp_path, {"a.py": b"one\n", ".gitignore": b"*.pyc\ncache\n", "old.pyc": b"old"}
    )
    git(root, "init", "-q")
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    (root / "a.py").write_bytes(b"two\n")
    (root / "new.pyc").write_bytes(b"new")
    (root / "old.pyc").write_bytes(b"newer")
    (root / "cache").mkdir()
    (root / "cache/one").write_bytes(b"cached")
    changes = await grounds.changes(ground, str(root))
    assert changes.paths == ("a.py",)
    assert set(changes.ignored) == {"cache/one", "new.pyc", "old.pyc"}
    assert changes.diff.startswith("diff --git a/a.py b/a.py\n")
    assert changes.diff.count("diff --git") == 1
    await restored(grounds)
    assert (root / "old.pyc").read_bytes() == b"old"


async def test_a_long_diff_is_cut_and_says_so(tmp_path: Path) -> None:
    root = folder_in(tmp_path, {"a": b""})
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    (root / "a").write_bytes(b"a line of text\n" * 30_000)
    diff = (await grounds.changes(ground, str(root))).diff
    assert len(diff) < 201_000
    assert "cut here" in diff[-100:]


@pytest.mark.parametrize("limits", [FolderLimits(files=3), FolderLimits(bytes=10)])
async def test_too_large_a_folder_is_worked_in_without_undo_and_that_is_reported(
    tmp_path: Path, limits: FolderLimits
) -> None:
    root = folder_in(tmp_path, {f"{number}": b"four" for number in range(4)})
    grounds = grounds_in(tmp_path, limits)
    ground = await grounds.prepare(RUN, str(root))
    assert ground.root == str(root)
    assert not ground.snapshot
    assert "more than" in ground.why_none
    assert "more than" in (await grounds.changes(ground, str(root))).unknown
    with pytest.raises(NotPossibleNow, match="has no snapshot of its folder"):
        await restored(grounds)


async def test_missing_folder_is_reported(tmp_path: Path) -> None:
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(tmp_path / "none"))
    assert "none" in ground.why_none
    with pytest.raises(NotPossibleNow, match="cannot copy"):
        await grounds.prepare(RUN, str(tmp_path / "none"), as_copy=True)
    with pytest.raises(BadInput):
        await grounds.prepare("../evil", str(tmp_path))


async def test_the_same_run_gets_the_same_ground_also_after_its_first_changes(
    tmp_path: Path,
) -> None:
    root = folder_in(tmp_path, {"a": b"1"})
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    (root / "a").write_bytes(b"2")
    assert await grounds_in(tmp_path).prepare(RUN, str(root)) == ground
    assert (await grounds.changes(ground, str(root))).paths == ("a",)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("as_copy", "step"), [(False, 6), (True, 6), in_soak(False, 2), in_soak(True, 2)]
)
async def test_killed_at_any_time_of_preparing_it_begins_anew_and_takes_nothing_half_for_whole(
    tmp_path: Path, as_copy: bool, step: int
) -> None:
    root = folder_in(tmp_path, {"a": b"1", "b/c": b"2"})
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "https://example.invalid/x")
    kills = 0
    while True:
        place = tmp_path / f"{kills}"
        dying = GitWorkingFolders(Git(DyingLauncher(kills)), place / "grounds")
        try:
            await dying.prepare(RUN, str(root), as_copy=as_copy)
            break
        except asyncio.CancelledError:
            kills += step
        folder_in(tmp_path, {"between": f"{kills}".encode()})
        grounds = grounds_in(place)
        ground = await grounds.prepare(RUN, str(root), as_copy=as_copy)
        folder = Path(ground.root)
        before = image(folder)
        assert git(folder, "remote") == ("" if as_copy else "origin")
        (folder / "a").write_bytes(b"other")
        assert (await grounds.changes(ground, str(root))).paths == ("a",)
        await restored(grounds)
        assert image(folder) == before
    assert kills > 5


@pytest.mark.parametrize("step", [12, in_soak(4)])
async def test_killed_in_the_middle_of_a_restore_it_is_finished_by_another(
    tmp_path: Path, step: int
) -> None:
    root = folder_in(tmp_path, {"a": b"1", "b": b"2", "c/d": b"3"})
    before = image(root)
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    kills = 0
    while True:
        folder_in(tmp_path, {"a": b"11", "b": b"22", "new": b"n"})
        await grounds.changes(ground, str(root))
        try:
            await restored(GitWorkingFolders(Git(DyingLauncher(kills)), tmp_path / "grounds"))
            break
        except asyncio.CancelledError:
            kills += step
        await restored(grounds)
        assert image(root) == before
    assert kills > 10


async def test_what_a_person_changed_after_the_run_is_not_lost_without_a_word(
    tmp_path: Path,
) -> None:
    root = folder_in(tmp_path, {"a": b"1", "b": b"1"})
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    folder_in(tmp_path, {"a": b"the run's", "b": b"the run's"})
    await grounds.changes(ground, str(root))
    folder_in(tmp_path, {"b": b"the person's", "mine": b"new"})
    restoring = FolderRestorer(grounds, RUN, None)
    shown = await restoring.look(undo=False)
    assert shown.conflicts == ("b", "mine")
    with pytest.raises(NotPossibleNow, match="--over"):
        await restoring.put_back(shown, undo=False, over=False)
    assert (root / "a").read_bytes() == b"the run's"
    await restoring.put_back(shown, undo=False, over=True)
    assert sorted(os.listdir(root)) == ["a", "b"]
    await restored(grounds, undo=True)
    assert (root / "b").read_bytes() == b"the person's"


async def test_after_a_run_that_nobody_saw_the_end_of_later_files_are_the_persons(
    tmp_path: Path,
) -> None:
    root = folder_in(tmp_path, {"a": b"1"})
    grounds = grounds_in(tmp_path)
    await grounds.prepare(RUN, str(root))
    folder_in(tmp_path, {"a": b"2"})
    long_ago, much_later = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    assert (await FolderRestorer(grounds, RUN, long_ago).look(undo=False)).conflicts == ("a",)
    assert (await FolderRestorer(grounds, RUN, much_later).look(undo=False)).conflicts == ()


async def test_what_changes_between_showing_and_doing_stops_it(tmp_path: Path) -> None:
    root = folder_in(tmp_path, {"a": b"1"})
    grounds = grounds_in(tmp_path)
    await grounds.prepare(RUN, str(root))
    (root / "a").write_bytes(b"2")
    restoring = FolderRestorer(grounds, RUN, None)
    shown = await restoring.look(undo=False)
    (root / "a").write_bytes(b"3")
    with pytest.raises(NotPossibleNow, match="in the meantime"):
        await restoring.put_back(shown, undo=False, over=True)
    assert (root / "a").read_bytes() == b"3"


async def test_a_repository_in_place_of_a_file_is_not_removed(tmp_path: Path) -> None:
    root = folder_in(tmp_path, {"a": b"1"})
    grounds = grounds_in(tmp_path)
    await grounds.prepare(RUN, str(root))
    (root / "a").unlink()
    (root / "a").mkdir()
    git(root / "a", "init", "-q")
    with pytest.raises(NotPossibleNow, match="move it away"):
        await FolderRestorer(grounds, RUN, None).look(undo=False)


async def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    root = folder_in(tmp_path, {"a": b"1"})
    os.mkfifo(root / "pipe")
    grounds = grounds_in(tmp_path)
    ground = await grounds.prepare(RUN, str(root))
    assert (await grounds.changes(ground, str(root))).paths == ()
    copy = await grounds.prepare("run_other", str(root), as_copy=True)
    assert os.listdir(copy.root) == ["a"]


async def test_podiums_own_folder_within_is_neither_kept_nor_copied(tmp_path: Path) -> None:
    root = folder_in(tmp_path, {"a": b"1"})
    grounds = GitWorkingFolders(Git(DyingLauncher(1_000)), root / "state")
    ground = await grounds.prepare(RUN, str(root))
    assert (await grounds.changes(ground, str(root))).paths == ()
    copy = await grounds.prepare("run_other", str(root), as_copy=True)
    assert os.listdir(copy.root) == ["a"]


async def test_a_place_that_was_left_half_made_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "grounds" / "kept.git" / "objects").mkdir(parents=True)
    grounds, root = grounds_in(tmp_path), folder_in(tmp_path, {"a.txt": b"1\n"})
    ground = await grounds.prepare(RUN, str(root))
    assert (ground.snapshot != "", ground.why_none) == (True, "")
