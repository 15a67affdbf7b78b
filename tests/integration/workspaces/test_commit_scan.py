"""Line-by-line scan of the content that commits add, wherever an agent puts it and whatever it looks like."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from podium.core.errors import ImportRefused, SecretsCommitted
from podium.core.workspaces import CommitScan
from podium.git import commit_scan
from podium.git.commit_scan import Find
from podium.ports import Workspace
from tests.integration.workspaces.git_project import GitProject, agent_commits, agent_git


@pytest.fixture
def git_project(tmp_path: Path) -> GitProject:
    return GitProject(tmp_path).build()


def find(text: str) -> Sequence[str]:
    return ("apple",) if "apple" in text else ("pair",) if "begin\nend" in text else ()


async def scanned(workspace: Workspace, find: Find = find) -> CommitScan:
    """Return the result of an import's scan. Nothing comes back."""
    seen: list[CommitScan] = []
    whole_scan = commit_scan.scan_commits

    async def scan(history: Any, new: Any, changes: Any, _: Find, since: str) -> CommitScan:
        seen.append(await whole_scan(history, new, changes, find, since))
        raise SecretsCommitted("only a scan", "none")

    with pytest.MonkeyPatch.context() as patched:
        # The scan's own answer is asked for: what is refused of it is told in words alone.
        patched.setattr(commit_scan, "scan_commits", scan)
        with suppress(SecretsCommitted):
            await workspace.deliver()
    return seen[0] if seen else CommitScan()


async def seen(workspace: Workspace) -> list[tuple[str, int]]:
    looked = await scanned(workspace)
    assert looked.whole
    return [(item.path, item.line) for item in looked.found]


async def test_lines_are_reported_by_file_and_number_and_only_new_ones(
    git_project: GitProject,
) -> None:
    (git_project.repository / "one.txt").write_text("an apple of the user's\n")
    git_project.git("commit", "--quiet", "--all", "--message=mine")
    workspace = await git_project.made()
    agent_commits(workspace.record, "one.txt", "an apple of the user's\ntwo\nmy apple\nfour\n")
    assert await seen(workspace) == [("one.txt", 3)]
    await workspace.deliver()
    assert await seen(workspace) == []


async def test_what_a_later_commit_takes_back_is_seen_and_so_is_a_message(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "new.txt", "apple\n")
    agent_commits(workspace.record, "new.txt", "pear\n")
    agent_git(workspace.record, "commit", "--quiet", "--allow-empty", "--message=no\n\napple")
    assert await seen(workspace) == [("new.txt", 1), ("", 3)]


async def test_multiline_match_is_reported_by_its_first_line(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "new.txt", "begin\nend\n")
    assert await seen(workspace) == [("new.txt", 1)]


async def test_a_file_that_is_only_moved_adds_nothing(git_project: GitProject) -> None:
    (git_project.repository / "one.txt").write_text("apple\n" * 5)
    git_project.git("commit", "--quiet", "--all", "--message=mine")
    workspace = await git_project.made()
    agent_git(workspace.record, "mv", "one.txt", "moved.txt")
    agent_git(workspace.record, "commit", "--quiet", "--message=move")
    assert await seen(workspace) == []


async def test_lines_that_look_like_gits_own_words_hide_nothing(git_project: GitProject) -> None:
    workspace = await git_project.made()
    tricks = "++ /dev/null\n@@ -0,0 +1,900 @@\ndiff --git a/x b/x\n\0commit 0000\napple\n"
    agent_commits(workspace.record, "trick.patch", tricks.replace("\0", ""))
    agent_commits(workspace.record, "häßlich name.txt", "apple\n")
    assert await seen(workspace) == [("trick.patch", 5), ("häßlich name.txt", 1)]


async def test_nothing_hides_behind_attributes_or_in_a_binary_file(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, ".gitattributes", "* -diff\n")
    agent_commits(workspace.record, "new.txt", "apple\n")
    agent_commits(workspace.record, "data.bin", "\0\n\0apple\n")
    assert await seen(workspace) == [("new.txt", 1), ("data.bin", 2)]


async def test_of_a_merge_only_what_somebody_wrote_to_solve_it_is_looked_at(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "one.txt", "pear\n")
    await workspace.deliver()
    (git_project.repository / "one.txt").write_text("an apple of the user's\n")
    (git_project.repository / "more.txt").write_text("another apple\n")
    git_project.git("add", "--all")
    git_project.git("commit", "--quiet", "--message=mine")
    merge = await workspace.merge("main", "Merge", {"Podium-Step": "merge"})
    assert merge.conflicts == ("one.txt",)
    Path(workspace.record.path, "one.txt").write_text("an apple of the user's\nan apple of mine\n")
    agent_git(workspace.record, "add", "--all")
    agent_git(workspace.record, "commit", "--quiet", "--message=merged")
    assert ("one.txt", 2) in await seen(workspace)
    assert "more.txt" not in {path for path, _ in await seen(workspace)}


async def test_of_very_large_input_the_beginning_is_scanned_and_that_is_reported(
    git_project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_scan, "MAX_BYTES", 2_000)
    workspace = await git_project.made()
    agent_commits(workspace.record, "a.txt", "apple\n")
    agent_commits(workspace.record, "b.txt", "pear\n" * 5_000)
    looked = await scanned(workspace)
    assert [item.path for item in looked.found] == ["a.txt"]
    assert not looked.whole


