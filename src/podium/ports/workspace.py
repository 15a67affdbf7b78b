"""Workspaces: an agent's own place in a repository, and the one way back out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from podium.domain.launching import Confinement
from podium.domain.workspaces import (
    Delivery,
    Leftover,
    Recovered,
    RefsSeen,
    Removal,
    RemovedWorkspace,
    Snapshot,
    TurnEnd,
    WorkspaceListing,
    WorkspaceRecord,
    WorkspaceWish,
)


class Workspace(Protocol):
    """A worktree with a branch of its own. The user's repository is out of reach of whoever works in it."""

    @property
    def record(self) -> WorkspaceRecord: ...

    async def confinement(self) -> Confinement:
        """Its mounts and pinned paths, checked just now. Raises when somebody tampered with them.

        Ask for it before each start, while no process of the agent lives.
        """
        ...

    async def begin_turn(self) -> RefsSeen:
        """See what the user's repository holds before an agent works."""
        ...

    async def end_turn(self, seen: RefsSeen) -> TurnEnd:
        """Tidy up when all processes are dead: planted repositories go, changed refs come back."""
        ...

    async def deliver(self) -> Delivery:
        """Take the agent's commits through the import gate and move the one branch.

        Raises `ImportRefused` and changes nothing when they are not what may come back.
        """
        ...

    async def snapshot(self, why: str) -> Snapshot:
        """Keep everything in the worktree, untracked files included."""
        ...

    async def restore(self, snapshot: Snapshot) -> None:
        """Put the worktree back to a snapshot. What is there now is kept as another one first."""
        ...


class Workspaces(Protocol):
    """All workspaces of a user."""

    async def create(self, wish: WorkspaceWish) -> Workspace:
        """Make one, whole or not at all."""
        ...

    async def open(self, workspace_id: str) -> Workspace:
        """One that was made before. Raises `UnknownId`."""
        ...

    def at(self, path: str) -> WorkspaceRecord | None:
        """The workspace whose worktree this folder is."""
        ...

    def known(self) -> Sequence[WorkspaceRecord]:
        """All that are whole, oldest first, without a look at what is in them."""
        ...

    async def repository_of(self, folder: str) -> str:
        """The common git directory of the repository that a folder lies in; empty when in none."""
        ...

    async def listed(self, git_dir: str = "") -> Sequence[WorkspaceListing]:
        """All of them, or those of one repository, oldest first."""
        ...

    async def remove(self, workspace_id: str) -> Removal:
        """Remove one whose work is safe elsewhere, snapshotting what is not committed first.

        One whose work is not, or that somebody works in, stays as it is, and the answer says why.
        """
        ...

    async def leftovers(self) -> Sequence[Leftover]:
        """What killed processes left of workspaces that were being made or removed."""
        ...

    async def clear(self, leftover_id: str) -> Removal:
        """Finish what a killed process began. Raises `UnknownId`."""
        ...

    async def removed(self) -> Sequence[RemovedWorkspace]:
        """Those that are no more and whose snapshots are still there, oldest first."""
        ...

    async def recover(self, workspace_id: str, branch: str) -> Recovered:
        """Make a branch of the newest snapshot of a workspace, also of one that was removed.

        It holds what git would carry; the snapshot has the rest.
        """
        ...

    async def forget(self, workspace_id: str) -> Sequence[Snapshot]:
        """Drop all snapshots of a workspace that was removed, and give them. They cannot come back."""
        ...
