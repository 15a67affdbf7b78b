"""A whole worktree read into git objects byte for byte, without files that are too large or not worth storing.

It has no settings of anybody, and attributes of its own that outrank those in the worktree: nothing is
filtered, converted or started, whatever an agent wrote there.

`git add` asks each submodule in the index for changes by a git of its own, which obeys the settings of the
repository in that folder. So none is in the index meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Protocol

from podium.core.errors import NotPossibleNow
from podium.core.workspaces import WorkspaceRecord
from podium.git.commit_trees import FRUGAL, MEMORY_BYTES
from podium.git.git_command import Git
from podium.platform import make_private_folder
from podium.platform.folder_tree import files_within, measure

_SUBMODULE = b"160000 "


class GitRunner(Protocol):
    """Runs git on the index and the worktree; gives what it prints, or of a failed `add` what it complains of."""

    async def __call__(
        self, *arguments: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)
    ) -> bytes: ...


async def add_all(run: GitRunner, options: Sequence[str], left_out: Sequence[str] = ()) -> bytes:
    """Add all but the paths that are left out. With `--ignore-errors`, what could not be read is given."""
    submodules = await _take_submodules_out(run)
    lenient = "--ignore-errors" in options
    output = await run(
        "add", "--all", *options, "--pathspec-from-file=-", "--pathspec-file-nul",
        stdin=_all_but(left_out), accept=(0, 1) if lenient else (0,),
    )  # fmt: skip
    await _put_submodules_back(run, submodules)
    return output if lenient else b""


def _all_but(paths: Sequence[str]) -> bytes:
    excluded = [b":(top,exclude,literal)" + os.fsencode(path) for path in paths]
    return b"".join(pathspec + b"\0" for pathspec in (b":/", *excluded))


async def _take_submodules_out(run: GitRunner) -> dict[bytes, bytes]:
    """Gives their lines of the index by path."""
    rows = (await run("ls-files", "-z", "--stage")).split(b"\0")
    submodules = {row.split(b"\t", 1)[1]: row for row in rows if row.startswith(_SUBMODULE)}
    if submodules:
        # Its mode is what matters; the id is read and not used.
        gone = b"".join(
            b"0" + row[6:].split(b"\t")[0] + b"\t" + path + b"\0"
            for path, row in submodules.items()
        )
        await run("update-index", "-z", "--index-info", stdin=gone)
    return submodules


async def _put_submodules_back(run: GitRunner, submodules: dict[bytes, bytes]) -> None:
    """Put submodules back in the index where nothing else took their path."""
    if not submodules:
        return
    taken: set[bytes] = set()
    for path in (await run("ls-files", "-z")).split(b"\0"):
        parts = path.split(b"/")
        taken.update(b"/".join(parts[:count]) for count in range(1, len(parts) + 1))
    free = [row for path, row in submodules.items() if path not in taken]
    if free:
        await run("update-index", "-z", "--index-info", stdin=b"".join(r + b"\0" for r in free))


MAX_IN_ALL_BYTES = 4_000_000_000
_LARGE_BYTES = 10_000_000
_MAX_COUNT = 20_000
_MAX_LARGE_NAMED = 5


async def too_large(run: GitRunner, worktree: Path, head: str) -> dict[str, int]:
    """Sizes by path of what is left out, so that the rest is no more than may be read.

    What git ignores is not read anyway; nor, in all likelihood, what has the size that it has in the head.
    """
    sizes = await asyncio.to_thread(_large, worktree)
    if sum(sizes.values()) <= MAX_IN_ALL_BYTES:
        return {}
    names = b"".join(os.fsencode(path) + b"\0" for path in sizes)
    ignored = await run("check-ignore", "-z", "--stdin", stdin=names, accept=(0, 1))
    for name in ignored.split(b"\0"):
        sizes.pop(os.fsdecode(name), None)
    committed = await _sizes(run, head, list(sizes))
    total, left_out = 0, dict[str, int]()
    for path, size in sorted(sizes.items(), key=lambda item: item[1]):
        total += 0 if committed.get(path) == size else size
        if total > MAX_IN_ALL_BYTES and committed.get(path) != size:
            left_out[path] = size
    return left_out


def describe_large(left_out: dict[str, int]) -> list[str]:
    lines = [
        f"{path!r} has {size} bytes" for path, size in islice(left_out.items(), _MAX_LARGE_NAMED)
    ]
    more = len(left_out) - _MAX_LARGE_NAMED
    return [*lines, f"{more} more large files"] if more > 0 else lines


async def _sizes(run: GitRunner, head: str, paths: Sequence[str]) -> dict[str, int]:
    """As the head has them."""
    askable = [path for path in paths if "\n" not in path]
    names = b"".join(os.fsencode(f"{head}:{path}\n") for path in askable)
    answers = await run("cat-file", "--batch-check=%(objectsize)", stdin=names)
    rows = answers.decode(errors="replace").splitlines()
    return {path: int(row) for path, row in zip(askable, rows, strict=False) if row.isdecimal()}


def _large(worktree: Path) -> dict[str, int]:
    sizes = dict(islice(_sizes_of(worktree), _MAX_COUNT + 1))
    if len(sizes) > _MAX_COUNT:
        raise NotPossibleNow(
            f"{str(worktree)!r} has more than {_MAX_COUNT} large files; delete those that are not needed"
        )
    return sizes


def _sizes_of(worktree: Path) -> Iterator[tuple[str, int]]:
    skipped = len(os.fspath(worktree)) + 1
    for entry in files_within(worktree):
        try:
            about = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if about.st_size > _LARGE_BYTES and stat.S_ISREG(about.st_mode):
            yield entry.path[skipped:], about.st_size


MAX_FILE_BYTES = 1_000_000
MAX_FOLDER_BYTES = 1_000_000
MAX_IN_FOLDER = 100
MAX_TOTAL_BYTES = 20_000_000


_MAX_NAMED = 20


def sorted_ignored(worktree: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of the ignored files and folders (these end with `/`) the small ones as single files, and the rest.

    The rest is described, with sizes.
    """
    small, large = small_and_large(worktree, names)
    return small, describe_ignored(worktree, large)


