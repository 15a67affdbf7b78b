from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from podium.core.errors import BadArguments
from tests.unit.tools.rig import SECRET, Rig, make_rig


def git(folder: Path, *words: str, stdin: str | None = None) -> str:
    ended = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, input=stdin
    )
    return ended.stdout.strip()


def commit(rig: Rig, path: str, message: str) -> None:
    with (rig.root / path).open("a") as file:
        file.write("more\n")
    git(rig.root, "add", path)
    git(rig.root, "commit", "--quiet", "-m", message)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = make_rig(tmp_path)
    git(rig.root, "init", "--quiet", "--initial-branch=main")
    git(rig.root, "config", "user.name", "Ann")
    git(rig.root, "config", "user.email", "ann@example.test")
    return rig


async def test_commits_are_told_as_plain_fields_the_newest_first(rig: Rig) -> None:
    commit(rig, "a", "first")
    commit(rig, "b", f"second\n\nwith {SECRET} and\n\x1b[31mcolour")

    outcome = await rig.use("git_log")

    newest, oldest = outcome.result["commits"]
    assert outcome.result["complete"]
    assert newest["commit"] == git(rig.root, "rev-parse", "HEAD")
    assert (newest["author"], newest["subject"]) == ("Ann", "second")
    assert newest["body"] == "with [redacted:DOOR_KEY] and\ncolour"
    assert newest["date"].startswith("20")
    assert oldest["subject"] == "first"
    assert "ann@example.test" not in str(outcome)


async def test_it_is_bounded_and_goes_on_where_it_stopped(rig: Rig) -> None:
    for number in range(4):
        commit(rig, "a", f"number {number}")

    first = await rig.use("git_log", limit=3)
    rest = await rig.use("git_log", limit=3, skip=3)

    assert [each["subject"] for each in first.result["commits"]] == [
        "number 3",
        "number 2",
        "number 1",
    ]
    assert not first.result["complete"]
    assert [each["subject"] for each in rest.result["commits"]] == ["number 0"]
    assert rest.result["complete"]


async def test_paths_and_revisions_choose_among_the_commits(rig: Rig) -> None:
    commit(rig, "a", "of a")
    commit(rig, "*", "of a star")

    starred = await rig.use("git_log", paths=["*"])
    before = await rig.use("git_log", revision="HEAD~1")
    between = await rig.use("git_log", revision="HEAD~1..HEAD")

    assert [each["subject"] for each in starred.result["commits"]] == ["of a star"]
    assert [each["subject"] for each in before.result["commits"]] == ["of a"]
    assert [each["subject"] for each in between.result["commits"]] == ["of a star"]


async def test_a_repository_without_commits_has_none(rig: Rig) -> None:
    outcome = await rig.use("git_log")

    assert outcome.result == {"commits": [], "count": 0, "complete": True}


@pytest.mark.parametrize("revision", ["--output=x", "-p", "a b", "nowhere"])
async def test_what_is_no_revision_is_refused(rig: Rig, revision: str) -> None:
    commit(rig, "a", "first")

    try:
        outcome = await rig.use("git_log", revision=revision)
    except BadArguments:
        return
    assert "git log failed" in outcome.error


async def test_a_program_that_the_repository_names_for_signatures_is_not_run(
    rig: Rig, tmp_path: Path
) -> None:
    commit(rig, "a", "first")
    ran = tmp_path / "ran"
    program = tmp_path / "gpg"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    os.chmod(program, 0o755)
    git(rig.root, "config", "gpg.program", str(program))
    git(rig.root, "config", "log.showSignature", "true")
    head, body = git(rig.root, "cat-file", "commit", "HEAD").split("\n\n", 1)
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    raw = f"{head}\n{signature}\n\n{body}\n"
    signed = git(rig.root, "hash-object", "-t", "commit", "-w", "--stdin", stdin=raw)
    git(rig.root, "update-ref", "HEAD", signed)
    git(rig.root, "log", "--format=%H")
    assert ran.exists()  # git itself would run it
    ran.unlink()

    outcome = await rig.use("git_log")

    assert outcome.result["commits"][0]["commit"] == signed
    assert not ran.exists()
