"""What of a workspace would let codex's commands write outside of it."""

from __future__ import annotations

from pathlib import Path

from podium.domain.errors import NotPossibleNow

LONGEST_POINTER = 4096


def refuse_foreign_git(agent: str, workspace: Path) -> None:
    """Raise `NotPossibleNow` when `.git` leads to a repository that does not know this workspace.

    Commits need `.git` to be writable inside of codex's sandbox. An agent may plant a file there that
    names any other repository, whose hooks and settings could then be written.
    """
    git = workspace / ".git"
    if not git.is_symlink() and not git.is_file():
        return
    target = _target(git)
    if target is None or _is_inside(target, workspace) or _is_linked_worktree(target, git):
        return
    raise NotPossibleNow(
        f"agent {agent!r} cannot work in {str(workspace)!r}: its .git leads to {str(target)!r}, "
        "which is no worktree of it, and codex could write there; `git worktree repair` mends a "
        "worktree that was moved, and else let another agent do it"
    )


def _target(git: Path) -> Path | None:
    """Where it leads; None for a file that says nothing of the kind, which nobody follows."""
    try:
        if git.is_symlink():
            return git.resolve()
        words = _read(git)
        if not words.startswith("gitdir:"):
            return None
        return (git.parent / words.removeprefix("gitdir:").strip()).resolve()
    except (OSError, ValueError, RuntimeError):  # the last for links in a circle
        return git


def _is_inside(target: Path, workspace: Path) -> bool:
    return target.is_relative_to(workspace.resolve())


def _is_linked_worktree(folder: Path, git: Path) -> bool:
    """Whether the repository there names this very workspace as one of its own."""
    if folder.parent.name != "worktrees":
        return False
    try:
        named = _read(folder / "gitdir").strip()
        return bool(named) and (folder / named).resolve() == git.parent.resolve() / ".git"
    except (OSError, ValueError, RuntimeError):
        return False


def _read(file: Path) -> str:
    with file.open(errors="replace") as opened:
        return opened.read(LONGEST_POINTER)
