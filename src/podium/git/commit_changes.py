"""Commits from outside: kept in quarantine until they are judged, their changes, and the rules over paths, modes and links."""

from __future__ import annotations

import asyncio
import io
import os
import posixpath
import re
import secrets
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from podium.core.errors import ImportRefused
from podium.core.processes import ProcessExit
from podium.core.protected_paths import comparable_parts, is_spelling_of, protected_in
from podium.git.commit_trees import (
    FRUGAL,
    MEMORY_BYTES,
    CommitTrees,
    TreeEntry,
    contents_of,
    read_trees,
)
from podium.git.git_command import Git, GitFailed

MAX_PACK_BYTES = 512_000_000
_MAX_MEMORY_BYTES = 8_000_000_000
_FRUGAL = ("core.packedGitLimit=512m", "core.packedGitWindowSize=32m", "pack.threads=2")


class Quarantine:
    """A scratch object folder on top of the repository's own."""

    def __init__(self, git: Git, git_dir: str, folder: Path) -> None:
        self._git = git
        self._git_dir = git_dir
        self._folder = folder

    @property
    def env(self) -> dict[str, str]:
        """For git to see what is in quarantine, together with the repository's objects."""
        return {"GIT_OBJECT_DIRECTORY": str(self._folder)}

    async def take(self, pack: bytes) -> None:
        """Check every object strictly. Raises `ImportRefused`; `GitFailed` when the machine cannot."""
        try:
            await self._git.run(
                "index-pack", "--strict", "--stdin", "--fix-thin",
                f"--max-input-size={MAX_PACK_BYTES}",
                git_dir=self._git_dir, env=self.env, stdin=pack, settings=_FRUGAL,
                memory_bytes=_MAX_MEMORY_BYTES,
            )  # fmt: skip
        except GitFailed as failed:
            if "No space left" in failed.stderr or failed.timed_out:
                raise
            raise ImportRefused(
                f"git finds invalid objects in these commits: {failed.stderr[-300:]}; make the commits again "
                "with `git add` and `git commit`"
            ) from failed

    async def release(self) -> None:
        """Move everything into the repository. Unreferenced objects there do no harm."""
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        target = Path(self._git_dir, "objects/pack")
        # git takes a pack for whole as soon as its index is there: so that comes last.
        order = {".pack": 0, ".rev": 1, ".idx": 2}
        files = [path for path in (self._folder / "pack").iterdir() if path.suffix in order]
        for file in sorted(files, key=lambda path: order[path.suffix]):
            if not (target / file.name).exists():
                file.rename(target / file.name)


@asynccontextmanager
async def quarantined(git: Git, git_dir: str) -> AsyncIterator[Quarantine]:
    """A quarantine that is gone afterwards. One that a killed process left, the user's `git gc` removes."""
    objects = Path(git_dir, "objects")
    folder = objects / f"tmp_objdir-podium-{secrets.token_hex(8)}"
    for inner in ("pack", "info"):
        os.makedirs(folder / inner, mode=0o700)  # noqa: PTH103 — the mode is for both levels
    try:
        (folder / "info/alternates").write_bytes(os.fsencode(objects) + b"\n")
        yield Quarantine(git, git_dir, folder)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)


_MAX_HEADER_BYTES = 100_000
_LINE = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) (refs/[^\x00-\x20]+)")
_NEEDED = re.compile(rb"-([0-9a-f]{40}|[0-9a-f]{64})( .*)?")


@dataclass(frozen=True)
class QuarantineBundle:
    """One ref, what it builds upon, and the pack that holds the rest."""

    tip: str
    needed: tuple[str, ...]
    pack: bytes


