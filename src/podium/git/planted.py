"""Repositories and state folders that an agent planted in a worktree: detected, moved out, stored."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from podium.core.errors import WorkspaceTampered
from podium.core.protected_paths import GIT_DIR, STATE_DIR, protected_name
from podium.core.workspaces import WorkspaceRecord
from podium.git.git_command import Git, GitFailed
from podium.git.private_dir import read_plain, remove_pipes
from podium.git.worktree_objects import ObjectKeeper
from podium.platform.folder_tree import carry, entries_within, files_within

QUARANTINE = "quarantine"
_BORROWED = stat.S_ISUID | stat.S_ISGID
_BARE_PARTS = ("head", "config", "config.worktree", "commondir")
_MAX_PATH_BYTES = 3500
"""Of a folder that is looked into. Linux takes paths of 4096 bytes, with a name in that folder too."""


class _PlantedKind(Enum):
    FOLDER = auto()
    FILE = auto()
    """Or a link."""
    ODD = auto()
    """A pipe, socket or device."""


@dataclass(frozen=True)
class PlantedRepository:
    """Something in a worktree that git would take for a repository or a part of one, or wait for; or that Podium
    would take for its own state."""

    path: str
    may_be_tracked: bool
    """An embedded bare repository can be part of the project itself, such as data for its tests; so can a state folder."""


class PlantedScan(NamedTuple):
    """Result of one scan of a worktree."""

    planted: list[PlantedRepository]
    unread: list[str]
    """Folders that could not be looked into, in words."""


def find_planted(worktree: Path) -> PlantedScan:
    """All of them, by one walk that follows no link. The worktree's own `.git` does not count.

    Only while no process of the agent lives: each folder is opened by its path. One that lies so deep that
    no path leads into it counts as planted itself: nothing could look into it, git least of all.
    """
    planted, unread = [], []
    deepest = _MAX_PATH_BYTES - len(os.fsencode(worktree))
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        try:
            here = _entries(worktree, inner)
        except OSError as error:
            unread.append(f"{inner[:100]!r}: {error.strerror}")
            continue
        for name, kind in here.items():
            protected = protected_name(name)
            if protected == GIT_DIR:
                planted += (
                    [PlantedRepository(inner + name, may_be_tracked=False)]
                    if inner or name != GIT_DIR
                    else []
                )
            elif protected == STATE_DIR:
                taken = not inner and name == STATE_DIR and _is_empty(worktree / name)
                planted += [] if taken else [PlantedRepository(inner + name, may_be_tracked=True)]
            elif kind is _PlantedKind.FOLDER and len(os.fsencode(inner + name)) <= deepest:
                waiting.append(f"{inner}{name}/")
            elif kind is _PlantedKind.FOLDER or (
                kind is _PlantedKind.ODD and _is_read_by_git(name)
            ):
                planted.append(PlantedRepository(inner + name, may_be_tracked=False))
        if inner and _looks_bare(here):
            parts = [name for name in here if name.lower() in _BARE_PARTS]
            planted += [PlantedRepository(inner + part, True) for part in parts]
            planted += _hooks(worktree, inner, here)
    return PlantedScan(planted, unread)


def _is_empty(folder: Path) -> bool:
    """Tell whether it is the empty folder that keeps the name taken, and no link."""
    return not folder.is_symlink() and folder.is_dir() and not _entries(folder, "")


def _is_read_by_git(name: str) -> bool:
    """git opens these wherever they lie, and waits for a pipe's other end."""
    return name.lower().startswith(".git") or name.lower() == ".mailmap"


def too_deep_for_paths(folder: Path) -> set[str]:
    """Names in the folder beneath which something lies deeper than can be looked at."""
    top = len(os.fspath(folder)) + 1
    return {
        entry.path[top:].split("/", 1)[0]
        for entry in entries_within(folder)
        if len(os.fsencode(entry.path)) > _MAX_PATH_BYTES
    }


def take_borrowed_rights(folder: Path) -> None:
    """No program in it starts with its owner's rights: the worktree lies where others may start it."""
    for entry in files_within(folder):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISREG(mode) and mode & _BORROWED:
            os.chmod(entry.path, stat.S_IMODE(mode) & ~_BORROWED)  # noqa: PTH101


def _hooks(worktree: Path, inner: str, here: dict[str, _PlantedKind]) -> list[PlantedRepository]:
    """Each hook by itself: a project's own bare repository may have some."""
    planted: list[PlantedRepository] = []
    for name in [name for name in here if name.lower() == "hooks"]:
        if here[name] is not _PlantedKind.FOLDER:
            planted.append(PlantedRepository(inner + name, True))
            continue
        with suppress(OSError):  # the walk tells of it
            hooks = _entries(worktree, f"{inner}{name}/")
            planted += [PlantedRepository(f"{inner}{name}/{hook}", True) for hook in hooks]
    return planted


