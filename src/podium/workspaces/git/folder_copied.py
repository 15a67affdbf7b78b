"""Copying what was seen in a folder, but for whatever would lead from the copy back to the original."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath

from podium.workspaces.git.alternates import alternates_of
from podium.workspaces.git.folder_walking import DOT_GIT, Seen
from podium.workspaces.git.private_refs import read_plain
from podium.workspaces.git.records import write_whole

_LEADING_BACK = ("worktrees", "index.lock", "remotes", "branches", "commondir", "gitdir")
"""In a git directory: other checkouts, other repositories, and a lock that nobody would take away."""
_SETTINGS = ("config", "config.worktree")
_ALTERNATES = "objects/info/alternates"
_POINTER_BYTES = 5_000


def copy_folder(root: Path, target: Path, seen: Seen, ready: Path) -> list[Path]:
    """Copy files, links and git directories; gives the files of settings of these.

    `ready` is where the copy will be worked in. Folders stay open to their owner, so that the copy can be worked in and removed.
    """
    settings = _copy_plain(root, target, seen, "")
    for path in seen.links:
        if DOT_GIT not in PurePosixPath(path).parts:
            (target / path).symlink_to(_led_inside(root, ready, path))
    return settings


def copy_repository(common: Path, admin: Path, target: Path, seen: Seen) -> list[Path]:
    """A git directory of its own, out of the one that a linked worktree shares and what it has itself."""
    settings = _copy_plain(common, target, seen, f"{DOT_GIT}/")
    for name in ("HEAD", "index"):
        if content := read_plain(admin / name):
            write_whole(target / name, content)
    return settings


def _copy_plain(source: Path, target: Path, seen: Seen, above: str) -> list[Path]:
    """`above` is where the source would lie in a whole copy."""
    target.mkdir(mode=0o700)
    for path, mode in seen.folders.items():
        if not _leads_back(source, path, above):
            (target / path).mkdir(mode=0o700)
            (target / path).chmod(mode | 0o700)
    settings = []
    for path, mode in seen.files.items():
        if _leads_back(source, path, above):
            continue
        _copy_file(source / path, target / path, mode)
        if _in_git(above + path) and path.endswith(_ALTERNATES):
            _bring_alternates(source / path, target / path)
        if _in_git(above + path) and path.rpartition("/")[2] in _SETTINGS:
            settings.append(target / path)
    return settings


def _copy_file(source: Path, target: Path, mode: int) -> None:
    shutil.copyfile(source, target, follow_symlinks=False)
    if not target.is_symlink():
        target.chmod(mode | 0o400)


def _led_inside(root: Path, ready: Path, path: str) -> str:
    """Where a link of the copy leads: one that names the original by its whole path would lead back there."""
    leads = os.readlink(root / path)  # noqa: PTH115 — a `Path` is not the text as it stands
    within = PurePosixPath(leads).is_relative_to(root)
    return str(ready / PurePosixPath(leads).relative_to(root)) if within else leads


def _in_git(path: str) -> bool:
    """Whether it lies in a git directory, and is no ref that somebody gave an odd name."""
    parts = PurePosixPath(path).parts
    return DOT_GIT in parts[:-1] and not {"refs", "logs"}.intersection(parts)


def _leads_back(source: Path, path: str, above: str) -> bool:
    parts = PurePosixPath(above + path).parts
    if DOT_GIT not in parts:
        return False
    within = parts[parts.index(DOT_GIT) + 1 :]
    if not within:
        return (source / path).is_file() and not _points_inside(source, path)
    if within[0] == "modules":
        within = within[2:]
    return bool(within) and within[0] in _LEADING_BACK


def _points_inside(root: Path, path: str) -> bool:
    """Whether the pointer of a submodule names its repository by a way that stays in the folder."""
    text = os.fsdecode(read_plain(root / path, _POINTER_BYTES)).strip()
    leads = text.removeprefix("gitdir:").strip()
    there = os.path.normpath(root / PurePosixPath(path).parent / leads)
    return not PurePosixPath(leads).is_absolute() and Path(there).is_relative_to(root)


def _bring_alternates(source: Path, target: Path) -> None:
    """A relative way to borrowed objects leads nowhere from the copy. git only ever reads there."""
    lines = "".join(f"{real}\n" for _, real in alternates_of(str(source.parents[1])))
    write_whole(target, os.fsencode(lines))
