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
from tests.integration.workspaces.rig import BwrapLauncher, needs_bwrap
from tests.integration.workspaces.yard import Yard, agent_commits, agent_git

pytestmark = needs_bwrap()


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    yard = Yard(tmp_path / "yard").build()
    (yard.repository / ".env").write_text("KEY=1\n")
    return yard


def confined(yard: Yard, told: list[str] | None = None) -> GitWorkspaces:
    launcher = BwrapLauncher()
    tell = (told if told is not None else []).append
    return GitWorkspaces(
        launcher, yard.state, SystemClock(), SystemIds(), secrets_in=lambda text: (), report=tell
    )


def spec(
    yard: Yard, set_up: SetupSpec, task: str = "task", forbidden: tuple[str, ...] = ()
) -> WorkspaceSpec:
    return WorkspaceSpec(
        task=task, repository=str(yard.repository), set_up=set_up, forbidden=forbidden
    )


async def test_a_workspace_has_its_files_ports_and_what_commands_made(yard: Yard) -> None:
    told: list[str] = []
    set_up = SetupSpec(
        copy_files=(".env",),
        ports=("WEB_PORT",),
        after_create=(("sh", "-c", "cat .env > made.log; echo $WEB_PORT >> made.log; echo done"),),
        ready=("test", "-f", "made.log"),
        seconds=60,
    )
    workspace = await confined(yard, told).create(spec(yard, set_up))
    port = workspace.record.ports["WEB_PORT"]
    assert (Path(workspace.record.path) / "made.log").read_text() == f"KEY=1\n{port}\n"
    assert "  done" in told
    reopened = await confined(yard).open(workspace.record.id)
    assert reopened.record.ports == {"WEB_PORT": port}


async def test_ports_of_living_workspaces_differ(yard: Yard) -> None:
    set_up = SetupSpec(ports=("A", "B"))
    first = await confined(yard).create(spec(yard, set_up, "first"))
    second = await confined(yard).create(spec(yard, set_up, "second"))
    assert len({*first.record.ports.values(), *second.record.ports.values()}) == 4


async def test_commands_cannot_reach_the_repository_nor_the_network(yard: Yard) -> None:
    attempts = (
        "echo x > $REPO/one.txt; git -C $REPO update-ref refs/heads/main $(git commit-tree "
        "-m x HEAD^{tree}); echo x > $REPO/.git/hooks/pre-commit; (exec 3<>/dev/tcp/127.0.0.1/9) "
        "2>/dev/null && echo reached; true"
    ).replace("$REPO", str(yard.repository))
    before = yard.refs()
    told: list[str] = []
    await confined(yard, told).create(
        spec(yard, SetupSpec(after_create=(("bash", "-c", attempts),)))
    )
    assert {name: at for name, at in yard.refs().items() if name in before} == before
    assert (yard.repository / "one.txt").read_text() == "one.txt\n"
    assert not (yard.repository / ".git" / "hooks" / "pre-commit").exists()
    assert "  reached" not in told


async def test_a_command_that_fails_leaves_nothing_and_its_output_is_told(yard: Yard) -> None:
    before = yard.refs()
    set_up = SetupSpec(
        copy_files=(".env",),
        ports=("PORT",),
        after_create=(("sh", "-c", "touch made; echo no compiler; exit 2"),),
    )
    with pytest.raises(SetUpFailed, match="no compiler"):
        await confined(yard).create(spec(yard, set_up))
    assert yard.refs() == before
    assert not (yard.folder / ".worktrees").exists()
    assert confined(yard).records.ids() == []
    assert await confined(yard).leftovers() == []
    assert not (yard.repository / ".git" / "worktrees").exists()


async def test_a_creation_that_is_cancelled_twice_is_undone_before_anybody_goes_on(
    yard: Yard,
) -> None:
    told: list[str] = []
    workspaces = confined(yard, told)
    stay = SetupSpec(after_create=(("sh", "-c", "echo up; sleep 600"),))
    creating = asyncio.create_task(workspaces.create(spec(yard, stay)))
    await retry_until(lambda: "  up" in told)
    async with confined(yard).records.repository_lock(str(yard.repository / ".git")):
        creating.cancel()
        await asyncio.wait({creating}, timeout=0.5)
        creating.cancel()
        await asyncio.wait({creating}, timeout=0.5)
        assert not creating.done()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert workspaces.records.ids() == []
    assert not (yard.folder / ".worktrees").exists()


async def test_a_file_that_is_not_there_is_told_before_anything_is_made(yard: Yard) -> None:
    with pytest.raises(BadInput, match=r"\.envv"):
        await confined(yard).create(spec(yard, SetupSpec(copy_files=(".envv",))))
    assert confined(yard).records.ids() == []
    assert not (yard.folder / ".worktrees").exists()


async def test_a_copied_file_may_be_forbidden_to_change(yard: Yard) -> None:
    overwrite = ("sh", "-c", "cat .env; echo x > .env || true")
    set_up = SetupSpec(copy_files=(".env",), after_create=(overwrite,))
    told: list[str] = []
    made = await confined(yard, told).create(spec(yard, set_up, forbidden=(".env",)))
    assert "  KEY=1" in told
    assert (Path(made.record.path) / ".env").read_text() == "KEY=1\n"


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [".env", "a b/#odd [x]*?!.txt "])
async def test_a_copied_file_that_git_does_not_ignore_is_no_work_and_never_comes_back(
    yard: Yard, name: str
) -> None:
    (yard.repository / name).parent.mkdir(exist_ok=True)
    (yard.repository / name).write_text("secret")
    made = await confined(yard).create(spec(yard, SetupSpec(copy_files=(name,))))
    assert made.record.copied == (name,)
    (listing,) = await confined(yard).listed()
    assert listing.kept is WorkLocation.UNCHANGED
    agent_commits(made.record, "work.txt")
    assert agent_git(made.record, "show", "--name-only", "--format=").split() == ["work.txt"]
    agent_git(made.record, "add", "--force", "--", name)
    agent_git(made.record, "commit", "--quiet", "--message=leak")
    with pytest.raises(ImportRefused, match="forbidden"):
        await made.deliver()


async def test_what_the_set_up_left_is_no_work_until_somebody_changes_it(yard: Yard) -> None:
    script = "mkdir __pycache__; echo x > __pycache__/a.pyc; echo y >> one.txt"
    set_up = SetupSpec(after_create=(("sh", "-c", script),))
    workspace = await confined(yard).create(spec(yard, set_up))
    worktree = Path(workspace.record.path)
    (listing,) = await confined(yard).listed()
    assert listing.kept is WorkLocation.UNCHANGED
    (worktree / "__pycache__/a.pyc").write_text("changed")
    (listing,) = await confined(yard).listed()
    assert listing.kept is WorkLocation.UNKNOWN
    assert "'__pycache__/a.pyc' not committed" in listing.because
    (worktree / "__pycache__/a.pyc").unlink()
    (worktree / "new.txt").write_text("x")
    (listing,) = await confined(yard).listed()
    assert "'new.txt' not committed" in listing.because
    (worktree / "new.txt").unlink()
    assert (await confined(yard).remove(workspace.record.id)).removed
