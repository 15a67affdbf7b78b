"""Delivery without a forge: a file contains everything that a pull request would."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow
from tests.integration.forge.rig import BRANCH, Yard
from tests.integration.workspaces.rig import git


async def test_the_file_holds_title_body_and_commands_that_merge(tmp_path: Path) -> None:
    yard = Yard(tmp_path, remote=None)
    made = await yard.forge().deliver(yard.wish())
    page = Path(made.file).read_text()
    assert page.startswith("# Greet the world\n")
    assert "All checks passed." in page
    assert f"Branch `{BRANCH}` at `{yard.tip}`, in this repository only" in page
    assert (made.pushed, made.url, made.number) == (False, "", None)
    assert "no remote" in made.why_local
    assert made.why_local in page
    _run_commands(page)
    assert git(yard.repository, "log", "--format=%s", "-1", "main") == f"Merge branch '{BRANCH}'"
    assert git(yard.repository, "rev-parse", "main^2") == yard.tip


async def test_with_a_remote_the_commands_push_the_merge(tmp_path: Path) -> None:
    yard = Yard(tmp_path, remote=str(tmp_path / "remote.git"))
    page = Path((await yard.forge().deliver(yard.wish())).file).read_text()
    assert "pushed to `origin`" in page
    _run_commands(page)
    assert git(yard.bare, "rev-parse", "main^2") == yard.tip


async def test_without_a_token_a_github_branch_is_pushed_and_a_file_written(yard: Yard) -> None:
    made = await yard.forge(token="").deliver(yard.wish())
    assert made.why_local == "no token for github.com"
    assert (made.pushed, yard.there()[BRANCH]) == (True, yard.tip)


async def test_nothing_leaves_when_pushing_is_off(yard: Yard) -> None:
    made = await yard.forge(push=False).deliver(yard.wish())
    assert made.why_local == "pushing is disabled in the settings"
    assert (made.pushed, yard.there()) == (False, {"main": yard.base})


async def test_a_repository_may_be_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard = Yard(tmp_path, remote=None)
    monkeypatch.chdir(tmp_path)
    page = Path((await yard.forge().deliver(yard.wish(repository="repo"))).file).read_text()
    monkeypatch.chdir("/")
    _run_commands(page)
    assert git(yard.repository, "rev-parse", "main^2") == yard.tip


async def test_a_branch_with_signs_of_the_shell_is_quoted(tmp_path: Path) -> None:
    yard = Yard(tmp_path, remote=None)
    odd = "task/it's;$(touch${IFS}owned)"
    yard.user("branch", odd, yard.tip)
    made = await yard.forge().deliver(yard.wish(branch=odd))
    _run_commands(Path(made.file).read_text())
    assert not (yard.repository / "owned").exists()
    assert git(yard.repository, "rev-parse", "main^2") == yard.tip


@pytest.mark.sample(2)
@pytest.mark.parametrize("run_id", ["../../escape", "/etc/passwd", "a/b", "..", "x" * 400, "\0"])
async def test_no_run_id_leads_out_of_the_folder(tmp_path: Path, run_id: str) -> None:
    yard = Yard(tmp_path, remote=None)
    made = await yard.forge().deliver(yard.wish(run_id=run_id))
    assert Path(made.file).parent == yard.pulls
    assert len(os.listdir(yard.pulls)) == 1


async def test_ids_that_look_alike_are_two_files_and_the_same_one_is_one(tmp_path: Path) -> None:
    yard = Yard(tmp_path, remote=None)
    for run_id in ("a/b", "a-b", "a b", "a/b", ""):
        await yard.forge().deliver(yard.wish(run_id=run_id))
    assert len(os.listdir(yard.pulls)) == 4


async def test_a_body_full_of_escapes_is_written_as_text(tmp_path: Path) -> None:
    yard = Yard(tmp_path, remote=None)
    body = "one\r\ntwo\x1b]0;owned\x07\x00 \ud800"
    made = await yard.forge().deliver(yard.wish(body=body, title="a\nb\x1b[2J"))
    page = Path(made.file).read_text()
    assert page.startswith("# a b [2J\n")
    assert page.endswith("one\ntwo]0;owned ?\n")


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    yard = Yard(tmp_path, remote=None)
    yard.pulls.write_text("in the way")
    with pytest.raises(NotPossibleNow, match="cannot write the pull request"):
        await yard.forge().deliver(yard.wish())


def _run_commands(page: str) -> None:
    """Do what the page says, as its reader would."""
    found = re.search(r"```sh\n(.*?)\n```", page, re.DOTALL)
    assert found
    me = {"GIT_AUTHOR_NAME": "Uma", "GIT_AUTHOR_EMAIL": "uma@example.org"}
    me |= {"GIT_COMMITTER_NAME": "Uma", "GIT_COMMITTER_EMAIL": "uma@example.org"}
    env = {**os.environ, **me, "GIT_MERGE_AUTOEDIT": "no"}
    subprocess.run(["sh", "-ec", found[1]], env=env, check=True, capture_output=True)
