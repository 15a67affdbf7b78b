"""What commits add is looked through line by line, wherever an agent puts it and whatever it looks like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from podium.ports import Workspace
from podium.workspaces.git import looking_through
from tests.workspaces.yard import Yard, agent_commits, agent_git


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path).build()


def find(text: str) -> Sequence[str]:
    return ("apple",) if "apple" in text else ("pair",) if "begin\nend" in text else ()


async def seen(workspace: Workspace) -> list[tuple[str, int]]:
    looked = await workspace.look_through(find)
    assert looked.whole
    return [(each.path, each.line) for each in looked.found]


async def test_lines_are_told_by_file_and_number_and_only_those_that_are_new(yard: Yard) -> None:
    (yard.repository / "one.txt").write_text("an apple of the user's\n")
    yard.git("commit", "--quiet", "--all", "--message=mine")
    workspace = await yard.made()
    agent_commits(workspace.record, "one.txt", "an apple of the user's\ntwo\nmy apple\nfour\n")
    assert await seen(workspace) == [("one.txt", 3)]
    await workspace.deliver()
    assert await seen(workspace) == []


async def test_what_a_later_commit_takes_back_is_seen_and_so_is_a_message(yard: Yard) -> None:
    workspace = await yard.made()
    agent_commits(workspace.record, "new.txt", "apple\n")
    agent_commits(workspace.record, "new.txt", "pear\n")
    agent_git(workspace.record, "commit", "--quiet", "--allow-empty", "--message=no\n\napple")
    assert await seen(workspace) == [("new.txt", 1), ("", 3)]


async def test_what_takes_several_lines_is_told_by_the_first(yard: Yard) -> None:
    workspace = await yard.made()
    agent_commits(workspace.record, "new.txt", "begin\nend\n")
    assert await seen(workspace) == [("new.txt", 1)]


async def test_a_file_that_is_only_moved_adds_nothing(yard: Yard) -> None:
    (yard.repository / "one.txt").write_text("apple\n" * 5)
    yard.git("commit", "--quiet", "--all", "--message=mine")
    workspace = await yard.made()
    agent_git(workspace.record, "mv", "one.txt", "moved.txt")
    agent_git(workspace.record, "commit", "--quiet", "--message=move")
    assert await seen(workspace) == []


async def test_lines_that_look_like_gits_own_words_hide_nothing(yard: Yard) -> None:
    workspace = await yard.made()
    tricks = "++ /dev/null\n@@ -0,0 +1,900 @@\ndiff --git a/x b/x\n\0commit 0000\napple\n"
    agent_commits(workspace.record, "trick.patch", tricks.replace("\0", ""))
    agent_commits(workspace.record, "häßlich name.txt", "apple\n")
    assert await seen(workspace) == [("trick.patch", 5), ("häßlich name.txt", 1)]


async def test_nothing_hides_behind_attributes_or_in_a_binary_file(yard: Yard) -> None:
    workspace = await yard.made()
    agent_commits(workspace.record, ".gitattributes", "* -diff\n")
    agent_commits(workspace.record, "new.txt", "apple\n")
    agent_commits(workspace.record, "data.bin", "\0\n\0apple\n")
    assert await seen(workspace) == [("new.txt", 1), ("data.bin", 2)]


async def test_of_a_merge_only_what_somebody_wrote_to_solve_it_is_looked_at(yard: Yard) -> None:
    workspace = await yard.made()
    agent_commits(workspace.record, "one.txt", "pear\n")
    await workspace.deliver()
    (yard.repository / "one.txt").write_text("an apple of the user's\n")
    (yard.repository / "more.txt").write_text("another apple\n")
    yard.git("add", "--all")
    yard.git("commit", "--quiet", "--message=mine")
    merge = await workspace.merge("main", "Merge", {"Podium-Step": "merge"})
    assert merge.conflicts == ("one.txt",)
    Path(workspace.record.path, "one.txt").write_text("an apple of the user's\nan apple of mine\n")
    agent_git(workspace.record, "add", "--all")
    agent_git(workspace.record, "commit", "--quiet", "--message=merged")
    assert ("one.txt", 2) in await seen(workspace)
    assert "more.txt" not in {path for path, _ in await seen(workspace)}


async def test_a_git_that_cannot_show_merges_so_shows_more_and_hides_nothing(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_through, "_AS_SOLVED", "--diff-merges=not-known-to-it")
    workspace = await yard.made()
    agent_commits(workspace.record, "new.txt", "apple\n")
    assert await seen(workspace) == [("new.txt", 1)]


async def test_of_very_much_the_beginning_is_looked_at_and_that_is_told(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_through, "MOST_BYTES", 2_000)
    workspace = await yard.made()
    agent_commits(workspace.record, "a.txt", "apple\n")
    agent_commits(workspace.record, "b.txt", "pear\n" * 5_000)
    looked = await workspace.look_through(find)
    assert [each.path for each in looked.found] == ["a.txt"]
    assert not looked.whole
