"""Actions of a process on a workspace until it is killed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.integration.workspaces.git_project import GitProject, agent_commits


def live(folder: str, task: str) -> None:
    """Make, work, deliver, work on, snapshot and remove; note every commit that was made."""
    asyncio.run(_live(GitProject(Path(folder)), task))


async def _live(git_project: GitProject, task: str) -> None:
    note(git_project, "began")
    workspace = await git_project.made(task)
    note(git_project, agent_commits(workspace.record, f"{task}-1.txt"))
    await workspace.deliver()
    note(git_project, agent_commits(workspace.record, f"{task}-2.txt"))
    (Path(workspace.record.path) / "untracked.txt").write_text("not committed\n")
    await workspace.snapshot("told to")
    await git_project.workspaces.remove(workspace.record.id)
    note(git_project, "ended")


def note(git_project: GitProject, line: str) -> None:
    """Written by one call, so that a kill leaves whole lines."""
    handle = os.open(git_project.folder / "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def noted(git_project: GitProject) -> list[str]:
    path = git_project.folder / "notes"
    return path.read_text().split() if path.exists() else []
