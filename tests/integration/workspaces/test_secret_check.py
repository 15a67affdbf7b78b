"""Every import is scanned for secrets: known values anywhere, well-known shapes where they are not test data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from podium.app.secrets import secret_finder
from podium.core.errors import SecretsCommitted
from podium.core.workspaces import WorkspaceRecord, WorkspaceSpec
from podium.git import GitWorkspaces
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Workspace
from podium.sandbox import ProcessLauncher
from podium.store import Redactor
from tests.integration.workspaces.git_project import GitProject, agent_commits, agent_git

VALUE = "correct-horse-7f3a91-battery"
TOKEN = "ghp_" + "0a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6a7b"


@pytest.fixture
def git_project(tmp_path: Path) -> GitProject:
    return GitProject(tmp_path).build()


async def made(git_project: GitProject, branch: str = "") -> Workspace:
    workspaces = GitWorkspaces(
        ProcessLauncher(),
        git_project.state,
        SystemClock(),
        SystemIds(),
        secrets_in=secret_finder(Redactor({"DEPLOY_PASSWORD": VALUE})),
        confined=False,
    )
    spec = WorkspaceSpec(task="task", repository=str(git_project.repository), branch=branch)
    return await workspaces.create(spec)


def taken_back_later(record: WorkspaceRecord) -> None:
    agent_commits(record, "new.txt", f"key = {VALUE}\n")
    agent_commits(record, "new.txt", "key = None\n")


def in_a_message(record: WorkspaceRecord) -> None:
    agent_git(record, "commit", "--quiet", "--allow-empty", f"--message=x\n\n{VALUE}")


def as_author(record: WorkspaceRecord) -> None:
    by = f"--author={VALUE} <ann@example.org>"
    agent_git(record, "commit", "--quiet", "--allow-empty", "--message=x", by)


def as_a_link(record: WorkspaceRecord) -> None:
    Path(record.path, "link").symlink_to(VALUE)
    agent_git(record, "add", "--all")
    agent_git(record, "commit", "--quiet", "--message=x")


def in_a_merge(record: WorkspaceRecord) -> None:
    agent_git(record, "commit", "--quiet", "--allow-empty", "--message=side")
    side = agent_git(record, "rev-parse", "HEAD")
    Path(record.path, "merged.txt").write_text(f"{VALUE}\n")
    agent_git(record, "add", "--all")
    tree = agent_git(record, "write-tree")
    parents = ("-p", record.base, "-p", side)
    merged = agent_git(record, "commit-tree", tree, *parents, "-m", "merged")
    agent_git(record, "reset", "--quiet", "--hard", merged)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("leaks", "where"),
    [
        (taken_back_later, "new.txt:1 (the value of DEPLOY_PASSWORD"),
        (lambda record: agent_commits(record, f"{VALUE}.txt"), "file name (the value of"),
        (lambda record: agent_commits(record, "tests/a.txt", VALUE), "tests/a.txt:1 (the value"),
        (lambda record: agent_commits(record, "new.txt", TOKEN), "looks like a github-token"),
        (in_a_message, "a commit's message (the value of DEPLOY_PASSWORD"),
        (as_author, "a commit's author"),
        (as_a_link, "link:1 (the value of DEPLOY_PASSWORD"),
        (in_a_merge, "merged.txt:1 (the value of DEPLOY_PASSWORD"),
    ],
)
async def test_a_commit_with_a_secret_does_not_come_back(
    git_project: GitProject, leaks: Callable[[WorkspaceRecord], object], where: str
) -> None:
    workspace = await made(git_project)
    Path(workspace.record.path, "tests").mkdir()
    leaks(workspace.record)
    before = git_project.refs()
    with pytest.raises(SecretsCommitted) as refused:
        await workspace.deliver()
    assert where in str(refused.value)
    assert VALUE not in str(refused.value)
    assert git_project.refs() == before


async def test_the_name_of_a_branch_is_looked_at(git_project: GitProject) -> None:
    workspace = await made(git_project, branch=f"task/{VALUE}")
    agent_commits(workspace.record, "new.txt")
    with pytest.raises(SecretsCommitted, match=r"the branch name.*`not_secret:` in their own"):
        await workspace.deliver()


async def test_what_looks_like_one_in_test_data_comes_back_and_is_named(
    git_project: GitProject,
) -> None:
    workspace = await made(git_project)
    Path(workspace.record.path, "tests").mkdir()
    agent_commits(workspace.record, "tests/answer.txt", f"token: {TOKEN}\n")
    delivery = await workspace.deliver()
    assert [lookalike.partition(" ")[0] for lookalike in delivery.lookalikes] == [
        "tests/answer.txt:1"
    ]


async def test_halves_of_a_secret_in_two_commits_are_found(git_project: GitProject) -> None:
    workspace = await made(git_project)
    half = len(VALUE) // 2
    agent_commits(workspace.record, "key.py", f'key = (\n  "{VALUE[:half]}"\n)\n')
    agent_commits(
        workspace.record, "key.py", f'key = (\n  "{VALUE[:half]}"\n  "{VALUE[half:]}"\n)\n'
    )
    with pytest.raises(SecretsCommitted, match="DEPLOY_PASSWORD"):
        await workspace.deliver()
