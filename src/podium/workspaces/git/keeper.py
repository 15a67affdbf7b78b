"""Reading a whole worktree into git objects, byte for byte, by a git directory that no agent can reach.

It has no settings of anybody, and attributes of its own that outrank those in the worktree: nothing is
filtered, converted or started, whatever an agent wrote there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from podium.domain.workspaces import WorkspaceRecord
from podium.platform import make_private_folder
from podium.workspaces.git.adding import add_all
from podium.workspaces.git.git import Git
from podium.workspaces.git.ignored import sorted_ignored
from podium.workspaces.git.large import in_words, too_large
from podium.workspaces.git.tree_size import FRUGAL, MEMORY_BYTES

_MOST_BYTES = 400_000_000
NO_CONVERSION = "* -text -eol -crlf -ident -filter -working-tree-encoding\n"
BYTE_EXACT = (
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "advice.addEmbeddedRepo=false",
)


class Keeper:
    """The scratch git directory of one workspace; objects go to the folder that it is told."""

    def __init__(
        self, git: Git, record: WorkspaceRecord, objects: str = "", folder: Path | None = None
    ) -> None:
        """`objects` takes what is written; empty means the user's own.

        `folder` is for whoever does not hold the workspace's lock and must not disturb who does.
        """
        self._git = git
        self._record = record
        self._folder = folder or Path(record.private, "keeper")
        self._objects = objects or f"{record.git_dir}/objects"
        self._sparse = Path(record.git_dir, "worktrees", record.admin, "info/sparse-checkout")

    async def tree(self, head: str) -> tuple[str, list[str], list[str]]:
        """Everything in the worktree as a tree; what could not be read; what is ignored and large.

        `head` says what is tracked. Small files that git ignores are in it too.
        """
        await asyncio.to_thread(self._make)
        await self._run("read-tree", "--reset", head)
        await self._leave_out_sparse()
        too_much = await too_large(self._run, Path(self._record.path), head)
        added = await add_all(self._run, ("--ignore-errors",), list(too_much))
        large = await self._add_ignored()
        tree = (await self._run("write-tree")).decode().strip()
        unread = [line[:300] for line in added.decode(errors="replace").splitlines() if line]
        return tree, in_words(too_much) + unread, large

    async def _leave_out_sparse(self) -> None:
        """What a sparse checkout never put there is not deleted, only out of sight."""
        if not self._sparse.exists():
            return
        real = await self._run("ls-files", "-z", "-t", index=self._sparse.parent.parent / "index")
        left_out = {row[2:] for row in real.split(b"\0") if row.startswith(b"S ")}
        gone = (await self._run("ls-files", "-z", "--deleted")).split(b"\0")
        names = b"".join(name + b"\0" for name in gone if name in left_out)
        if names:
            await self._run("update-index", "--skip-worktree", "-z", "--stdin", stdin=names)

    async def _add_ignored(self) -> list[str]:
        """Gives what is too large, in words."""
        listed = await self._run(
            "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"
        )
        names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
        small, large = await asyncio.to_thread(sorted_ignored, Path(self._record.path), names)
        if small:
            words = b"".join(os.fsencode(name) + b"\0" for name in small)
            await self._run("update-index", "--add", "-z", "--stdin", stdin=words)
        return large

    async def tree_of(self, folder: Path, left_out: Sequence[str]) -> tuple[str, list[str]]:
        """Everything in another folder, ignored or not, but for some names; what could not be read."""
        await asyncio.to_thread(self._make)
        index = self._folder / "other.index"
        await asyncio.to_thread(index.unlink, True)

        async def run(*words: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> bytes:
            return await self._run(
                *words, stdin=stdin, accept=accept, index=index, work_tree=str(folder)
            )

        said = await add_all(run, ("--force", "--ignore-errors"), left_out)
        within = [
            row for row in (await run("ls-files", "-z", "--stage")).split(b"\0") if row[:2] == b"16"
        ]
        unread = [line[:300] for line in said.decode(errors="replace").splitlines() if line]
        unread += ["a repository within another"] if within else []
        return (await run("write-tree")).decode().strip(), unread

    async def put_back(self, tree: str) -> None:
        """Make the worktree like the tree, from the state that `tree()` read last."""
        await self._run("read-tree", "--reset", "-u", tree)

    async def write_index(self, commit: str, index: Path) -> None:
        """An index of that commit, keeping what the file there knows of unchanged files."""
        await asyncio.to_thread(self._make)
        await self._run("read-tree", "--reset", commit, index=index)

    async def _run(
        self,
        *words: str,
        stdin: bytes = b"",
        accept: tuple[int, ...] = (0,),
        index: Path | None = None,
        work_tree: str = "",
    ) -> bytes:
        ended = await self._git.run(
            *words,
            git_dir=str(self._folder),
            work_tree=work_tree or self._record.path,
            cwd=work_tree or self._record.path,
            settings=(*BYTE_EXACT, *FRUGAL),
            env={
                "GIT_OBJECT_DIRECTORY": self._objects,
                "GIT_INDEX_FILE": str(index or self._folder / "index"),
            },
            stdin=stdin,
            output_bytes=_MOST_BYTES,
            memory_bytes=MEMORY_BYTES,
            accept=accept,
        )
        return ended.stderr if words[0] == "add" and ended.exit_code else ended.stdout

    def _make(self) -> None:
        """Afresh each time, but for the index, which knows what was read before."""
        for folder in ("objects", "refs", "info"):
            make_private_folder(self._folder / folder)
        sha256 = len(self._record.base) == 64
        version = "1\n[extensions]\n\tobjectformat = sha256" if sha256 else "0"
        (self._folder / "config").write_text(
            f"[core]\n\tbare = false\n\trepositoryformatversion = {version}\n"
        )
        (self._folder / "HEAD").write_text("ref: refs/heads/none\n")
        (self._folder / "info/attributes").write_text(NO_CONVERSION)
        with suppress(FileNotFoundError):
            (self._folder / "index.lock").unlink()  # a killed Podium's: only one keeps at a time
        self._copy(Path(self._record.git_dir, "info/exclude"), "info/exclude")

    def _copy(self, source: Path, name: str) -> None:
        try:
            shutil.copyfile(source, self._folder / name)
        except FileNotFoundError:
            (self._folder / name).write_text("")
