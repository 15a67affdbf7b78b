"""Snapshots of a folder in a private git repository, and the differences between two.

It lies outside of them, has no settings of anybody, and attributes of its own that outrank theirs: nothing
is filtered, converted or started, whatever repository the folder is.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from podium.git.folder_copy import (
    DOT_GIT,
    STATE,
    FolderLimits,
    FolderWalk,
    WalkOptions,
    identity_of,
)
from podium.git.git_command import Git, GitFailed, clear_stale_lock
from podium.git.private_dir import read_plain
from podium.git.worktree_objects import BYTE_EXACT, NO_CONVERSION, describe_ignored, small_and_large
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write

LINK = "120000"


@dataclass(frozen=True)
class FolderContent:
    """A folder's content: a git tree, and what git does not keep of it."""

    root: str
    tree: str
    entries: dict[str, str]
    """Mode and id of each file and link, as the tree has them."""
    files: dict[str, int]
    """Permission bits."""
    folders: dict[str, int]
    passed_over: frozenset[str]
    """Paths that are not in it, and are left alone."""
    left_out: tuple[str, ...]
    """Paths that are not stored, with the reason."""

    def manifest(self) -> bytes:
        """Serialize everything but the content of files."""
        fields = {
            "root": self.root,
            "tree": self.tree,
            "entries": self.entries,
            "files": self.files,
            "folders": self.folders,
            "passed_over": sorted(self.passed_over),
            "left_out": self.left_out,
        }
        return json.dumps(fields).encode()

    def is_link(self, path: str) -> bool:
        return self.entries[path].startswith(LINK)


def content_of(root: str, tree: str, listing: bytes, walk: FolderWalk) -> FolderContent:
    """Combine a finished walk with the tree that stores its files."""
    entries = _entries(listing)
    return FolderContent(
        root=root,
        tree=tree,
        entries=entries,
        files={path: mode for path, mode in walk.files.items() if path in entries},
        folders=walk.folders,
        passed_over=frozenset(walk.passed_over),
        left_out=tuple(walk.left_out),
    )


def content_from_manifest(manifest: bytes) -> FolderContent:
    """Parse a stored manifest."""
    fields = json.loads(manifest)
    return FolderContent(
        root=fields["root"],
        tree=fields["tree"],
        entries=fields["entries"],
        files=fields["files"],
        folders=fields["folders"],
        passed_over=frozenset(fields["passed_over"]),
        left_out=tuple(fields["left_out"]),
    )


@dataclass(frozen=True)
class FolderDifference:
    """Operations that bring a folder back to an earlier content."""

    write: tuple[str, ...] = ()
    """Files and links that are gone, or other ones."""
    set_rights: tuple[str, ...] = ()
    """Files whose permission bits alone are others, and folders."""
    remove: tuple[str, ...] = ()
    make_folders: tuple[str, ...] = ()
    """Outer ones first."""
    remove_folders: tuple[str, ...] = ()
    """Inner ones first."""

    @property
    def files(self) -> set[str]:
        return {*self.write, *self.remove, *self.set_rights}

    @property
    def paths(self) -> list[str]:
        """List all changes for a person: a folder, with `/`, only where none of its files is listed."""
        files = self.files
        folders = [*self.make_folders, *self.remove_folders]
        above = set(_all_above([*files, *folders]))
        bare = [f"{folder}/" for folder in folders if folder not in above]
        return sorted([*files, *bare])


def difference(then: FolderContent, now: FolderContent) -> FolderDifference:
    """Return the way from `now` back to `then`. Paths passed over then are left alone."""
    alone = then.passed_over
    added = [path for path in now.entries if path not in then.entries]
    new_folders = [path for path in now.folders if path not in then.folders]
    same = [path for path, entry in then.entries.items() if now.entries.get(path) == entry]
    rights = [path for path in same if then.files.get(path) != now.files.get(path)]
    rights += [p for p, mode in then.folders.items() if now.folders.get(p, mode) != mode]
    return FolderDifference(
        write=tuple(path for path in then.entries if now.entries.get(path) != then.entries[path]),
        set_rights=tuple(rights),
        remove=tuple(path for path in added if not _is_within(path, alone)),
        make_folders=tuple(sorted(path for path in then.folders if path not in now.folders)),
        remove_folders=tuple(
            sorted((path for path in new_folders if not _is_within(path, alone)), reverse=True)
        ),
    )


def in_the_way(now: FolderContent, off: FolderDifference) -> list[str]:
    """Return unread paths that block a restore, such as a repository in place of a file."""
    targets = {*off.write, *off.make_folders}
    within = {path for path in now.passed_over if targets.intersection(_with_above(path))}
    above = {path for target in targets for path in _with_above(target) if path in now.passed_over}
    return sorted(within | above)


def _is_within(path: str, paths: frozenset[str]) -> bool:
    return any(parent in paths for parent in _with_above(path))


def _all_above(paths: list[str]) -> Iterator[str]:
    for path in paths:
        for parent in _with_above(path):
            if parent != path:
                yield parent


