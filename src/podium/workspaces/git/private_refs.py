"""Reading refs of a private git directory as the plain data it is. An agent can have written anything there."""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podium.workspaces.git.walking import files_within

_LARGEST_BYTES = 50_000_000
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REFLOG = re.compile(rb"^(?:[0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) ", re.MULTILINE)
_MOST_LOGS = 1000
_MOST_REFS = 20_000


def read_plain(path: Path, limit: int = _LARGEST_BYTES) -> bytes:
    """The content of a real file; nothing for links, pipes and whatever else could be there."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return file.read(limit)
    return b""


def read_head(git: Path, admin: str) -> str:
    """The branch that is checked out, or a commit when none is."""
    text = read_plain(git / "worktrees" / admin / "HEAD", 5000).decode(errors="replace").strip()
    return text.removeprefix("ref: ")


def read_ref(git: Path, name: str) -> str:
    """The commit a ref stands for; empty when there is none."""
    text = read_plain(git / name, 5000).decode(errors="replace").strip()
    if text:
        # One that leads to another ref stands for no commit of its own.
        return text if _OBJECT.fullmatch(text) else ""
    return _packed(git).get(name, "")


def read_refs(git: Path) -> dict[str, str]:
    """All refs, loose ones before packed ones."""
    refs = _packed(git)
    for place in _files(git / "refs", _MOST_REFS):
        text = read_plain(place, 5000).decode(errors="replace").strip()
        if _OBJECT.fullmatch(text):
            refs[str(place.relative_to(git))] = text
    return refs


def logged_commits(git: Path, admin: str) -> list[str]:
    """Every commit that a ref or HEAD ever stood for, newest first in each log."""
    own = git / "worktrees" / admin / "logs"
    seen: dict[str, None] = {}
    for log in [*_files(own, _MOST_LOGS), *_files(git / "logs", _MOST_LOGS)]:
        for found in reversed(_REFLOG.findall(read_plain(log))):
            seen[found.decode()] = None
    return list(seen)


def _files(folder: Path, most: int) -> Iterator[Path]:
    return (Path(entry.path) for entry in itertools.islice(files_within(folder), most))


def _packed(git: Path) -> dict[str, str]:
    refs: dict[str, str] = {}
    for line in read_plain(git / "packed-refs").decode(errors="replace").splitlines():
        commit, _, name = line.partition(" ")
        if _OBJECT.fullmatch(commit) and name.startswith("refs/"):
            refs[name] = commit
    return refs
