"""A user's repository with workspaces, and somebody who works in them as an agent does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from podium.core.workspaces import SetupSpec, WorkspaceRecord, WorkspaceSpec
from podium.git import GitWorkspaces
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Workspace
from podium.sandbox import ProcessLauncher
from tests.repositories import copy_repository

_WHO = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def run_git(*words: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """The user's own git."""
    done = subprocess.run(
        ["git", *words],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), **_WHO, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


class GitProject:
    """A repository with one branch, and the workspaces that are made of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = folder / "repository"
        self.state = folder / "state"
        self.secrets_in: Callable[[str], Sequence[str]] = lambda text: ()

    @property
    def workspaces(self) -> GitWorkspaces:
        """Fresh eyes each time: nothing is known but what lies on the disk."""
        return GitWorkspaces(
            ProcessLauncher(),
            self.state,
            SystemClock(),
            SystemIds(),
            secrets_in=self.secrets_in,
            confined=False,
        )

    def build(self) -> GitProject:
        copy_repository(self.repository, ("yard",), _make_repository)
        return self

    def git(self, *words: str) -> str:
        return run_git(*words, cwd=self.repository)

    async def made(self, task: str = "task", set_up: SetupSpec | None = None) -> Workspace:
        spec = WorkspaceSpec(
            task=task, repository=str(self.repository), set_up=set_up or SetupSpec()
        )
        return await self.workspaces.create(spec)

    def refs(self) -> dict[str, str]:
        listed = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        return dict(line.split(" ") for line in listed.splitlines())


def _make_repository(folder: Path) -> None:
    run_git("init", "--quiet", "--initial-branch=main", cwd=folder)
    run_git("config", "user.name", "Ann", cwd=folder)
    run_git("config", "user.email", "ann@example.org", cwd=folder)
    for name in ("one.txt", "src/two.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    (folder / ".gitignore").write_text("*.log\n")
    run_git("add", "--all", cwd=folder)
    run_git("commit", "--quiet", "--message=first", cwd=folder)


def agent_git(record: WorkspaceRecord, *words: str) -> str:
    """Git as an agent runs it in its workspace, where nothing is mounted."""
    env = {
        "GIT_DIR": str(Path(record.private) / "git" / "worktrees" / record.admin),
        "GIT_WORK_TREE": record.path,
    }
    return run_git(*words, cwd=Path(record.path), env=env)


def agent_commits(record: WorkspaceRecord, name: str, text: str = "work\n") -> str:
    """Write a file and commit it; gives the commit."""
    (Path(record.path) / name).write_text(text)
    agent_git(record, "add", "--all")
    agent_git(record, "commit", "--quiet", f"--message={name}")
    return agent_git(record, "rev-parse", "HEAD")
