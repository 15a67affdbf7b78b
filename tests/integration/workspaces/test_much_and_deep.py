"""Leftovers of an agent in great numbers or at great depth: they prevent neither cleaning up nor ending."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podium.core.errors import ImportRefused, LockHeld, PodiumError
from podium.core.workspaces import WorkspaceRecord
from podium.git import commit_changes
from podium.git.commit_changes import _followed, _texts
from podium.git.git_command import Git
from podium.git.planted import find_planted, move_away, moved, take_borrowed_rights
from podium.git.private_dir import read_refs
from podium.git.records import WorkspaceRecords
from podium.git.snapshots import Snapshots
from podium.git.worktree_objects import sorted_ignored
from podium.platform.folder_tree import clear_away, measure
from podium.testing import FixedClock
from tests.integration.workspaces.workspace_harness import Place, git, needs_bwrap

_DEEPER_THAN_PYTHON_CALLS = 1100
_COMMIT = "a" * 40


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@contextmanager
def _deepened(folder: Path) -> Iterator[Path]:
    """The last of many folders within folders. What clears up behind tests could not remove them."""
    inner = folder
    try:
        for _ in range(_DEEPER_THAN_PYTHON_CALLS):
            inner.mkdir(exist_ok=True)
            inner = inner / "a"
        yield inner.parent
    finally:
        clear_away(folder)


@pytest.mark.soak
def test_folders_deeper_than_python_calls_are_looked_through(tmp_path: Path) -> None:
    (tmp_path / "refs/heads").mkdir(parents=True)
    with _deepened(tmp_path / "refs/heads/deep") as last:
        lent = last / "lent"
        lent.write_text(f"{_COMMIT}\n")
        lent.chmod(0o4755)
        (last / ".git").mkdir()
        assert [Path(item.path).name for item in find_planted(tmp_path).planted] == [".git"]
        take_borrowed_rights(tmp_path)
        assert lent.stat().st_mode & 0o7777 == 0o755
        assert list(read_refs(tmp_path).values()) == [_COMMIT]
        assert sorted_ignored(tmp_path, ["refs/"])[0] == [str(lent.relative_to(tmp_path))]
        assert measure(tmp_path).bytes > 0


@pytest.mark.soak
@needs_bwrap()
async def test_more_planted_hooks_than_fit_on_a_command_line_are_moved_away(place: Place) -> None:
    workspace = await place.make()
    worktree = Path(workspace.record.path)
    seen = await workspace.begin_turn()
    hooks = worktree / "bare" / "hooks"
    for part in ("objects", "refs", "hooks"):
        (worktree / "bare" / part).mkdir(parents=True)
    (worktree / "bare/HEAD").write_text("ref: refs/heads/main\n")
    count = os.sysconf("SC_ARG_MAX") // 210
    for number in range(count):
        (hooks / f"{number:0200}").touch()
    (worktree / "n" / ".git").mkdir(parents=True)
    ended = await workspace.end_turn(seen)
    assert set(ended.moved_away) >= {"n/.git", "bare/HEAD"}
    assert len(ended.moved_away) == count + 2
    assert find_planted(worktree).planted == []


@needs_bwrap()
async def test_what_is_nobodys_is_moved_away_before_git_is_asked_about_the_rest(
    place: Place,
) -> None:
    workspace = await place.make()
    worktree = Path(workspace.record.path)
    seen = await workspace.begin_turn()
    for part in ("bare/objects", "bare/refs", "n/.git"):
        (worktree / part).mkdir(parents=True)
    (worktree / "bare/HEAD").write_text("ref: refs/heads/main\n")
    base = workspace.record.base
    tree = git(place.repository, "rev-parse", f"{base}^{{tree}}")
    (Path(workspace.record.git_dir) / "objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(PodiumError):
        await workspace.end_turn(seen)
    assert not (worktree / "n/.git").exists()


def test_things_moved_away_get_numbers_of_their_own(tmp_path: Path) -> None:
    worktree, private = tmp_path / "w", tmp_path / "p"
    private.mkdir()
    for name in ("a", "b", "c"):
        (worktree / name / ".git").mkdir(parents=True)
    assert move_away(worktree, private, ["a/.git", "gone/.git"]) == ("a/.git",)
    # Another one was at it at the same time.
    (private / "quarantine/2.json").write_text("{}")
    assert move_away(worktree, private, ["b/.git", "c/.git"]) == ("b/.git", "c/.git")
    assert moved(private) == 5
    assert json.loads((private / "quarantine/4.json").read_bytes()) == {"was": "c/.git"}
    assert (private / "quarantine/4").is_dir()


def test_answers_of_git_are_read_by_their_counted_lengths() -> None:
    answers = b"symlink 6\n/a\nb c\n" + b"1234 blob 7\n" + b"dangling 3\n\n\n\n\n" + b"x missing\n"
    assert _followed(answers) == ["symlink", "1234", "dangling", "x"]
    assert _texts(b"12 blob 3\na\nb\n34 blob 0\n\n56 blob 1\n\xff\n") == {
        "12": "a\nb",
        "34": "",
        "56": "\udcff",
    }


@needs_bwrap()
async def test_more_links_than_one_delivery_may_make_are_refused_with_words(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_changes, "MAX_LINKS", 2)
    workspace = await place.make()
    await place.works(workspace, "ln -s a l1; ln -s a l2; git add -A; git commit -qm two")
    assert len((await workspace.deliver()).paths) == 2
    await place.works(
        workspace, "for i in 3 4 5; do ln -s a l$i; done; git add -A; git commit -qm x"
    )
    with pytest.raises(ImportRefused, match="3 links, and at most 2"):
        await workspace.deliver()


@pytest.mark.soak
async def test_a_snapshot_may_have_more_parents_than_fit_on_a_command_line(place: Place) -> None:
    workspace = await place.make()
    record = workspace.record
    tree = place.user("rev-parse", f"{record.base}^{{tree}}")
    parents = [f"{number:040x}" for number in range(1, os.sysconf("SC_ARG_MAX") // 55)]
    snapshots = Snapshots(Git(place.launcher), WorkspaceRecords(place.state_home), FixedClock())
    commit = await snapshots._committed(record, tree, parents, "many\n", FixedClock().now())
    text = place.user("cat-file", "commit", commit)
    assert [line[7:] for line in text.splitlines() if line.startswith("parent ")] == parents
    assert text.startswith(f"tree {tree}\n")
    assert text.endswith("\n\nmany")


async def test_a_turn_that_does_not_begin_holds_nothing(place: Place) -> None:
    workspace = await place.make()
    settings = Path(workspace.record.git_dir, "config")
    whole = settings.read_text()
    settings.write_text("[broken\n")
    with pytest.raises(PodiumError):
        await workspace.begin_turn()
    settings.write_text(whole)
    other = await place.opened().open(workspace.record.id)
    seen = await other.begin_turn()
    with pytest.raises(LockHeld):
        await workspace.begin_turn()
    await other.end_turn(seen)
    await workspace.begin_turn()
    assert place.workspaces.records.in_use(workspace.record.id)


async def test_a_record_that_cannot_be_read_is_no_trouble_for_the_other_workspaces(
    place: Place,
) -> None:
    mine, other = await place.make("mine"), await place.make("other")
    Path(other.record.private, "record.json").write_text("{")
    assert place.workspaces.existing() == [mine.record]
    assert place.workspaces.at(mine.record.path) == mine.record
    assert place.workspaces.at(other.record.path) is None
    Path(other.record.private, "record.json").write_text(other.record.model_dump_json())
    assert place.workspaces.at(other.record.path) == other.record
    assert [item.task for item in place.workspaces.existing()] == ["mine", "other"]


async def test_only_the_record_that_is_asked_for_is_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [await place.make(task) for task in ("a", "b", "c")]
    assert place.workspaces.at("/nowhere") is None
    read: list[str] = []
    finished = WorkspaceRecords.finished

    def counted(records: WorkspaceRecords, workspace_id: str) -> WorkspaceRecord | None:
        read.append(workspace_id)
        return finished(records, workspace_id)

    monkeypatch.setattr(WorkspaceRecords, "finished", counted)
    assert place.workspaces.at(made[0].record.path) == made[0].record
    assert place.workspaces.at("/nowhere") is None
    assert read == [made[0].record.id]
    await place.workspaces.remove(made[0].record.id)
    assert place.workspaces.at(made[0].record.path) is None


@needs_bwrap()
async def test_refs_deeper_than_python_calls_keep_no_workspace_from_being_listed(
    place: Place,
) -> None:
    odd, other = await place.make("odd"), await place.make("other")
    with _deepened(Path(odd.record.private, "git/refs/heads/deep")):
        listed = await place.workspaces.listed()
    assert {item.record.id for item in listed} == {odd.record.id, other.record.id}
