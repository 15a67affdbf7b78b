"""Trees of commits, read once: how many paths a commit has, and which.

A tree may name one folder many times, and that folder another: a few small objects make more paths than any
machine can list. Counted by folders, each read once, the number is found quickly.
"""

from __future__ import annotations

import asyncio
import io
import re
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from podium.core.errors import ImportRefused, NotPossibleNow
from podium.core.processes import ProcessExit
from podium.core.workspaces import WorkspaceRecord
from podium.git.git_command import Git, GitFailed

MAX_PATHS = 200_000
"""Beyond those of the base."""
FRUGAL = ("core.packedGitLimit=512m", "core.packedGitWindowSize=32m")
MEMORY_BYTES = 8_000_000_000
"""For a git outside of any confinement that reads what an agent made."""
_MAX_BYTES = 400_000_000
_LISTING = (
    "rev-list", "--objects", "--no-object-names", "--filter=blob:none", "--no-walk=unsorted",
    "--format=%H %T", "--stdin",
)  # fmt: skip
_CONTENTS = ("cat-file", "--batch", "--buffer")
_FOLDER = "040000"
_MODE = re.compile(rb"0{0,4}[0-7]{5,6}")

Ask = Callable[[tuple[str, ...], bytes], Awaitable[ProcessExit]]
"""Runs git with arguments and input. Long output may be cut."""


class TreeEntry(NamedTuple):
    """A file of a commit."""

    mode: str
    blob: str


class CommitTrees:
    """All folders of some commits, and what the commits themselves hold."""

    def __init__(
        self, roots: Mapping[str, str], trees: Mapping[str, bytes], texts: Mapping[str, bytes]
    ) -> None:
        """`roots` are trees by commit, `trees` contents by tree, `texts` those of commits, if all could be read."""
        self.roots = roots
        self.texts = texts
        self._trees = trees
        self._id_bytes = len(next(iter(roots))) // 2

    def larger_than_may_be(self, commits: Sequence[str], base: str) -> str:
        """Name the first commit with too many paths; empty when there is none."""
        counts = self._counts()
        most = counts[self.roots[base]] + MAX_PATHS
        for commit in commits:
            if (count := counts[self.roots[commit]]) > most:
                return f"commit {commit[:12]} has {count} paths; the limit is {most}"
        return ""

    def files(self, commit: str) -> dict[str, TreeEntry]:
        """Files by path, as `ls-tree -r` lists them. Only of a commit that is not too large."""
        entries: dict[str, TreeEntry] = {}
        waiting = [(b"", _FOLDER, self.roots[commit])]
        while waiting:
            path, mode, name = waiting.pop()
            if mode != _FOLDER:
                entries[path.decode(errors="surrogateescape")] = TreeEntry(mode, name)
                continue
            above = path + b"/" if path else b""
            inner = [
                (above + own, kind, object_id)
                for own, kind, object_id in _entries(self._trees[name], self._id_bytes)
            ]
            waiting += reversed(inner)
        return entries

    def _counts(self) -> dict[str, int]:
        """Paths beneath each folder."""
        folders = {
            name: _files_and_folders(content, self._id_bytes)
            for name, content in self._trees.items()
        }
        counts: dict[str, int] = {}
        for start in folders:
            waiting = [start]
            while waiting:
                name = waiting[-1]
                files, inner = folders[name]
                unknown = [folder for folder in inner if folder not in counts]
                if unknown:
                    waiting += unknown
                    continue
                waiting.pop()
                counts[name] = files + sum(counts[folder] for folder in inner)
        return counts


async def check_size(git: Git, record: WorkspaceRecord, commit: str) -> None:
    """Raise `NotPossibleNow` for a commit in the user's objects that has too many paths."""
    if commit in ("", record.base):
        return

    async def ask(arguments: tuple[str, ...], stdin: bytes) -> ProcessExit:
        return await git.run(
            *arguments, git_dir=record.git_dir, stdin=stdin, output_bytes=_MAX_BYTES,
            settings=FRUGAL, memory_bytes=MEMORY_BYTES, cut=True,
        )  # fmt: skip

    trees = await read_trees(ask, [record.base, commit])
    if commit not in trees.roots:
        raise NotPossibleNow(f"{commit[:12]} is not a commit")
    if large := await asyncio.to_thread(trees.larger_than_may_be, [commit], record.base):
        raise NotPossibleNow(
            f"{large}; run `podium workspaces exec {record.task} -- git reset --hard {record.base[:12]}`"
        )


async def read_trees(ask: Ask, commits: Sequence[str]) -> CommitTrees:
    """Read the folders of these commits. Raises `GitFailed` when git prints more of them than `ask` takes."""
    listed = await ask(_LISTING, _lines(commits))
    if listed.stdout_dropped_bytes:
        raise GitFailed(_LISTING, listed)
    rows = [row.split(" ") for row in listed.stdout.decode().splitlines()]
    roots = {row[0]: row[1] for row in rows if len(row) == 2 and row[0] != "commit"}
    folders = [row[0] for row in rows if len(row) == 1]
    # Folders first: of too much output, commits are what is missing.
    answers = await ask(_CONTENTS, _lines([*folders, *commits]))
    try:
        objects = await asyncio.to_thread(contents_of, answers.stdout)
    except ValueError:  # an object is missing, or is none
        raise GitFailed(_CONTENTS, answers) from None
    if not all(folder in objects for folder in folders):
        raise GitFailed(_CONTENTS, answers)
    texts = {commit: objects[commit] for commit in commits if commit in objects}
    return CommitTrees(roots, {name: objects[name] for name in folders}, texts)


def contents_of(answers: bytes) -> dict[str, bytes]:
    """Contents by object, as `cat-file --batch` writes them, but for one that was cut off."""
    contents: dict[str, bytes] = {}
    stream = io.BytesIO(answers)
    for head in stream:
        if not head.endswith(b"\n"):
            break
        name, _, size = head.decode().split()
        content = stream.read(int(size))
        if len(content) == int(size):
            contents[name] = content
        stream.seek(1, io.SEEK_CUR)
    return contents


def _lines(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


def _files_and_folders(content: bytes, id_bytes: int) -> tuple[int, list[str]]:
    """Return the number of files directly in a folder, and its subfolders."""
    modes = [(mode, name) for _, mode, name in _entries(content, id_bytes)]
    inner = [name for mode, name in modes if mode == _FOLDER]
    return len(modes) - len(inner), inner


def _entries(content: bytes, id_bytes: int) -> Iterator[tuple[bytes, str, str]]:
    """Name, mode and object of what is right in a folder."""
    at = 0
    while at < len(content):
        space = content.index(b" ", at)
        zero = content.index(b"\0", space)
        after = zero + 1 + id_bytes
        yield content[space + 1 : zero], _mode(content[at:space]), content[zero + 1 : after].hex()
        at = after


@lru_cache(1000)
def _mode(text: bytes) -> str:
    """The mode as git shows it: of the odd ones that old programs wrote it takes the meaning.

    Raises `ImportRefused` for what no program writes. Git takes some of it, each version in its own way.
    """
    if not _MODE.fullmatch(text):
        raise ImportRefused(
            f"a folder has an entry with the mode {text[:20].decode(errors='replace')!r}"
        )
    mode = int(text, 8)
    if stat.S_ISREG(mode):
        return "100755" if mode & 0o100 else "100644"
    if stat.S_ISLNK(mode):
        return "120000"
    return _FOLDER if stat.S_ISDIR(mode) else "160000"
