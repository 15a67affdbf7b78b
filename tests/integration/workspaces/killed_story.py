"""Actions of a process on a workspace until it is killed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.integration.workspaces.yard import Yard, agent_commits


def live(folder: str, task: str) -> None:
    """Make, work, deliver, work on, snapshot and remove; note every commit that was made."""
    asyncio.run(_live(Yard(Path(folder)), task))


async def _live(yard: Yard, task: str) -> None:
    note(yard, "began")
    workspace = await yard.made(task)
    note(yard, agent_commits(workspace.record, f"{task}-1.txt"))
    await workspace.deliver()
    note(yard, agent_commits(workspace.record, f"{task}-2.txt"))
    (Path(workspace.record.path) / "untracked.txt").write_text("not committed\n")
    await workspace.snapshot("told to")
    await yard.workspaces.remove(workspace.record.id)
    note(yard, "ended")


def note(yard: Yard, line: str) -> None:
    """Written by one call, so that a kill leaves whole lines."""
    handle = os.open(yard.folder / "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def noted(yard: Yard) -> list[str]:
    path = yard.folder / "notes"
    return path.read_text().split() if path.exists() else []
