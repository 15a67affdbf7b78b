"""A worktree as `git add --all` would have it: without what git ignores and what was copied into it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from podium.domain.errors import NotPossibleNow
from podium.domain.workspaces import WorkspaceRecord
from podium.platform import make_private_folder
from podium.workspaces.git.adding import add_all
from podium.workspaces.git.copying import ignoring
from podium.workspaces.git.git import Git
from podium.workspaces.git.large import in_words, too_large
from podium.workspaces.git.private_dir import PRIVATE_CONFIG
from podium.workspaces.git.tree_size import FRUGAL, MEMORY_BYTES

_MOST_BYTES = 400_000_000


async def kept_committable(git: Git, record: WorkspaceRecord, head: str) -> str:
    """Its tree, written into the user's objects. What cannot be read is left out."""
    with tempfile.TemporaryDirectory(prefix="looking-", dir=record.private) as folder:
        scratch = Path(folder)
        await asyncio.to_thread(make_scratch, scratch, record)
        await asyncio.to_thread(_write_to, scratch, record)
        return await committable_tree(git, record, scratch, head, lenient=True)


async def committable_tree(
    git: Git, record: WorkspaceRecord, scratch: Path, head: str, *, lenient: bool = False
) -> str:
    """Its tree, in a scratch directory that `make_scratch` made. `head` says what is tracked.

    Raises `NotPossibleNow` for files that are too large; a lenient one leaves them out.
    """

    async def run(*words: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> bytes:
        ended = await git.run(
            *words,
            git_dir=str(scratch),
            work_tree=record.path,
            cwd=record.path,
            settings=("core.sparseCheckout=true", "advice.addEmbeddedRepo=false", *FRUGAL),
            stdin=stdin,
            output_bytes=_MOST_BYTES,
            memory_bytes=MEMORY_BYTES,
            accept=accept,
        )
        return ended.stdout

    tracked = head or record.base
    await run("read-tree", "--reset", tracked)
    large = await too_large(run, Path(record.path), tracked)
    if large and not lenient:
        raise NotPossibleNow(
            f"{in_words(large)[0]}, which is too large to be kept; delete it, or let git ignore it"
        )
    options = ("--sparse", "--ignore-errors") if lenient else ("--sparse",)
    await add_all(run, options, list(large))
    return (await run("write-tree")).decode().strip()


def make_scratch(scratch: Path, record: WorkspaceRecord) -> None:
    """A git directory with trusted settings, and an index that knows what was read at the checkout."""
    for folder in ("objects/info", "refs", "info"):
        make_private_folder(scratch / folder)
    own = Path(record.git_dir, "worktrees", record.admin)
    _copy(Path(record.private, PRIVATE_CONFIG), scratch / "config")
    _copy(own / "index", scratch / "index")
    _copy(Path(record.git_dir, "info/exclude"), scratch / "info/exclude")
    with (scratch / "info/exclude").open("a", encoding="utf-8") as file:
        file.write(f"\n{ignoring(record.copied)}")
    _copy(Path(record.git_dir, "shallow"), scratch / "shallow")
    (scratch / "info/sparse-checkout").write_text("/*\n")
    _copy(own / "info/sparse-checkout", scratch / "info/sparse-checkout")
    (scratch / "HEAD").write_text("ref: refs/heads/none\n")
    (scratch / "objects/info/alternates").write_bytes(os.fsencode(f"{record.git_dir}/objects\n"))


def _write_to(scratch: Path, record: WorkspaceRecord) -> None:
    """Let what is written go into the user's objects."""
    shutil.rmtree(scratch / "objects")
    (scratch / "objects").symlink_to(Path(record.git_dir, "objects"))


def _copy(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.copyfile(source, target)