def _entries(worktree: Path, inner: str) -> dict[str, _PlantedKind]:
    """Names in a folder, and what each is."""
    folder = os.path.join(worktree, inner)  # noqa: PTH118 — called for every folder of a large tree
    try:
        return _scanned(folder)
    except PermissionError:
        # After this the user's git can look into it too, as it must for a snapshot.
        os.chmod(folder, 0o700)  # noqa: PTH101
        return _scanned(folder)
    except FileNotFoundError:
        return {}


def _scanned(folder: str) -> dict[str, _PlantedKind]:
    with os.scandir(folder) as entries:
        return {entry.name: _kind(entry) for entry in entries}


def _kind(entry: os.DirEntry[str]) -> _PlantedKind:
    if entry.is_dir(follow_symlinks=False):
        return _PlantedKind.FOLDER
    is_plain = entry.is_file(follow_symlinks=False) or entry.is_symlink()
    return _PlantedKind.FILE if is_plain else _PlantedKind.ODD


def _looks_bare(here: dict[str, _PlantedKind]) -> bool:
    """As git has it: HEAD with objects and refs, or with a pointer to a folder that has them."""
    names = {name.lower() for name in here}
    return "head" in names and ({"objects", "refs"} <= names or "commondir" in names)


def same_as_blob(path: Path, blob: str) -> bool:
    """Check that a plain file has the content of a git object."""
    if path.is_symlink() or not path.is_file():
        return False
    content = read_plain(path)
    digest = hashlib.sha256() if len(blob) == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content) + content)
    return digest.hexdigest() == blob


def move_away(worktree: Path, private: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """Move them into the private folder, each with a note of where it was. Gives those that were there.

    Raises `WorkspaceTampered` for one that cannot be moved when all others were.
    """
    gone: list[str] = []
    stuck: list[WorkspaceTampered] = []
    number = moved(private)
    for path in paths:
        note = _noted(private / QUARANTINE, path, number)
        number = int(note.stem) + 1
        try:
            carry(worktree / path, note.with_suffix(""))
            gone.append(path)
        except FileNotFoundError:
            note.unlink()
        except WorkspaceTampered as error:
            note.unlink()
            stuck.append(error)
    if stuck:
        raise stuck[0]
    return tuple(gone)


def moved_since(private: Path, count: int) -> tuple[str, ...]:
    """List what was moved away after the first `count` things, oldest first."""
    notes = [private / QUARANTINE / f"{number}.json" for number in range(count, moved(private))]
    there = [note.read_bytes() for note in notes if note.exists()]
    return tuple(json.loads(note)["was"] for note in there)


def moved(private: Path) -> int:
    """Return the number of things that were ever moved away."""
    names = [note.stem for note in (private / QUARANTINE).glob("*.json")]
    return max((int(name) + 1 for name in names if name.isdecimal()), default=0)


def _noted(quarantine: Path, path: str, number: int) -> Path:
    """A note under this number or the next that is free: several at a time may move something away."""
    quarantine.mkdir(mode=0o700, exist_ok=True)
    while True:
        note = quarantine / f"{number}.json"
        with suppress(FileExistsError), note.open("xb") as file:
            file.write(json.dumps({"was": path}).encode())
            return note
        number += 1


MAX_BYTES = 100_000_000
_LONG_AGO = "946684800 +0000"
"""The same content makes the same commit, whenever it is stored."""


async def store_planted(
    git: Git, record: WorkspaceRecord, keeper: ObjectKeeper | None = None, objects: str = ""
) -> tuple[list[str], list[str]]:
    """Store everything that was ever moved away as a commit; return it and descriptions of what is too large or deep.

    `keeper` and `objects` are for whoever only looks; otherwise it is put into the user's objects.
    """
    folder = Path(record.private, QUARANTINE)
    size, deep = await asyncio.to_thread(_looked_at, folder)
    if not size:
        return [], []
    label = f"repositories that were moved out of the worktree, in {str(folder)!r}"
    if size > MAX_BYTES:
        return [], [f"{label}: {size} bytes"]
    left_out = [f"{label}: {name!r} is nested too deeply" for name in deep]
    try:
        tree, unread = await (keeper or ObjectKeeper(git, record)).tree_of(folder, deep)
    except GitFailed as failed:
        return [], [*left_out, f"{label}: {failed.stderr[-200:]}"]
    made = await git.run(
        "commit-tree", "-m", "What was planted in the worktree", tree,
        git_dir=record.git_dir,
        env={
            "GIT_AUTHOR_DATE": _LONG_AGO,
            "GIT_COMMITTER_DATE": _LONG_AGO,
            **({"GIT_OBJECT_DIRECTORY": objects} if objects else {}),
        },
    )  # fmt: skip
    return [made.stdout.decode().strip()], left_out + [f"{label}: {line}" for line in unread]


def _looked_at(folder: Path) -> tuple[int, list[str]]:
    """Bytes to be read, and the names beneath which something lies too deep. Pipes in it are removed."""
    if not folder.is_dir():
        return 0, []
    remove_pipes(folder)
    return sum(_size(entry) for entry in files_within(folder)), sorted(too_deep_for_paths(folder))


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0