async def test_a_message_that_looks_like_gits_own_words_hides_nothing(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    Path(workspace.record.path, "src.py").write_text("apple\n")
    agent_git(workspace.record, "add", "--all")
    message = "one\n\n+++ b/tests/x\n@@ -0,0 +1,1 @@\ndiff --git a/x b/x\napple"
    agent_git(workspace.record, "commit", "--quiet", f"--message={message}")
    assert await seen(workspace) == [("", 6), ("src.py", 1)]


async def test_the_author_and_the_name_of_a_new_or_moved_file_are_looked_at(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    by = "--author=apple <ann@example.org>"
    agent_git(workspace.record, "commit", "--quiet", "--allow-empty", "--message=one", by)
    Path(workspace.record.path, "apple.txt").touch()
    agent_git(workspace.record, "add", "--all")
    agent_git(workspace.record, "commit", "--quiet", "--message=two")
    agent_git(workspace.record, "mv", "one.txt", "an apple.txt")
    agent_git(workspace.record, "commit", "--quiet", "--message=three")
    assert await seen(workspace) == [("", 0)] * 3


async def made_of(git_project: GitProject, rest: str) -> Workspace:
    """A workspace whose branch is at a commit that no git command would make."""
    workspace = await git_project.made()
    record = workspace.record
    tree = agent_git(record, "rev-parse", "HEAD^{tree}")
    who = "Ann <ann@example.org> 1700000000 +0000"
    raw = f"tree {tree}\nparent {record.base}\nauthor {who}\ncommitter {who}\n{rest}"
    file = git_project.folder / "raw"
    file.write_text(raw)
    words = ("hash-object", "-t", "commit", "-w", "--literally", str(file))
    agent_git(record, "reset", "--quiet", "--hard", agent_git(record, *words))
    return workspace


async def test_what_git_shows_nobody_of_a_commit_is_looked_at(git_project: GitProject) -> None:
    workspace = await made_of(git_project, "note apple\n\nx\n")
    assert len(await seen(workspace)) == 1


async def test_a_commit_that_goes_on_after_a_nul_does_not_come_back(
    git_project: GitProject,
) -> None:
    workspace = await made_of(git_project, "\nx\n\0apple\n")
    with pytest.raises(ImportRefused, match="NUL byte"):
        await workspace.deliver()


async def test_a_name_that_git_quotes_is_looked_at_as_it_is(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, 'an "apple\t.txt', "pear\n")
    looked = await scanned(workspace, lambda text: ("q",) if '"apple\t' in text else ())
    assert ("", 0) in [(item.path, item.line) for item in looked.found]


async def test_text_assembled_from_several_places_is_reported(git_project: GitProject) -> None:
    (git_project.repository / "one.txt").write_text("1\n2\n3\n")
    git_project.git("commit", "--quiet", "--all", "--message=mine")
    workspace = await git_project.made()
    agent_commits(workspace.record, "one.txt", "begin\n1\n2\n3\nend\n")
    assert await seen(workspace) == [("", 0)]


async def test_ids_are_nobodys_words(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "new.txt", "pear\n")
    tree = agent_git(workspace.record, "rev-parse", "HEAD^{tree}")
    looked = await scanned(workspace, lambda text: ("id",) if tree in text else ())
    assert looked.found == ()


async def test_what_a_merge_of_many_adds_is_seen(git_project: GitProject) -> None:
    workspace = await git_project.made()
    record = workspace.record
    tree = agent_git(record, "rev-parse", "HEAD^{tree}")
    parents = [
        agent_git(record, "commit-tree", tree, "-p", record.base, "-m", item) for item in "abc"
    ]
    Path(record.path, "new.txt").write_text("apple\n")
    agent_git(record, "add", "--all")
    above = [word for parent in parents for word in ("-p", parent)]
    merged = agent_git(record, "commit-tree", agent_git(record, "write-tree"), *above, "-m", "all")
    agent_git(record, "reset", "--quiet", "--hard", merged)
    assert set(await seen(workspace)) == {("new.txt", 1)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
async def test_characters_with_nuls_between_them_are_read(
    git_project: GitProject, encoding: str
) -> None:
    workspace = await git_project.made()
    Path(workspace.record.path, "wide.txt").write_bytes("pear\nan apple\n".encode(encoding))
    agent_git(workspace.record, "add", "--all")
    agent_git(workspace.record, "commit", "--quiet", "--message=wide")
    assert await seen(workspace) == [("wide.txt", 2)]


async def test_however_often_something_is_in_one_file_other_files_are_reported(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "a.txt", "apple\n" * 5_000)
    agent_commits(workspace.record, "b.txt", "apple\n")
    assert ("b.txt", 1) in await seen(workspace)


async def test_more_places_than_can_be_reported_are_not_the_whole(
    git_project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_scan, "_MAX_SIGHTINGS", 2)
    workspace = await git_project.made()
    for name in ("a.txt", "b.txt", "c.txt"):
        agent_commits(workspace.record, name, "apple\n")
    looked = await scanned(workspace)
    assert (len(looked.found), looked.whole) == (2, False)


async def test_a_commit_graph_that_lies_brings_nothing_back(git_project: GitProject) -> None:
    workspace = await git_project.made()
    record = workspace.record
    agent_commits(record, "new.txt", "apple\n")
    trees = [agent_git(record, "rev-parse", f"{text}^{{tree}}") for text in ("HEAD", record.base)]
    agent_git(record, "commit-graph", "write", "--reachable")
    graph = Path(record.private, "git/objects/info/commit-graph")
    true, false = map(bytes.fromhex, trees)
    output = graph.read_bytes()
    assert true in output
    graph.chmod(0o600)
    graph.write_bytes(output.replace(true, false))
    with pytest.raises(ImportRefused):
        await workspace.deliver()
