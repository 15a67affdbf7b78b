from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from podium.core.decisions import Permit
from podium.core.errors import BadArguments
from tests.soaking import in_soak
from tests.unit.tools.toolbox_harness import Harness, make_harness


def git(folder: Path, *words: str) -> str:
    ended = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return ended.stdout.strip()


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = make_harness(tmp_path)
    git(harness.root, "init", "--quiet", "--initial-branch=main")
    git(harness.root, "config", "user.name", "Ann")
    git(harness.root, "config", "user.email", "ann@example.test")
    (harness.root / "a.txt").write_text("one\n")
    git(harness.root, "add", "a.txt")
    git(harness.root, "commit", "--quiet", "-m", "first")
    return harness


async def test_status_reports_branch_and_changes(harness: Harness) -> None:
    clean = await harness.use("git_status")
    git(harness.root, "mv", "a.txt", "b c.txt")
    (harness.root / "new\n.txt").touch()

    changed = await harness.use("git_status", 1)

    assert clean.result == {"branch": "main", "clean": True, "files": [], "count": 0}
    assert changed.result["files"] == [
        {"status": "R", "path": "b c.txt", "from": "a.txt"},
        {"status": "??", "path": "new\n.txt"},
    ]


async def test_status_of_a_repository_without_commits(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    git(harness.root, "init", "--quiet", "--initial-branch=trunk")

    assert (await harness.use("git_status")).result["branch"] == "trunk"


async def test_a_diff_of_the_workspace_the_index_and_a_commit(harness: Harness) -> None:
    (harness.root / "a.txt").write_text("two\n")
    (harness.root / "b.txt").write_text("b\n")
    git(harness.root, "add", "b.txt")

    work = await harness.use("git_diff")
    staged = await harness.use("git_diff", 1, staged=True)
    against = await harness.use("git_diff", 2, against="HEAD", paths=["b.txt"])

    assert "-one\n+two\n" in work.result["diff"]
    assert "b.txt" not in work.result["diff"]
    assert "+b" in staged.result["diff"]
    assert "a.txt" not in against.result["diff"]
    assert "+b" in against.result["diff"]


@pytest.mark.parametrize("against", ["--output=x", "-O", "main --ext-diff", "a;b"])
async def test_an_option_cannot_be_smuggled_in_as_a_commit(harness: Harness, against: str) -> None:
    with pytest.raises(BadArguments, match="against"):
        harness.call("git_diff", against=against)


async def test_all_changes_are_committed_and_the_commit_is_on_the_receipt(harness: Harness) -> None:
    (harness.root / "a.txt").unlink()
    (harness.root / "b.txt").write_text("b")

    text = "Second\n\n# not a comment\n\nEnd\n"
    outcome = await harness.use("git_commit", message=text)

    assert git(harness.root, "status", "--porcelain") == ""
    assert outcome.result["commit"] == git(harness.root, "rev-parse", "HEAD")
    assert outcome.result["branch"] == "main"
    message = git(harness.root, "log", "-1", "--format=%B")
    assert message == f"{text}\nPodium-Call: {harness.call('git_commit', message=text).key}"
    (receipt,) = await harness.receipts()
    assert receipt.fields == outcome.result


async def test_only_the_listed_paths_are_committed_and_globs_are_plain_names(
    harness: Harness,
) -> None:
    for name in ("x.txt", "y.txt", "*.txt"):
        (harness.root / name).write_text(name)
    git(harness.root, "add", "y.txt")

    await harness.use("git_commit", message="One", paths=["*.txt"])

    assert git(harness.root, "show", "--name-only", "--format=", "HEAD") == "*.txt"
    assert git(harness.root, "status", "--porcelain").splitlines() == ["A  y.txt", "?? x.txt"]


async def test_the_first_commit_of_a_repository(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    git(harness.root, "init", "--quiet")
    git(harness.root, "config", "user.name", "Ann")
    git(harness.root, "config", "user.email", "ann@example.test")
    (harness.root / "a").touch()

    assert (await harness.use("git_commit", message="First")).ok


async def test_a_commit_repeated_after_a_crash_is_found_and_not_made_twice(
    harness: Harness,
) -> None:
    (harness.root / "b.txt").write_text("b")
    call = harness.call("git_commit", message="Second")
    permit = await harness.door.request(call)
    assert isinstance(permit, Permit)
    made = await harness.toolbox._act(
        harness.registry.tool("git_commit"), call
    )  # and then Podium dies
    git(harness.root, "commit", "--quiet", "--allow-empty", "-m", "somebody else's")

    outcome = await harness.use("git_commit", message="Second")

    assert outcome.result["commit"] == made.result["commit"]
    assert git(harness.root, "rev-list", "--count", "HEAD") == "3"


async def test_nothing_to_commit_is_a_failure_in_gits_words(harness: Harness) -> None:
    outcome = await harness.use("git_commit", message="Empty")

    assert not outcome.ok
    assert "nothing to commit" in outcome.error


async def test_hooks_monitors_and_external_diffs_of_the_repository_do_not_run(
    harness: Harness, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    trap.chmod(0o755)
    for hook in ("pre-commit", "post-commit", "commit-msg", "prepare-commit-msg"):
        (harness.root / ".git/hooks" / hook).symlink_to(trap)
    git(harness.root, "config", "core.fsmonitor", str(trap))
    git(harness.root, "config", "diff.external", str(trap))
    git(harness.root, "config", "core.pager", str(trap))
    (harness.root / "a.txt").write_text("two\n")

    await harness.use("git_status")
    await harness.use("git_diff", 1)
    commit = await harness.use("git_commit", 2, message="Second")

    assert commit.ok
    assert not (tmp_path / "sprung").exists()


def a_trap(folder: Path) -> Path:
    """A program that leaves a file behind when it is run, and hands its input on."""
    trap = folder / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {folder / 'sprung'}\ncat\n")
    trap.chmod(0o755)
    return trap


@pytest.mark.parametrize("kind", ["clean", "process"])
@pytest.mark.parametrize("name", ["a=b.c", *map(in_soak, ("x", "clean"))])
async def test_content_filters_of_the_repository_do_not_run_and_their_files_are_not_committed(
    harness: Harness, tmp_path: Path, name: str, kind: str
) -> None:
    git(harness.root, "config", f"filter.{name}.{kind}", str(a_trap(tmp_path)))
    (harness.root / ".gitattributes").write_text(f"a.txt filter={name}\n")
    (harness.root / "a.txt").write_text("two\n")
    (harness.root / "b.txt").write_text("b\n")

    status = await harness.use("git_status")
    diff = await harness.use("git_diff", 1)
    filtered = await harness.use("git_commit", 2, message="Second")
    plain = await harness.use("git_commit", 3, message="Third", paths=["b.txt"])

    assert {entry["path"] for entry in status.result["files"]} == {
        ".gitattributes",
        "a.txt",
        "b.txt",
    }
    assert "+two" in diff.result["diff"]
    assert f"'a.txt' uses the content filter {name!r}" in filtered.error
    assert plain.ok
    assert git(harness.root, "show", "--name-only", "--format=", "HEAD") == "b.txt"
    assert not (tmp_path / "sprung").exists()


async def test_a_file_that_went_through_a_filter_of_the_repository_may_be_removed(
    harness: Harness,
) -> None:
    (harness.root / ".gitattributes").write_text("a.txt filter=x\n")
    git(harness.root, "config", "filter.x.clean", "cat")
    (harness.root / "a.txt").unlink()

    assert (await harness.use("git_commit", message="Second")).ok


async def test_a_content_filter_that_an_included_file_names_does_not_run_either(
    harness: Harness, tmp_path: Path
) -> None:
    included = harness.root / "shared.gitconfig"
    included.write_text(f'[filter "x"]\n\tclean = {a_trap(tmp_path)}\n')
    git(harness.root, "config", "include.path", str(included))
    (harness.root / ".gitattributes").write_text("a.txt filter=x\n")
    (harness.root / "a.txt").write_text("two\n")

    assert "content filter 'x'" in (await harness.use("git_commit", message="Second")).error
    assert not (tmp_path / "sprung").exists()


async def test_content_filters_that_a_person_configured_for_themselves_do_run(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text('[filter "up"]\n\tclean = tr a-z A-Z\n')
    monkeypatch.setenv("HOME", str(home))
    (harness.root / ".gitattributes").write_text("a.txt filter=up\n")
    (harness.root / "a.txt").write_text("two\n")

    assert (await harness.use("git_commit", message="Second")).ok
    assert git(harness.root, "show", "HEAD:a.txt") == "TWO"


@pytest.mark.parametrize("setting", ["command", "cmd"])
async def test_commands_for_trailers_do_not_run(
    harness: Harness, tmp_path: Path, setting: str
) -> None:
    git(harness.root, "config", f"trailer.sign.{setting}", str(a_trap(tmp_path)))
    git(harness.root, "config", f"trailer.Podium-Call.{setting}", str(a_trap(tmp_path)))
    (harness.root / "a.txt").write_text("two\n")

    assert (await harness.use("git_commit", message="Second")).ok
    assert not (tmp_path / "sprung").exists()


async def test_the_calls_key_joins_the_trailers_that_a_message_has(harness: Harness) -> None:
    (harness.root / "a.txt").write_text("two\n")
    message = "Second\n\nBecause: of it.\n\nReviewed-by: Ann\nFixes: 12\n"

    await harness.use("git_commit", message=message)

    trailers = git(harness.root, "log", "-1", "--format=%(trailers:keyonly)").split()
    assert trailers == ["Reviewed-by", "Fixes", "Podium-Call"]


async def test_a_repository_above_the_workspace_is_not_touched(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    harness = make_harness(tmp_path)
    (harness.root / "a").touch()

    outcome = await harness.use("git_commit", message="Up there")

    assert "not a git repository" in outcome.error


async def test_a_path_outside_is_refused(harness: Harness) -> None:
    outcome = await harness.use("git_commit", message="x", paths=["../elsewhere"])

    assert "is outside the workspace" in outcome.error


async def test_files_that_are_passed_over_are_left_out_of_a_diff(harness: Harness) -> None:
    (harness.root / ".env").write_text("KEY=old")
    git(harness.root, "add", "-f", ".env")
    git(harness.root, "commit", "--quiet", "-m", "with a key")
    (harness.root / ".env").write_text("KEY=new")
    (harness.root / "a.txt").write_text("two\n")

    changed = await harness.use("git_diff")
    named = await harness.use("git_diff", paths=["."])
    historical = await harness.use("git_diff", against="HEAD~1")
    git(harness.root, "mv", "-f", ".env", "moved")
    renamed = await harness.use("git_diff", against="HEAD")

    for outcome in (changed, named, historical, renamed):
        assert outcome.ok, outcome.error
        assert "+two" in outcome.result["diff"]
        assert ".env" not in outcome.result["diff"]
        assert "KEY=old" not in outcome.result["diff"]
        assert outcome.result["files_left_out"] == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("paths", [[], ["."], ["sub", "b.txt"]])
async def test_what_is_passed_over_and_podiums_own_is_not_committed(
    harness: Harness, paths: list[str]
) -> None:
    for name in (".podium/podium.db", "sub/.podium/x", ".env", "sub/.env", "b.txt", "sub/c"):
        (harness.root / name).parent.mkdir(parents=True, exist_ok=True)
        (harness.root / name).write_text("x")

    outcome = await harness.use("git_commit", message="All", paths=paths)

    assert outcome.ok, outcome.error
    assert git(harness.root, "show", "--name-only", "--format=", "HEAD") == "b.txt\nsub/c"


async def test_what_a_person_staged_and_is_passed_over_stays_staged(harness: Harness) -> None:
    (harness.root / ".env").write_text("x")
    git(harness.root, "add", "-f", ".env")
    (harness.root / "b.txt").write_text("x")

    outcome = await harness.use("git_commit", message="All")

    assert outcome.ok, outcome.error
    assert git(harness.root, "show", "--name-only", "--format=", "HEAD") == "b.txt"
    assert git(harness.root, "status", "--porcelain") == "A  .env"


@pytest.mark.parametrize("known", [True, False])
async def test_a_repository_inside_the_workspace_runs_nothing_and_is_not_committed(
    harness: Harness, tmp_path: Path, known: bool
) -> None:
    inner = harness.root / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    git(inner, "config", "user.name", "Ann")
    git(inner, "config", "user.email", "ann@example.test")
    git(inner, "commit", "--quiet", "--allow-empty", "-m", "x")
    if known:
        git(harness.root, "-c", "advice.addEmbeddedRepo=false", "add", "inner")
        git(harness.root, "commit", "--quiet", "-m", "inner")
        git(inner, "commit", "--quiet", "--allow-empty", "-m", "y")
    git(inner, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    (inner / "new").touch()
    (harness.root / "b.txt").write_text("x")

    for outcome in (
        await harness.use("git_status"),
        await harness.use("git_diff"),
        await harness.use("git_commit", message="All"),
    ):
        assert outcome.ok, outcome.error

    assert not (tmp_path / "ran").exists()
    assert git(harness.root, "show", "--name-only", "--format=", "HEAD") == "b.txt"


async def test_a_folder_that_is_laid_out_as_a_bare_repository_is_none(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    git(harness.root, "init", "--quiet", "--bare")

    outcome = await harness.use("git_status")

    assert "not a git repository" in outcome.error


async def test_a_work_tree_that_the_configuration_names_is_not_followed(
    harness: Harness, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "private").write_text("x")
    git(harness.root, "config", "core.worktree", str(elsewhere))

    outcome = await harness.use("git_status")

    assert outcome.ok, outcome.error
    assert outcome.result["files"] == []