def read_bundle(content: bytes, branch: str) -> QuarantineBundle:
    """Raises `ImportRefused` for anything but one ref of that name."""
    head, separator, _ = content[: _MAX_HEADER_BYTES + 4].partition(b"\n\n")
    lines = head.split(b"\n")
    if not separator or lines[0] not in (b"# v2 git bundle", b"# v3 git bundle"):
        raise ImportRefused("the output of the workspace is not a bundle of commits; commit again")
    refs, needed = _sorted_out(lines[1:])
    if [name for _, name in refs] != [branch]:
        names = ", ".join(name for _, name in refs[:5])
        raise ImportRefused(f"only {branch!r} can be delivered, not {names or 'nothing'}")
    return QuarantineBundle(refs[0][0], tuple(needed), content[len(head) + 2 :])


def _sorted_out(lines: list[bytes]) -> tuple[list[tuple[str, str]], list[str]]:
    refs, needed = [], []
    for line in lines:
        if match := _LINE.fullmatch(line):
            refs.append((match[1].decode(), match[2].decode(errors="replace")))
        elif match := _NEEDED.fullmatch(line):
            needed.append(match[1].decode())
        elif line not in (b"@object-format=sha1", b"@object-format=sha256"):
            raise ImportRefused("the bundle of the workspace has an unknown header; commit again")
    return refs, needed


GITLINK = "160000"
LINK = "120000"
NO_FILE = "000000"
_MODULES = ".gitmodules"
_PLAIN = ("100644", "100755", "100664", LINK, NO_FILE)
_MAX_PATH_BYTES = 4000


@dataclass(frozen=True)
class CommitChange:
    """One path that one commit changes."""

    commit: str
    path: str
    old_mode: str
    new_mode: str
    blob: str
    old_blob: str = ""
    """Of the parent that it is compared with."""

    @property
    def makes_link(self) -> bool:
        return self.new_mode == LINK

    @property
    def about_links(self) -> bool:
        return LINK in (self.old_mode, self.new_mode)


def own_changes(
    changes: Sequence[CommitChange], parents: Mapping[str, Sequence[str]]
) -> list[CommitChange]:
    """Return the changes that a commit has from none of its parents: for a merge, those that differ from all of them."""
    counts = Counter((change.commit, change.path) for change in changes)
    own: dict[tuple[str, str], CommitChange] = {}
    for change in changes:
        if counts[change.commit, change.path] >= max(1, len(parents[change.commit])):
            own.setdefault((change.commit, change.path), change)
    return list(own.values())


def change_problem(change: CommitChange) -> str:
    """Say why a change is refused whatever the zones are; empty when it is not."""
    parts = [part for piece in change.path.split("/") for part in piece.split("\\")]
    protected = protected_in(change.path)
    if GITLINK in (change.old_mode, change.new_mode):
        return f"{change.path!r} is a submodule; submodules cannot be added, moved or removed"
    if protected is not None:
        return (
            f"{change.path!r} is in {protected.name!r} on some systems, which is {protected.what}"
        )
    if any(is_spelling_of(part, _MODULES) for part in parts):
        return f"{change.path!r} configures submodules and cannot be changed"
    if ".." in parts or any(piece in ("", ".") for piece in change.path.split("/")):
        return f"{change.path!r} leads out of the repository on some systems"
    if len(change.path.encode(errors="surrogateescape")) > _MAX_PATH_BYTES:
        return f"the path {change.path[:80]!r}… is too long"
    if change.new_mode not in _PLAIN:
        return f"{change.path!r} has the unsupported mode {change.new_mode}"
    return ""


def link_problem(path: str, target: str) -> str:
    """Say why a link with this target is refused; empty when it is not. Only names after all `..` are certain to stay inside."""
    if "\0" in target or not target:
        return f"the link {path!r} has no valid target"
    if target.startswith("/") or "\\" in target or target[1:2] == ":":
        return f"the link {path!r} leads to {target[:100]!r}, outside the repository"
    parts = [part for part in target.split("/") if part not in ("", ".")]
    names = [index for index, part in enumerate(parts) if part != ".."]
    if names and ".." in parts[names[0] :]:
        return f"the target of the link {path!r} has '..' after a name ({target[:100]!r}); write the target without it"
    landing = posixpath.normpath(posixpath.join(posixpath.dirname(path), *parts))
    if landing == ".." or landing.startswith("../"):
        return f"the link {path!r} leads out of the repository ({target[:100]!r})"
    if (protected := protected_in(landing) or protected_in(target)) is not None:
        return f"the link {path!r} leads into {protected.name!r}, which is {protected.what}"
    return ""