def _with_above(path: str) -> Iterator[str]:
    """The path, and each folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _entries(listing: bytes) -> dict[str, str]:
    """From what `ls-tree -r -z` prints."""
    entries = {}
    for row in listing.split(b"\0"):
        about, _, path = row.partition(b"\t")
        if path:
            mode, _, name = about.split(b" ")
            entries[path.decode(errors="surrogateescape")] = f"{mode.decode()} {name.decode()}"
    return entries


REFS = "refs/grounds"
SCRATCH = "looking-"
_MAX_BYTES = 100_000_000
_MAX_INDEX_BYTES = 100_000_000
# Names are stored as on Linux, also where Windows and macOS would take them for others.
_SETTINGS = (
    *BYTE_EXACT,
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.ignoreCase=false",
)
_SKIPPED_NAMES = (DOT_GIT, STATE)


class FolderShadow:
    """Stores the content of folders, each state under a ref of its own."""

    def __init__(self, git: Git, folder: Path, limits: FolderLimits) -> None:
        """`folder` is made with the first snapshot; nobody else may read it."""
        self.folder = folder
        self._git = git
        self._limits = limits
        self._dir = folder / "kept.git"

    async def read(self, root: Path, index: Path) -> FolderContent:
        """Read the folder's present content into the repository, under no ref yet.

        `index` remembers what was read before, and from then on what was read now. Raises `NotPossibleNow`
        when it is too much, or cannot be read.
        """
        await asyncio.to_thread(self._make)
        large = await self._large(root, index)
        options = WalkOptions(
            most_files=self._limits.files,
            most_bytes=self._limits.bytes,
            never=_SKIPPED_NAMES,
            own=identity_of(self.folder),
            skipped=frozenset(large),
        )
        walk = await asyncio.to_thread(options.through, root)
        walk.left_out += await asyncio.to_thread(describe_ignored, root, large)
        async with self._scratch() as scratch:
            draft = scratch / "index"
            await asyncio.to_thread(_copied, index, draft)
            tree = await self._added(root, draft, [*walk.files, *walk.links])
            listing = await self._run("ls-tree", "-r", "-z", "--full-tree", tree)
            await asyncio.to_thread(draft.replace, index)
        return content_of(str(root), tree, listing, walk)

    async def keep(self, content: FolderContent, ref: str, why: str) -> None:
        """Store the content under a ref. The ref moves in one step, when everything is stored."""
        manifest = await self._run("hash-object", "-w", "--stdin", stdin=content.manifest())
        both = f"040000 tree {content.tree}\tfiles\n100644 blob {manifest.decode().strip()}\tmanifest\n"
        tree = (await self._run("mktree", stdin=both.encode())).decode().strip()
        await clear_stale_lock(str(self._dir), ref)
        await self._run("update-ref", "-m", why, ref, tree)

    async def stored(self, ref: str) -> FolderContent | None:
        """Load the content that a ref stands for; None when there is no such ref."""
        if not self._dir.is_dir():
            return None
        # Whoever made it may have been killed in the middle.
        await asyncio.to_thread(self._make)
        asked = f"{ref}:manifest\n".encode()
        answer = await self._run("cat-file", "--batch=%(objecttype)", stdin=asked)
        kind, _, rest = answer.partition(b"\n")
        return content_from_manifest(rest) if kind == b"blob" else None

    async def refs(self, run_id: str) -> list[str]:
        """List the refs of a run, numbered ones in their order."""
        if not self._dir.is_dir():
            return []
        await asyncio.to_thread(self._make)
        form = ("for-each-ref", "--sort=version:refname", "--format=%(refname)")
        return (await self._run(*form, f"{REFS}/{run_id}/")).decode().splitlines()

    async def forget(self, run_id: str) -> None:
        """Drop all refs of a run. Content that nothing else holds goes with `sweep`."""
        for name in await self.refs(run_id):
            await self._run("update-ref", "-d", name)

    async def sweep(self) -> None:
        """Drop content that no ref holds. What somebody is keeping at this moment is young, and stays."""
        await self._run("prune", "--expire=1.day.ago")

    async def difference(
        self, then: FolderContent, now: FolderContent, most_bytes: int, but_not: Sequence[str]
    ) -> tuple[str, bool]:
        """As `git diff` shows it, without the files `but_not`, and whether that is all of it."""
        tree = await self._reverted(now, then, but_not) if but_not else now.tree
        ended = await self._git.run(
            "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", then.tree, tree,
            git_dir=str(self._dir), settings=_SETTINGS, output_bytes=most_bytes, cut=True,
        )  # fmt: skip
        return ended.stdout.decode(errors="replace"), not ended.stdout_dropped_bytes

    @asynccontextmanager
    async def written_out(
        self, content: FolderContent, paths: Sequence[str]
    ) -> AsyncIterator[Path]:
        """Some of the files in a private folder, which is gone at the end of the block."""
        async with self._scratch() as scratch:
            index, target = scratch / "index", scratch / "files"
            await self._run("read-tree", content.tree, index=index)
            target.mkdir(mode=0o700)
            await self._run(
                "checkout-index", "--force", f"--prefix={target}/", "-z", "--stdin",
                stdin=_lines(paths), index=index, work_tree=str(target),
            )  # fmt: skip
            yield target

    async def _reverted(
        self, content: FolderContent, earlier: FolderContent, paths: Sequence[str]
    ) -> str:
        """The tree of a content in which some files are as they were earlier."""
        absent = f"0 {'0' * len(content.tree)}"
        rows = [f"{earlier.entries.get(path, absent)}\t{path}\0" for path in paths]
        async with self._scratch() as scratch:
            index = scratch / "index"
            await self._run("read-tree", content.tree, index=index)
            # Removals first: a folder may have taken the place of a file.
            rows.sort(key=lambda row: not row.startswith(absent))
            stdin = "".join(rows).encode(errors="surrogateescape")
            await self._run("update-index", "-z", "--index-info", stdin=stdin, index=index)
            return (await self._run("write-tree", index=index)).decode().strip()

    async def _added(self, root: Path, index: Path, paths: Sequence[str]) -> str:
        """The tree of just these paths. What the index knows of unchanged files is not read again."""
        now = set(paths)
        indexed = (await self._run("ls-files", "-z", index=index)).decode(errors="surrogateescape")
        gone = [path for path in indexed.split("\0") if path and path not in now]
        if gone:
            removing = ("update-index", "-z", "--force-remove", "--stdin")
            await self._run(*removing, stdin=_lines(gone), index=index, work_tree=str(root))
        adding = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        await self._run(*adding, stdin=_lines(paths), index=index, work_tree=str(root))
        return (await self._run("write-tree", index=index)).decode().strip()

    async def _large(self, root: Path, index: Path) -> list[str]:
        """Files and folders that git ignores and that are too large to be stored.

        Files that were stored once, or are tracked in the folder's own repository, are stored again.
        """
        async with self._scratch() as scratch:
            tracked, exclude = scratch / "index", scratch / "exclude"
            await asyncio.to_thread(_bring_own_lists, root / DOT_GIT, tracked, exclude)
            await asyncio.to_thread(_copied, index, tracked)
            names = await self._ignored(root, tracked, exclude)
            _, large = await asyncio.to_thread(small_and_large, root, names)
        large_names = (name.rstrip("/") for name in large)
        return [
            name for name in large_names if name.rpartition("/")[2].lower() not in _SKIPPED_NAMES
        ]

    async def ignores(self, root: Path) -> Callable[[str], bool]:
        """Return a check whether the folder's own git ignores a path that exists now."""
        async with self._scratch() as scratch:
            tracked, exclude = scratch / "index", scratch / "exclude"
            await asyncio.to_thread(_bring_own_lists, root / DOT_GIT, tracked, exclude)
            names = await self._ignored(root, tracked, exclude)
        files = frozenset(names)
        folders = tuple(name for name in names if name.endswith("/"))
        return lambda path: path in files or path.startswith(folders)

    async def _ignored(self, root: Path, tracked: Path, exclude: Path) -> list[str]:
        command = (
            "ls-files", "-z", "--others", "--ignored", "--directory",
            "--exclude-per-directory=.gitignore", f"--exclude-from={exclude}",
        )  # fmt: skip
        try:
            listed = await self._run(*command, index=tracked, work_tree=str(root))
        except GitFailed:
            # The folder's own index is of a kind that only its own repository can read.
            tracked.unlink(missing_ok=True)  # noqa: ASYNC240 — one local file
            listed = await self._run(*command, index=tracked, work_tree=str(root))
        return [name.decode(errors="surrogateescape") for name in listed.split(b"\0") if name]

    async def _run(
        self, *arguments: str, stdin: bytes = b"", index: Path | None = None, work_tree: str = ""
    ) -> bytes:
        ended = await self._git.run(
            *arguments,
            git_dir=str(self._dir),
            work_tree=work_tree,
            cwd=work_tree or "/",
            settings=_SETTINGS,
            env={"GIT_INDEX_FILE": str(index)} if index else None,
            stdin=stdin,
            output_bytes=_MAX_BYTES,
        )
        return ended.stdout

    @asynccontextmanager
    async def _scratch(self) -> AsyncIterator[Path]:
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=self.folder) as folder:
            yield Path(folder)

    def _make(self) -> None:
        """Afresh each time: all that git reads there is ours."""
        make_private_folder(self.folder)
        for name in ("objects", "refs", "info"):
            make_private_folder(self._dir / name)
        contents = {
            "config": "[core]\n\tbare = false\n\trepositoryformatversion = 0\n",
            "info/attributes": NO_CONVERSION,
            "HEAD": "ref: refs/heads/none\n",
        }
        for name, content in contents.items():
            path = self._dir / name
            if read_plain(path) != content.encode():
                atomic_write(path, content.encode())


def _bring_own_lists(own: Path, tracked: Path, exclude: Path) -> None:
    """Copy the index and exclude list of the folder's own repository, read as plain data."""
    exclude.write_bytes(read_plain(own / "info/exclude"))
    if content := read_plain(own / "index", _MAX_INDEX_BYTES):
        tracked.write_bytes(content)


def _copied(source: Path, target: Path) -> None:
    """With its time: git takes what changed since then for unread."""
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _lines(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
