"""No repository that an agent planted stays where a person could run git in it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podium.domain.errors import WorkspaceTampered
from podium.workspaces.git.carrying import carry
from podium.workspaces.git.dot_git import is_dot_git
from podium.workspaces.git.private_refs import read_plain
from podium.workspaces.git.walking import files_within

QUARANTINE = "quarantine"
_BORROWED = stat.S_ISUID | stat.S_ISGID
_BARE_PARTS = ("head", "config", "config.worktree", "commondir")


@dataclass(frozen=True)
class Planted:
    """Something in a worktree that git would take for a repository, or a part of one."""

    path: str
    may_be_tracked: bool
    """An embedded bare repository can be part of the project itself, such as data for its tests."""


def find_planted(worktree: Path) -> list[Planted]:
    """All of them, by one walk that follows no link. The worktree's own `.git` does not count.

    Only while no process of the agent lives: each folder is opened by its path.
    """
    found: list[Planted] = []
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        here = _entries(worktree, inner)
        for name, is_folder in here.items():
            if is_dot_git(name):
                found += (
                    [Planted(inner + name, may_be_tracked=False)] if inner or name != ".git" else []
                )
            elif is_folder:
                waiting.append(f"{inner}{name}/")
        if inner and _looks_bare(here):
            parts = [name for name in here if name.lower() in _BARE_PARTS]
            found += [Planted(inner + part, True) for part in parts]
            found += _hooks(worktree, inner, here)
    return found


def take_borrowed_rights(folder: Path) -> None:
    """No program in it starts with its owner's rights: the worktree lies where others may start it."""
    for entry in files_within(folder):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISREG(mode) and mode & _BORROWED:
            os.chmod(entry.path, stat.S_IMODE(mode) & ~_BORROWED)  # noqa: PTH101


def _hooks(worktree: Path, inner: str, here: dict[str, bool]) -> list[Planted]:
    """Each hook by itself: a project's own bare repository may have some."""
    found: list[Planted] = []
    for name in [name for name in here if name.lower() == "hooks"]:
        if not here[name]:
            found.append(Planted(inner + name, True))
            continue
        hooks = _entries(worktree, f"{inner}{name}/")
        found += [Planted(f"{inner}{name}/{hook}", True) for hook in hooks]
    return found


def _entries(worktree: Path, inner: str) -> dict[str, bool]:
    """Names in a folder, and whether each is a folder itself."""
    place = os.path.join(worktree, inner)  # noqa: PTH118 — called for every folder of a large tree
    try:
        with os.scandir(place) as entries:
            return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except PermissionError:
        # After this the user's git can look into it too, as it must for a snapshot.
        os.chmod(place, 0o700)  # noqa: PTH101
        with os.scandir(place) as entries:
            return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise WorkspaceTampered(
            f"the folder {inner[:100]!r} of the worktree cannot be looked into: {error.strerror}; remove it"
        ) from error


def _looks_bare(here: dict[str, bool]) -> bool:
    """As git has it: HEAD with objects and refs, or with a pointer to a folder that has them."""
    names = {name.lower() for name in here}
    return "head" in names and ({"objects", "refs"} <= names or "commondir" in names)


def same_as_blob(path: Path, blob: str) -> bool:
    """Whether a plain file has the content of that git object."""
    if path.is_symlink() or not path.is_file():
        return False
    content = read_plain(path)
    digest = hashlib.sha256() if len(blob) == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content) + content)
    return digest.hexdigest() == blob


def move_away(worktree: Path, private: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """Move them into the private folder, each with a note of where it was. Gives those that were there."""
    gone: list[str] = []
    number = moved(private)
    for path in paths:
        note = _noted(private / QUARANTINE, path, number)
        number = int(note.stem) + 1
        try:
            carry(worktree / path, note.with_suffix(""))
            gone.append(path)
        except FileNotFoundError:
            note.unlink()
    return tuple(gone)


def moved_since(private: Path, count: int) -> tuple[str, ...]:
    """What was moved away after so many other things were, oldest first."""
    notes = [private / QUARANTINE / f"{number}.json" for number in range(count, moved(private))]
    there = [note.read_bytes() for note in notes if note.exists()]
    return tuple(json.loads(note)["was"] for note in there)


def moved(private: Path) -> int:
    """How much was ever moved away."""
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
