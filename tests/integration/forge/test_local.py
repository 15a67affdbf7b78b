"""Delivery without a forge: a file contains everything that a pull request would."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow
from tests.integration.forge.remote_project import BRANCH, RemoteProject
from tests.integration.workspaces.workspace_harness import git


async def test_the_file_holds_title_body_and_commands_that_merge(tmp_path: Path) -> None:
    remote_project = RemoteProject(tmp_path, remote=None)
    made = await remote_project.forge().deliver(remote_project.draft())
    page = Path(made.file).read_text()
    assert page.startswith("# Greet the world\n")
    assert "All checks passed." in page
    assert f"Branch `{BRANCH}` at `{remote_project.tip}`, in this repository only" in page
    assert (made.pushed, made.url, made.number) == (False, "", None)
    assert "no remote" in made.why_local
    assert made.why_local in page
    _run_commands(page)
    assert (
        git(remote_project.repository, "log", "--format=%s", "-1", "main")
        == f"Merge branch '{BRANCH}'"
    )
    assert git(remote_project.repository, "rev-parse", "main^2") == remote_project.tip


async def test_with_a_remote_the_commands_push_the_merge(tmp_path: Path) -> None:
    remote_project = RemoteProject(tmp_path, remote=str(tmp_path / "remote.git"))
    page = Path((await remote_project.forge().deliver(remote_project.draft())).file).read_text()
    assert "pushed to `origin`" in page
    _run_commands(page)
    assert git(remote_project.bare, "rev-parse", "main^2") == remote_project.tip


async def test_without_a_token_a_github_branch_is_pushed_and_a_file_written(
    remote_project: RemoteProject,
) -> None:
    made = await remote_project.forge(token="").deliver(remote_project.draft())
    assert made.why_local == "no token for github.com"
    assert (made.pushed, remote_project.there()[BRANCH]) == (True, remote_project.tip)


async def test_nothing_leaves_when_pushing_is_off(remote_project: RemoteProject) -> None:
    made = await remote_project.forge(push=False).deliver(remote_project.draft())
    assert made.why_local == "pushing is disabled in the settings"
    assert (made.pushed, remote_project.there()) == (False, {"main": remote_project.base})


async def test_a_repository_may_be_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote_project = RemoteProject(tmp_path, remote=None)
    monkeypatch.chdir(tmp_path)
    page = Path(
        (await remote_project.forge().deliver(remote_project.draft(repository="repo"))).file
    ).read_text()
    monkeypatch.chdir("/")
    _run_commands(page)
    assert git(remote_project.repository, "rev-parse", "main^2") == remote_project.tip


async def test_a_branch_with_signs_of_the_shell_is_quoted(tmp_path: Path) -> None:
    remote_project = RemoteProject(tmp_path, remote=None)
    odd = "task/it's;$(touch${IFS}owned)"
    remote_project.user("branch", odd, remote_project.tip)
    made = await remote_project.forge().deliver(remote_project.draft(branch=odd))
    _run_commands(Path(made.file).read_text())
    assert not (remote_project.repository / "owned").exists()
    assert git(remote_project.repository, "rev-parse", "main^2") == remote_project.tip


@pytest.mark.sample(2)
@pytest.mark.parametrize("run_id", ["../../escape", "/etc/passwd", "a/b", "..", "x" * 400, "\0"])
async def test_no_run_id_leads_out_of_the_folder(tmp_path: Path, run_id: str) -> None:
    remote_project = RemoteProject(tmp_path, remote=None)
    made = await remote_project.forge().deliver(remote_project.draft(run_id=run_id))
    assert Path(made.file).parent == remote_project.pulls
    assert len(os.listdir(remote_project.pulls)) == 1


async def test_ids_that_look_alike_are_two_files_and_the_same_one_is_one(tmp_path: Path) -> None:
    remote_project = RemoteProject(tmp_path, remote=None)
    for run_id in ("a/b", "a-b", "a b", "a/b", ""):
        await remote_project.forge().deliver(remote_project.draft(run_id=run_id))
    assert len(os.listdir(remote_project.pulls)) == 4


async def test_a_body_full_of_escapes_is_written_as_text(tmp_path: Path) -> None:
    remote_project = RemoteProject(tmp_path, remote=None)
    body = "one\r\ntwo\x1b]0;owned\x07\x00 \ud800"
    made = await remote_project.forge().deliver(
        remote_project.draft(body=body, title="a\nb\x1b[2J")
    )
    page = Path(made.file).read_text()
    assert page.startswith("# a b [2J\n")
    assert page.endswith("one\ntwo]0;owned ?\n")


async def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    remote_project = RemoteProject(tmp_path, remote=None)
    remote_project.pulls.write_text("in the way")
    with pytest.raises(NotPossibleNow, match="cannot write the pull request"):
        await remote_project.forge().deliver(remote_project.draft())


def _run_commands(page: str) -> None:
    """Do what the page says, as its reader would."""
    found = re.search(r"```sh\n(.*?)\n```", page, re.DOTALL)
    assert found
    me = {"GIT_AUTHOR_NAME": "Uma", "GIT_AUTHOR_EMAIL": "uma@example.org"}
    me |= {"GIT_COMMITTER_NAME": "Uma", "GIT_COMMITTER_EMAIL": "uma@example.org"}
    env = {**os.environ, **me, "GIT_MERGE_AUTOEDIT": "no"}
    subprocess.run(["sh", "-ec", found[1]], env=env, check=True, capture_output=True)
