"""Layout V: an ordinary worktree outside; inside, a private git directory mounted over the user's."""

from __future__ import annotations

import os
from pathlib import Path

from podium.domain.launching import Confinement, Mount
from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.alternates import alternates_of
from podium.workspaces.git.pointer import put_pointer_back
from podium.workspaces.git.private_dir import BASE_OBJECTS, PRIVATE_CONFIG, PRIVATE_HOOKS
from podium.workspaces.git.records import write_whole
from podium.workspaces.git.zones import check_plain, closed_state, pin_zones

DRAFT = "git.draft"
"""A private git directory that is being made anew."""
NEXT = "git.next"
"""One that is whole and about to take the place of `git`."""


def confinement_of(record: WorkspaceRecord) -> Confinement:
    """What is to be mounted, checked just now. Raises `WorkspaceTampered`.

    The worktree's `.git` is made what it was; what stood in its place is told when the turn ends.
    Everything the agent cannot write is checked too: it may have run without confinement before.
    """
    private, worktree, git_dir = Path(record.private), record.path, record.git_dir
    _check_layout(record)
    mounts = [
        Mount(source=str(private / "home"), target=str(private / "home"), writable=True),
        Mount(source=worktree, target=worktree, writable=True),
        Mount(source=f"{worktree}/.git", target=f"{worktree}/.git", put_back=True),
        *closed_state(record),
        Mount(source=str(private / "git"), target=git_dir, writable=True),
        Mount(source=f"{git_dir}/objects", target=f"{git_dir}/{BASE_OBJECTS}"),
        *(Mount(source=real, target=named) for named, real in alternates_of(f"{git_dir}/objects")),
        Mount(source=str(private / PRIVATE_CONFIG), target=f"{git_dir}/config"),
        # Not its own empty one: where nothing is mounted, what lies in a writable folder would close that.
        Mount(source=str(private / PRIVATE_HOOKS), target=f"{git_dir}/hooks"),
    ]
    return Confinement(
        kind="kernel",
        mounts=tuple(mounts),
        pinned=pin_zones(worktree, record.forbidden),
        home=str(private / "home"),
        unmounted_env={
            "GIT_DIR": str(private / "git/worktrees" / record.admin),
            "GIT_WORK_TREE": worktree,
        },
        network="none",
    )


def _check_layout(record: WorkspaceRecord) -> None:
    """Raise `WorkspaceTampered` unless everything that is mounted is what it was made as."""
    finish_swap(Path(record.private))
    private = Path(record.private)
    for folder in ("home", PRIVATE_HOOKS, *folders_of_git(record)):
        check_plain(private / folder, "folder")
    check_plain(private / PRIVATE_CONFIG, "file")
    put_pointer_back(record)
    _renew_config(private)


def folders_of_git(record: WorkspaceRecord) -> tuple[str, ...]:
    """Folders of the private git directory that everything mounted there stands on, outer ones first."""
    inner = ("hooks", "objects", BASE_OBJECTS, "worktrees", f"worktrees/{record.admin}")
    return ("git", *(f"git/{name}" for name in inner))


def finish_swap(private: Path) -> None:
    """Put the next git directory in its place where a killed Podium had taken the old one away."""
    if (private / NEXT).is_dir() and not os.path.lexists(private / "git"):
        (private / NEXT).rename(private / "git")


def _renew_config(private: Path) -> None:
    """Unmounted, the agent may have written settings of its own; they last for one turn at most."""
    inner = private / "git/config"
    settings = (private / PRIVATE_CONFIG).read_bytes()
    if inner.is_symlink() or not inner.is_file() or inner.read_bytes() != settings:
        write_whole(inner, settings)
