from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from podium.core.errors import BadArguments
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness


def git(folder: Path, *words: str, stdin: str | None = None) -> str:
    ended = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, input=stdin
    )
    return ended.stdout.strip()


def commit(harness: Harness, path: str, message: str) -> None:
    with (harness.root / path).open("a") as file:
        file.write("more\n")
    git(harness.root, "add", path)
    git(harness.root, "commit", "--quiet", "-m", message)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = make_harness(tmp_path)
    git(harness.root, "init", "--quiet", "--initial-branch=main")
    git(harness.root, "config", "user.name", "Ann")
    git(harness.root, "config", "user.email", "ann@example.test")
    return harness


async def test_commits_are_shown_as_plain_fields_newest_first(harness: Harness) -> None:
    commit(harness, "a", "first")
    commit(harness, "b", f"second\n\nwith {SECRET} and\n\x1b[31mcolour")

    outcome = await harness.use("git_log")

    newest, oldest = outcome.result["commits"]
    assert outcome.result["complete"]
    assert newest["commit"] == git(harness.root, "rev-parse", "HEAD")
    assert (newest["author"], newest["subject"]) == ("Ann", "second")
    assert newest["body"] == "with [redacted:DOOR_KEY] and\ncolour"
    assert newest["date"].startswith("20")
    assert oldest["subject"] == "first"
    assert "ann@example.test" not in str(outcome)


async def test_it_is_bounded_and_goes_on_where_it_stopped(harness: Harness) -> None:
    for number in range(4):
        commit(harness, "a", f"number {number}")

    first = await harness.use("git_log", limit=3)
    rest = await harness.use("git_log", limit=3, skip=3)

    assert [item["subject"] for item in first.result["commits"]] == [
        "number 3",
        "number 2",
        "number 1",
    ]
    assert not first.result["complete"]
    assert [item["subject"] for item in rest.result["commits"]] == ["number 0"]
    assert rest.result["complete"]


async def test_paths_and_revisions_choose_among_the_commits(harness: Harness) -> None:
    commit(harness, "a", "of a")
    commit(harness, "*", "of a star")

    starred = await harness.use("git_log", paths=["*"])
    before = await harness.use("git_log", revision="HEAD~1")
    between = await harness.use("git_log", revision="HEAD~1..HEAD")

    assert [item["subject"] for item in starred.result["commits"]] == ["of a star"]
    assert [item["subject"] for item in before.result["commits"]] == ["of a"]
    assert [item["subject"] for item in between.result["commits"]] == ["of a star"]


async def test_a_repository_without_commits_has_none(harness: Harness) -> None:
    outcome = await harness.use("git_log")

    assert outcome.result == {"commits": [], "count": 0, "complete": True}


@pytest.mark.parametrize("revision", ["--output=x", "-p", "a b", "nowhere"])
async def test_what_is_no_revision_is_refused(harness: Harness, revision: str) -> None:
    commit(harness, "a", "first")

    try:
        outcome = await harness.use("git_log", revision=revision)
    except BadArguments:
        return
    assert "git log failed" in outcome.error


async def test_a_program_that_the_repository_names_for_signatures_is_not_run(
    harness: Harness, tmp_path: Path
) -> None:
    commit(harness, "a", "first")
    ran = tmp_path / "ran"
    program = tmp_path / "gpg"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    os.chmod(program, 0o755)
    git(harness.root, "config", "gpg.program", str(program))
    git(harness.root, "config", "log.showSignature", "true")
    head, body = git(harness.root, "cat-file", "commit", "HEAD").split("\n\n", 1)
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    raw = f"{head}\n{signature}\n\n{body}\n"
    signed = git(harness.root, "hash-object", "-t", "commit", "-w", "--stdin", stdin=raw)
    git(harness.root, "update-ref", "HEAD", signed)
    git(harness.root, "log", "--format=%H")
    assert ran.exists()  # git itself would run it
    ran.unlink()

    outcome = await harness.use("git_log")

    assert outcome.result["commits"][0]["commit"] == signed
    assert not ran.exists()