def hidden_by_link(links: Sequence[str], paths: Iterable[str]) -> str:
    """A path that a link would stand above where case does not count; empty when there is none."""
    plain = {comparable_parts(link): link for link in links}
    if not plain:
        return ""
    for path in paths:
        parts = comparable_parts(path)
        for count in range(1, len(parts) + 1):
            link = plain.get(parts[:count])
            if link is not None and link != path:
                return f"{path!r} and the link {link!r} are the same path on file systems that ignore case"
    return ""


_MAX_TARGET_BYTES = 4096
_MAX_OUTPUT_BYTES = 200_000_000
INCLUDES = r"^include(if\..*)?\.path$"
"""Keys of git settings that name further files of settings."""
MAX_LINKS = 5000
"""That one delivery may make or change."""
_PARENTS = ("rev-list", "--topo-order", "--reverse", "--format=%H %P", "--stdin")


class CommitHistory:
    """Reads commits of one repository together with what is in quarantine."""

    def __init__(self, git: Git, git_dir: str, quarantine: Quarantine) -> None:
        self._git = git
        self._git_dir = git_dir
        self._env = quarantine.env
        self._changes: dict[tuple[str, ...], list[CommitChange]] = {}
        self._merge_bases: dict[frozenset[str], str] = {}
        self._trees: CommitTrees | None = None

    async def _lines(self, *arguments: str, stdin: bytes = b"", zero: bool = False) -> list[str]:
        try:
            ended = await self._git.run(
                *arguments, git_dir=self._git_dir, env=self._env, stdin=stdin, output_bytes=_MAX_OUTPUT_BYTES
            )  # fmt: skip
        except GitFailed as failed:
            raise ImportRefused(f"the commits cannot be read: {failed.stderr[-300:]}") from failed
        return await asyncio.to_thread(_split, ended.stdout, "\0" if zero else "\n")

    async def is_ancestor(self, old: str, new: str) -> bool:
        ended = await self._git.run(
            "merge-base", "--is-ancestor", old, new,
            git_dir=self._git_dir, env=self._env, accept=(0, 1, 128),
        )  # fmt: skip
        return ended.exit_code == 0

    async def new_commits(self, tip: str, excluded: Sequence[str]) -> dict[str, list[str]]:
        """Parents by commit, oldest first, of all commits that are reachable from none of the excluded.

        Raises `ImportRefused` when an object that they need is missing.
        """
        objects = ("--objects", "--no-object-names")
        return _parents(await self._lines(*_PARENTS, *objects, stdin=_range(tip, excluded)))

    async def parents(self, tip: str, excluded: Sequence[str]) -> dict[str, list[str]]:
        """Parents by commit, whether or not all their objects are there."""
        return _parents(await self._lines(*_PARENTS, stdin=_range(tip, excluded)))

    async def changes(self, commits: Sequence[str]) -> list[CommitChange]:
        """Return the changes of each commit against each of its parents."""
        key = tuple(commits)
        if key not in self._changes:
            self._changes[key] = await self._changed(commits)
        return self._changes[key]

    async def _changed(self, commits: Sequence[str]) -> list[CommitChange]:
        fields = await self._lines(
            "diff-tree", "--stdin", "-r", "-m", "-z", "--root", "--raw", "--no-renames", "--abbrev=64",
            stdin="".join(f"{commit}\n" for commit in commits).encode(), zero=True,
        )  # fmt: skip
        return await asyncio.to_thread(_changes, fields)

    async def independent(self, commits: Sequence[str]) -> list[str]:
        """Those that are in the history of none of the others."""
        return await self._lines("merge-base", "--independent", *commits)

    async def merge_base(self, one: str, other: str) -> str:
        """The newest that is in both histories; empty when they have nothing in common."""
        pair = frozenset((one, other))
        if pair not in self._merge_bases:
            ended = await self._git.run(
                "merge-base", one, other, git_dir=self._git_dir, env=self._env, accept=(0, 1)
            )
            self._merge_bases[pair] = ended.stdout.decode().strip()
        return self._merge_bases[pair]

    async def differing(self, one: str, other: str) -> list[str]:
        """Paths in which two commits differ; all of the second when the first is empty."""
        if not one:
            return list(await self.entries(other))
        return await self._lines(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other, zero=True
        )

    async def refuse_endless(self, commits: Sequence[str], base: str) -> None:
        """Raise `ImportRefused` for a commit with more paths than anything could list."""

        async def ask(arguments: tuple[str, ...], stdin: bytes) -> ProcessExit:
            return await self._git.run(
                *arguments, git_dir=self._git_dir, env=self._env, stdin=stdin, settings=FRUGAL,
                output_bytes=_MAX_OUTPUT_BYTES, memory_bytes=MEMORY_BYTES, cut=True,
            )  # fmt: skip

        trees = await read_trees(ask, [base, *commits])
        if large := await asyncio.to_thread(trees.larger_than_may_be, commits, base):
            raise ImportRefused(f"{large}; go back to the commit before it with `git reset --soft`")
        self._trees = trees

    async def entries(self, commit: str) -> dict[str, str]:
        """Modes by path of a whole commit."""
        return {path: entry.mode for path, entry in (await self.tree(commit)).items()}

    async def tree(self, commit: str) -> dict[str, TreeEntry]:
        """Modes and blobs by path of a whole commit."""
        if self._trees is not None and commit in self._trees.roots:
            return await asyncio.to_thread(self._trees.files, commit)
        rows = await self._lines("ls-tree", "-r", "-z", commit, zero=True)
        return await asyncio.to_thread(lambda: dict(map(_entry, rows)))

    async def included(self, blob: str) -> list[str]:
        """Paths that git settings in a blob include, as they are written there. None of what git cannot read."""
        ended = await self._git.run(
            "config", f"--blob={blob}", "--null", "--get-regexp", INCLUDES,
            git_dir=self._git_dir, env=self._env, accept=(0, 1, 128),
        )  # fmt: skip
        rows = _split(ended.stdout, "\0") if ended.exit_code == 0 else []
        return [row.partition("\n")[2] for row in rows]

    async def sizes(self, blobs: Sequence[str]) -> dict[str, int]:
        rows = await self._lines(
            "cat-file", "--batch-check=%(objectname) %(objectsize)",
            stdin="".join(f"{blob}\n" for blob in blobs).encode(),
        )  # fmt: skip
        return {row.split()[0]: int(row.split()[1]) for row in rows if row.split()[1].isdecimal()}

    async def targets(self, blobs: Sequence[str], sizes: dict[str, int]) -> dict[str, str]:
        """Texts of links."""
        if len(blobs) > MAX_LINKS:
            raise ImportRefused(
                f"the commits add or change {len(blobs)} links, and at most {MAX_LINKS} can be delivered at once; omit "
                "installed files, or deliver in parts"
            )
        for blob in dict.fromkeys(blobs):
            if sizes.get(blob, 0) > _MAX_TARGET_BYTES:
                raise ImportRefused("the target of a link is too long; remove the link")
        ended = await self._git.run(
            "cat-file", "--batch", "--buffer",
            git_dir=self._git_dir, env=self._env,
            stdin="".join(f"{blob}\n" for blob in dict.fromkeys(blobs)).encode(),
        )  # fmt: skip
        return await asyncio.to_thread(_texts, ended.stdout)

    async def output(self, *arguments: str, stdin: str, max_bytes: int) -> ProcessExit:
        """Return git's output, cut after `max_bytes`."""
        try:
            return await self._git.run(
                *arguments, git_dir=self._git_dir, env=self._env, stdin=stdin.encode(), output_bytes=max_bytes,
                cut=True,
            )  # fmt: skip
        except GitFailed as failed:
            raise ImportRefused(f"the commits cannot be read: {failed.stderr[-300:]}") from failed

    async def texts(self, commits: Sequence[str], max_bytes: int) -> tuple[dict[str, bytes], bool]:
        """Return the stored text of each commit and whether it is complete: nothing is returned above `max_bytes`."""
        texts = self._trees.texts if self._trees is not None else {}
        if not all(commit in texts for commit in commits):
            return await self.contents(commits, max_bytes)
        if sum(len(texts[commit]) for commit in commits) > max_bytes:
            return {}, False
        return {commit: texts[commit] for commit in commits}, True

    async def contents(self, blobs: Sequence[str], max_bytes: int) -> tuple[dict[str, bytes], bool]:
        """Contents by blob, and whether all of them are there: together they may be too large."""
        existing = [blob for blob in blobs if blob.strip("0")]
        if not existing:
            return {}, True
        lines = "".join(f"{blob}\n" for blob in existing)
        ended = await self.output(
            "cat-file", "--batch", "--buffer", stdin=lines, max_bytes=max_bytes
        )
        contents = await asyncio.to_thread(contents_of, ended.stdout)
        return contents, not ended.stdout_dropped_bytes and len(contents) == len(existing)

    async def leading_out(self, commit: str) -> set[str]:
        """Links of a whole commit that end outside of it, through whatever other links."""
        links = [path for path, mode in (await self.entries(commit)).items() if mode == LINK]
        askable = [path for path in links if "\n" not in path]
        ended = await self._git.run(
            "cat-file", "--batch-check", "--follow-symlinks",
            git_dir=self._git_dir, env=self._env, output_bytes=_MAX_OUTPUT_BYTES,
            stdin="".join(f"{commit}:{path}\n" for path in askable).encode(errors="surrogateescape"),
        )  # fmt: skip
        verdicts = await asyncio.to_thread(_followed, ended.stdout)
        out = {
            path for path, verdict in zip(askable, verdicts, strict=True) if verdict == "symlink"
        }
        return out | (set(links) - set(askable))


