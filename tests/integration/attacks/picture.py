"""A picture of everything outside the agent's own area, before and after."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from podium.core.workspaces import WorkspaceRecord
from tests.integration.attacks.arena import FORBIDDEN, Places

_OF_SUPERVISOR = ("delivered", "delivering", "quarantine", "turn", "keeper", "lock", "git", "home")
"""What changes in a workspace's private folder when a turn ends, or belongs to the agent."""

_Seen = tuple[int | str, ...]


class Picture:
    """Snapshot of all files: kind, mode, owner, size, links, times.

    The time of the last change of an inode cannot be set by anybody, so it tells of changes to content, mode,
    owner, attributes, flags and links alike, also of those that were taken back.
    """

    def __init__(self, places: Places, task: WorkspaceRecord) -> None:
        self._places = places
        self._own = _own_places(places, task)
        self.seen = dict(self._look())

    def _look(self) -> Iterator[tuple[str, _Seen]]:
        held = str(self._places.held_open)
        yield held, _facts(os.lstat(held))
        waiting = [str(self._places.root)]
        while waiting:
            folder = waiting.pop()
            yield folder, _folder_facts(os.lstat(folder))
            try:
                entries = list(os.scandir(folder))
            except OSError as error:
                yield folder, ("closed", str(error.strerror))
                continue
            for entry in entries:
                if entry.path in self._own and not entry.is_symlink():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry.path, _facts(entry.stat(follow_symlinks=False))

    def changed_to(self, after: Picture) -> list[str]:
        """In words, with paths from the arena on."""
        root = f"{self._places.root}/"
        found = []
        for path in sorted(self.seen.keys() | after.seen.keys()):
            before, now = self.seen.get(path), after.seen.get(path)
            if before != now:
                verb = "made" if before is None else "removed" if now is None else "changed"
                found.append(f"{verb} {path.removeprefix(root)}")
        return found


def _facts(status: os.stat_result) -> _Seen:
    return (
        stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid,
        status.st_size, status.st_nlink, status.st_mtime_ns, status.st_ctime_ns, status.st_ino,
    )  # fmt: skip


def _folder_facts(status: os.stat_result) -> _Seen:
    """Without times: lock files of the user's own git come and go in it."""
    return (status.st_mode, status.st_uid, status.st_gid, status.st_ino)


def _own_places(places: Places, task: WorkspaceRecord) -> set[str]:
    """Paths that may change: the agent's own, and what the supervisor itself does when a turn ends."""
    git_dir, private = places.repository / ".git", Path(task.private)
    admin = git_dir / "worktrees" / task.admin
    own = [Path(task.path), places.root / "sockets", *(private / name for name in _OF_SUPERVISOR)]
    own += [git_dir / task.branch, git_dir / "logs" / task.branch]
    own += [admin / name for name in ("index", "logs", "COMMIT_EDITMSG", "ORIG_HEAD")]
    return {str(path) for path in own}


class Zones:
    """The parts of the agent's worktree that it must leave alone."""

    def __init__(self, worktree: Path) -> None:
        self.seen: dict[str, _Seen] = {}
        for zone in (".git", *FORBIDDEN):
            self._look(worktree, zone)

    def _look(self, worktree: Path, zone: str) -> None:
        for part in [*reversed(Path(zone).parents)][1:]:
            self._see(worktree, str(part))
        self._see(worktree, zone)
        for path in sorted((worktree / zone).rglob("*")):
            self._see(worktree, str(path.relative_to(worktree)))

    def _see(self, worktree: Path, name: str) -> None:
        try:
            status = os.lstat(worktree / name)
        except OSError:
            return
        if stat.S_ISDIR(status.st_mode):
            self.seen[name] = _folder_facts(status)
        elif name == ".git" and stat.S_ISREG(status.st_mode):
            # Where nothing can be mounted it is written anew after each turn.
            self.seen[name] = (status.st_mode, status.st_uid, (worktree / name).read_text())
        else:
            self.seen[name] = _facts(status)

    def changed_to(self, after: Zones) -> list[str]:
        names = sorted(self.seen.keys() | after.seen.keys())
        return [f"changed {name} of the worktree" for name in names
                if self.seen.get(name) != after.seen.get(name)]  # fmt: skip


def left_behind(folder: Path) -> list[str]:
    """Files of the agent that are a danger to others by being there."""
    found = []
    for inner, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(inner, name)
            if ".podium" in os.path.relpath(path, folder).lower().split(os.sep):
                found.append(f"left Podium's state behind: {os.path.relpath(path, folder)}")
            try:
                status = os.lstat(path)
            except OSError:  # so deep that nobody can start it
                continue
            mode = status.st_mode
            lends = status.st_size and stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID)
            if lends or stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
                found.append(f"left {os.path.relpath(path, folder)} behind with mode {mode:o}")
    return found
