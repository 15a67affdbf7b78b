"""The set-up as a part of making a workspace: whole, confined, and undone when it fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podium.core.errors import BadInput, ImportRefused, SetUpFailed
from podium.core.workspaces import SetupSpec, WorkLocation, WorkspaceSpec
from podium.git import GitWorkspaces
from podium.platform.system_clock import SystemClock, SystemIds
from podium.testing import retry_until
from tests.integration.workspaces.git_project import GitProject, agent_commits, agent_git
from tests.integration.workspaces.workspace_harness import BwrapLauncher, needs_bwrap

pytestmark = needs_bwrap()


@pytest.fixture
def git_project(tmp_path: Path) -> GitProject:
    git_project = GitProject(tmp_path / "yard").build()
    (git_project.repository / ".env").write_text("KEY=1\n")
    return git_project


def confined(git_project: GitProject, messages: list[str] | None = None) -> GitWorkspaces:
    launcher = BwrapLauncher()
    notify = (messages if messages is not None else []).append
    return GitWorkspaces(
        launcher,
        git_project.state,
        SystemClock(),
        SystemIds(),
        secrets_in=lambda text: (),
        report=notify,
    )


def spec(
    git_project: GitProject, set_up: SetupSpec, task: str = "task", forbidden: tuple[str, ...] = ()
) -> WorkspaceSpec:
    return WorkspaceSpec(
        task=task, repository=str(git_project.repository), set_up=set_up, forbidden=forbidden
    )


async def test_a_workspace_has_its_files_ports_and_what_commands_made(
    git_project: GitProject,
) -> None:
    messages: list[str] = []
    set_up = SetupSpec(
        copy_files=(".env",),
        ports=("WEB_PORT",),
        after_create=(("sh", "-c", "cat .env > made.log; echo $WEB_PORT >> made.log; echo done"),),
        ready=("test", "-f", "made.log"),
        seconds=60,
    )
    workspace = await confined(git_project, messages).create(spec(git_project, set_up))
    port = workspace.record.ports["WEB_PORT"]
    assert (Path(workspace.record.path) / "made.log").read_text() == f"KEY=1\n{port}\n"
    assert "  done" in messages
    reopened = await confined(git_project).open(workspace.record.id)
    assert reopened.record.ports == {"WEB_PORT": port}


async def test_ports_of_living_workspaces_differ(git_project: GitProject) -> None:
    set_up = SetupSpec(ports=("A", "B"))
    first = await confined(git_project).create(spec(git_project, set_up, "first"))
    second = await confined(git_project).create(spec(git_project, set_up, "second"))
    assert len({*first.record.ports.values(), *second.record.ports.values()}) == 4


async def test_commands_cannot_reach_the_repository_nor_the_network(
    git_project: GitProject,
) -> None:
    attempts = (
        "echo x > $REPO/one.txt; git -C $REPO update-ref refs/heads/main $(git commit-tree "
        "-m x HEAD^{tree}); echo x > $REPO/.git/hooks/pre-commit; (exec 3<>/dev/tcp/127.0.0.1/9) "
        "2>/dev/null && echo reached; true"
    ).replace("$REPO", str(git_project.repository))
    before = git_project.refs()
    messages: list[str] = []
    await confined(git_project, messages).create(
        spec(git_project, SetupSpec(after_create=(("bash", "-c", attempts),)))
    )
    assert {name: at for name, at in git_project.refs().items() if name in before} == before
    assert (git_project.repository / "one.txt").read_text() == "one.txt\n"
    assert not (git_project.repository / ".git" / "hooks" / "pre-commit").exists()
    assert "  reached" not in messages


async def test_failed_command_leaves_nothing_and_its_output_is_reported(
    git_project: GitProject,
) -> None:
    before = git_project.refs()
    set_up = SetupSpec(
        copy_files=(".env",),
        ports=("PORT",),
        after_create=(("sh", "-c", "touch made; echo no compiler; exit 2"),),
    )
    with pytest.raises(SetUpFailed, match="no compiler"):
        await confined(git_project).create(spec(git_project, set_up))
    assert git_project.refs() == before
    assert not (git_project.folder / ".worktrees").exists()
    assert confined(git_project).records.ids() == []
    assert await confined(git_project).leftovers() == []
    assert not (git_project.repository / ".git" / "worktrees").exists()


async def test_a_creation_that_is_cancelled_twice_is_undone_before_anybody_goes_on(
    git_project: GitProject,
) -> None:
    messages: list[str] = []
    workspaces = confined(git_project, messages)
    stay = SetupSpec(after_create=(("sh", "-c", "echo up; sleep 600"),))
    creating = asyncio.create_task(workspaces.create(spec(git_project, stay)))
    await retry_until(lambda: "  up" in messages)
    async with confined(git_project).records.repository_lock(str(git_project.repository / ".git")):
        creating.cancel()
        await asyncio.wait({creating}, timeout=0.5)
        creating.cancel()
        await asyncio.wait({creating}, timeout=0.5)
        assert not creating.done()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert workspaces.records.ids() == []
    assert not (git_project.folder / ".worktrees").exists()


async def test_missing_file_is_reported_before_anything_is_made(git_project: GitProject) -> None:
    with pytest.raises(BadInput, match=r"\.envv"):
        await confined(git_project).create(spec(git_project, SetupSpec(copy_files=(".envv",))))
    assert confined(git_project).records.ids() == []
    assert not (git_project.folder / ".worktrees").exists()


async def test_a_copied_file_may_be_forbidden_to_change(git_project: GitProject) -> None:
    overwrite = ("sh", "-c", "cat .env; echo x > .env || true")
    set_up = SetupSpec(copy_files=(".env",), after_create=(overwrite,))
    messages: list[str] = []
    made = await confined(git_project, messages).create(
        spec(git_project, set_up, forbidden=(".env",))
    )
    assert "  KEY=1" in messages
    assert (Path(made.record.path) / ".env").read_text() == "KEY=1\n"


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [".env", "a b/#odd [x]*?!.txt "])
async def test_a_copied_file_that_git_does_not_ignore_is_no_work_and_never_comes_back(
    git_project: GitProject, name: str
) -> None:
    (git_project.repository / name).parent.mkdir(exist_ok=True)
    (git_project.repository / name).write_text("secret")
    made = await confined(git_project).create(spec(git_project, SetupSpec(copy_files=(name,))))
    assert made.record.copied == (name,)
    (listing,) = await confined(git_project).listed()
    assert listing.kept is WorkLocation.UNCHANGED
    agent_commits(made.record, "work.txt")
    assert agent_git(made.record, "show", "--name-only", "--format=").split() == ["work.txt"]
    agent_git(made.record, "add", "--force", "--", name)
    agent_git(made.record, "commit", "--quiet", "--message=leak")
    with pytest.raises(ImportRefused, match="forbidden"):
        await made.deliver()


async def test_what_the_set_up_left_is_no_work_until_somebody_changes_it(
    git_project: GitProject,
) -> None:
    script = "mkdir __pycache__; echo x > __pycache__/a.pyc; echo y >> one.txt"
    set_up = SetupSpec(after_create=(("sh", "-c", script),))
    workspace = await confined(git_project).create(spec(git_project, set_up))
    worktree = Path(workspace.record.path)
    (listing,) = await confined(git_project).listed()
    assert listing.kept is WorkLocation.UNCHANGED
    (worktree / "__pycache__/a.pyc").write_text("changed")
    (listing,) = await confined(git_project).listed()
    assert listing.kept is WorkLocation.UNKNOWN
    assert "'__pycache__/a.pyc' not committed" in listing.because
    (worktree / "__pycache__/a.pyc").unlink()
    (worktree / "new.txt").write_text("x")
    (listing,) = await confined(git_project).listed()
    assert "'new.txt' not committed" in listing.because
    (worktree / "new.txt").unlink()
    assert (await confined(git_project).remove(workspace.record.id)).removed
