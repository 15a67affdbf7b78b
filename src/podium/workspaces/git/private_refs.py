"""Reading refs of a private git directory as the plain data it is. An agent can have written anything there."""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from podium.workspaces.git.walking import files_within

_LARGEST_BYTES = 50_000_000
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REFLOG = re.compile(rb"^(?:[0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) ", re.MULTILINE)
_MOST_LOGS = 1000
_LARGEST_LOGS_BYTES = 100_000_000
_MOST_STRAYS = 200_000
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


class Logged(NamedTuple):
    """What logs tell, as far as they were read."""

    commits: list[str]
    """Newest first in each log."""
    whole: bool


def logged_commits(git: Path, admin: str) -> Logged:
    """Every commit that a ref or HEAD ever stood for; of very many, some."""
    seen: dict[str, None] = {}
    left = _LARGEST_LOGS_BYTES
    logs = [*_logs(git / "worktrees" / admin / "logs"), *_logs(git / "logs")]
    for log in logs[:_MOST_LOGS]:
        content = read_plain(log, left + 1)
        left -= len(content)
        if left < 0:
            break
        for found in reversed(_REFLOG.findall(content)):
            seen[found.decode()] = None
    return Logged(list(seen), whole=left >= 0 and len(logs) <= _MOST_LOGS)


def _logs(folder: Path) -> list[Path]:
    """Each once, under whatever names it has."""
    found: dict[tuple[int, int], Path] = {}
    for log in _files(folder, _MOST_LOGS + 1):
        with suppress(OSError):
            about = log.lstat()
            found.setdefault((about.st_dev, about.st_ino), log)
    return list(found.values())


def stray_objects(git: Path) -> Logged:
    """Names of all objects that lie there one by one: commits that nothing names any more are among them."""
    found = []
    for folder in sorted((git / "objects").glob("[0-9a-f][0-9a-f]")):
        if folder.is_symlink():
            continue
        found += [f"{folder.name}{file.name}" for file in _files(folder, _MOST_STRAYS)]
        if len(found) > _MOST_STRAYS:
            break
    fitting = [name for name in found if _OBJECT.fullmatch(name)]
    return Logged(fitting[:_MOST_STRAYS], whole=len(found) <= _MOST_STRAYS)


def _files(folder: Path, most: int) -> Iterator[Path]:
    return (Path(entry.path) for entry in itertools.islice(files_within(folder), most))


def _packed(git: Path) -> dict[str, str]:
    refs: dict[str, str] = {}
    for line in read_plain(git / "packed-refs").decode(errors="replace").splitlines():
        commit, _, name = line.partition(" ")
        if _OBJECT.fullmatch(commit) and name.startswith("refs/"):
            refs[name] = commit
    return refs