def small_and_large(worktree: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The small ones as single files, and the names of the rest."""
    small: list[str] = []
    large: list[str] = []
    total = 0
    for name in names:
        sizes = _folder(worktree, name) if name.endswith("/") else _file(worktree, name)
        if sizes is None or total + sum(sizes.values()) > MAX_TOTAL_BYTES:
            large.append(name)
        else:
            small += sizes
            total += sum(sizes.values())
    return small, large


def describe_ignored(worktree: Path, names: Sequence[str]) -> list[str]:
    """Describe ignored files that are too large, with sizes; of many the first."""
    lines = [f"ignored: {name!r} ({_size(worktree, name)})" for name in names[:_MAX_NAMED]]
    more = len(names) - _MAX_NAMED
    return [*lines, f"ignored: {more} more"] if more > 0 else lines


def _size(worktree: Path, name: str) -> str:
    path = worktree / name
    size = measure(path).bytes if name.endswith("/") else os.lstat(path).st_size
    return f"{size / 1_000_000:.1f} MB"


def _file(worktree: Path, name: str) -> dict[str, int] | None:
    """The file, nothing for what is no file, None when it is a large one."""
    try:
        status = os.lstat(worktree / name)
    except OSError:
        return {}
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        return {}
    return {name: status.st_size} if status.st_size <= MAX_FILE_BYTES else None


def _folder(worktree: Path, name: str) -> dict[str, int] | None:
    """All its files, or None when it is a large one."""
    sizes: dict[str, int] = {}
    for entry in files_within(worktree / name):
        one = _file(worktree, str(Path(entry.path).relative_to(worktree)))
        if one is None:
            return None
        sizes |= one
        if len(sizes) > MAX_IN_FOLDER or sum(sizes.values()) > MAX_FOLDER_BYTES:
            return None
    return sizes


_MAX_BYTES = 400_000_000
NO_CONVERSION = "* -text -eol -crlf -ident -filter -working-tree-encoding\n"
BYTE_EXACT = (
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "advice.addEmbeddedRepo=false",
)


class ObjectKeeper:
    """The scratch git directory of one workspace; objects go to the given folder."""

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
        return tree, describe_large(too_much) + unread, large

    async def _leave_out_sparse(self) -> None:
        """Mark files that a sparse checkout left out: they are not deleted."""
        if not self._sparse.exists():
            return
        real = await self._run("ls-files", "-z", "-t", index=self._sparse.parent.parent / "index")
        left_out = {row[2:] for row in real.split(b"\0") if row.startswith(b"S ")}
        gone = (await self._run("ls-files", "-z", "--deleted")).split(b"\0")
        names = b"".join(name + b"\0" for name in gone if name in left_out)
        if names:
            await self._run("update-index", "--skip-worktree", "-z", "--stdin", stdin=names)

    async def _add_ignored(self) -> list[str]:
        """Returns descriptions of what is too large."""
        listed = await self._run(
            "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"
        )
        names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
        small, large = await asyncio.to_thread(sorted_ignored, Path(self._record.path), names)
        if small:
            small_names = b"".join(os.fsencode(name) + b"\0" for name in small)
            await self._run("update-index", "--add", "-z", "--stdin", stdin=small_names)
        return large

    async def tree_of(self, folder: Path, left_out: Sequence[str]) -> tuple[str, list[str]]:
        """Everything in another folder, ignored or not, but for some names; what could not be read."""
        await asyncio.to_thread(self._make)
        index = self._folder / "other.index"
        await asyncio.to_thread(index.unlink, True)

        async def run(*arguments: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> bytes:
            return await self._run(
                *arguments, stdin=stdin, accept=accept, index=index, work_tree=str(folder)
            )

        output = await add_all(run, ("--force", "--ignore-errors"), left_out)
        within = [
            row for row in (await run("ls-files", "-z", "--stage")).split(b"\0") if row[:2] == b"16"
        ]
        unread = [line[:300] for line in output.decode(errors="replace").splitlines() if line]
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
        *arguments: str,
        stdin: bytes = b"",
        accept: tuple[int, ...] = (0,),
        index: Path | None = None,
        work_tree: str = "",
    ) -> bytes:
        ended = await self._git.run(
            *arguments,
            git_dir=str(self._folder),
            work_tree=work_tree or self._record.path,
            cwd=work_tree or self._record.path,
            settings=(*BYTE_EXACT, *FRUGAL),
            env={
                "GIT_OBJECT_DIRECTORY": self._objects,
                "GIT_INDEX_FILE": str(index or self._folder / "index"),
            },
            stdin=stdin,
            output_bytes=_MAX_BYTES,
            memory_bytes=MEMORY_BYTES,
            accept=accept,
        )
        return ended.stderr if arguments[0] == "add" and ended.exit_code else ended.stdout

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
