"""How many paths commits have, before anything lists them.

A tree may name one folder many times, and that folder another: a few small objects make more paths than any
machine can list. Counted by folders, each looked at once, that is known at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from podium.domain.errors import NotPossibleNow
from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.git import Git

MOST_PATHS = 200_000
"""Beyond those of the base."""
FRUGAL = ("core.packedGitLimit=512m", "core.packedGitWindowSize=32m")
MEMORY_BYTES = 8_000_000_000
"""For a git outside of any confinement that reads what an agent made."""
_MOST_BYTES = 400_000_000
_FOLDER = b"40000"

Ask = Callable[[tuple[str, ...], bytes], Awaitable[bytes]]
"""Runs git with these words and that input, and gives what it prints."""


async def check_size(git: Git, record: WorkspaceRecord, commit: str) -> None:
    """Raise `NotPossibleNow` for a commit in the user's objects that has too many paths."""
    if commit in ("", record.base):
        return

    async def ask(words: tuple[str, ...], stdin: bytes) -> bytes:
        ended = await git.run(
            *words, git_dir=record.git_dir, stdin=stdin, output_bytes=_MOST_BYTES,
            settings=FRUGAL, memory_bytes=MEMORY_BYTES,
        )  # fmt: skip
        return ended.stdout

    if large := await larger_than_may_be(ask, [commit], record.base):
        raise NotPossibleNow(
            f"{large}; say `podium workspaces exec {record.task} -- git reset --hard {record.base[:12]}`"
        )


async def larger_than_may_be(ask: Ask, commits: Sequence[str], base: str) -> str:
    """The first commit with too many paths, in words; empty when there is none."""
    names = "".join(f"{commit}^{{tree}}\n" for commit in (base, *commits)).encode()
    roots = (await ask(("cat-file", "--batch-check=%(objectname)"), names)).decode().split("\n")
    listing = ("rev-list", "--objects", "--no-object-names", "--filter=blob:none", "--stdin")
    wanted = "".join(f"{root}\n" for root in dict.fromkeys(filter(None, roots)))
    folders = await ask(listing, wanted.encode())
    answers = await ask(("cat-file", "--batch", "--buffer"), folders)
    counts = await asyncio.to_thread(_counts, answers, len(base) // 2)
    most = counts.get(roots[0], 0) + MOST_PATHS
    for commit, root in zip(commits, roots[1:], strict=False):
        if counts.get(root, 0) > most:
            return f"commit {commit[:12]} has {counts[root]} paths, and {most} are the most"
    return ""


def _counts(answers: bytes, id_bytes: int) -> dict[str, int]:
    """Paths beneath each folder, from what `cat-file --batch` writes of all of them."""
    folders = dict(_folders(answers, id_bytes))
    counts: dict[str, int] = {}
    for start in folders:
        waiting = [start]
        while waiting:
            name = waiting[-1]
            files, inner = folders.get(name, (0, []))
            unknown = [each for each in inner if each not in counts]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            counts[name] = files + sum(counts[each] for each in inner)
    return counts


def _folders(answers: bytes, id_bytes: int) -> Iterator[tuple[str, tuple[int, list[str]]]]:
    """Each folder with how many files it has itself, and the folders in it."""
    at = 0
    while at < len(answers):
        end = answers.index(b"\n", at)
        name, kind, size = answers[at:end].decode().split(" ")
        at = end + 1 + int(size)
        if kind == "tree":
            yield name, _entries(answers[end + 1 : at], id_bytes)
        at += 1


def _entries(content: bytes, id_bytes: int) -> tuple[int, list[str]]:
    files, inner, at = 0, [], 0
    while at < len(content):
        zero = content.index(b"\0", at)
        after = zero + 1 + id_bytes
        if content[at : content.index(b" ", at)].lstrip(b"0") == _FOLDER:
            inner.append(content[zero + 1 : after].hex())
        else:
            files += 1
        at = after
    return files, inner