def _range(tip: str, excluded: Sequence[str]) -> bytes:
    return "".join([f"{tip}\n", *(f"^{commit}\n" for commit in excluded)]).encode()


def _parents(rows: Sequence[str]) -> dict[str, list[str]]:
    """Parents by commit. git puts a line of its own before each commit; objects may follow."""
    parents = [rows[at + 1].split() for at, row in enumerate(rows) if row.startswith("commit ")]
    return {commit: above for commit, *above in parents}


def _entry(row: str) -> tuple[str, TreeEntry]:
    head, path = row.split("\t", 1)
    mode, _, blob = head.split(" ")
    return path, TreeEntry(mode, blob)


def _split(output: bytes, end: str) -> list[str]:
    text = output.decode(errors="surrogateescape")
    return [line for line in text.split(end) if line]


def _changes(fields: Sequence[str]) -> list[CommitChange]:
    changes: list[CommitChange] = []
    commit = ""
    rows = iter(fields)
    for row in rows:
        if not row.startswith(":"):
            commit = row.strip()
            continue
        old_mode, new_mode, old_blob, blob, _ = row[1:].split(" ")
        changes.append(CommitChange(commit, next(rows), old_mode, new_mode, blob, old_blob))
    return changes


def _texts(answers: bytes) -> dict[str, str]:
    return {
        blob: content.decode(errors="surrogateescape")
        for blob, content in contents_of(answers).items()
    }


def _followed(answers: bytes) -> list[str]:
    """Return the status of each answer. The end of a link follows on lines of its own, counted in bytes."""
    verdicts: list[str] = []
    stream = io.BytesIO(answers)
    for line in stream:
        status, _, size = line.rstrip(b"\n").partition(b" ")
        if status in (b"symlink", b"dangling", b"loop", b"notdir"):
            stream.seek(int(size) + 1, io.SEEK_CUR)
        verdicts.append(status.decode(errors="replace"))
    return verdicts
