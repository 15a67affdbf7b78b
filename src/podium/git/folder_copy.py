"""Private copies of a folder from which nothing leads back, for rehearsals."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.protected_paths import GIT_DIR, STATE_DIR, comparable
from podium.git.git_command import Git
from podium.git.private_dir import alternates_of, read_plain
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write
from podium.platform.folder_tree import clear_away

STATE = STATE_DIR
DOT_GIT = GIT_DIR


@dataclass(frozen=True)
class FolderLimits:
    """Limits on what is stored or copied of a folder before a playbook works in it."""

    files: int = 50_000
    bytes: int = 1_000_000_000
    copied_files: int = 200_000
    """A copy has everything, also what a build made and git ignores."""
    copied_bytes: int = 4_000_000_000


@dataclass
class FolderWalk:
    """Paths from the folder on, with `/`; bytes that are no text stay whole as surrogates."""

    files: dict[str, int] = field(default_factory=dict)
    """Permission bits of each."""
    links: set[str] = field(default_factory=set)
    folders: dict[str, int] = field(default_factory=dict)
    """Permission bits of each, the folder itself not among them; a folder comes before what is in it."""
    passed_over: set[str] = field(default_factory=set)
    """Paths that were not read and are left alone."""
    left_out: list[str] = field(default_factory=list)
    """Unreadable paths that a person may miss, as text."""
    bytes: int = 0


@dataclass(frozen=True)
class WalkOptions:
    """Limits and exclusions of a walk through a folder."""

    most_files: int
    most_bytes: int
    never: Collection[str]
    """Names of what is passed over at any depth, in small letters."""
    own: tuple[int, int]
    """Device and inode of Podium's own folder for all this, should it lie within."""
    skipped: Collection[str] = ()
    """Paths that are passed over."""

    def through(self, root: Path) -> FolderWalk:
        """Everything. Raises `NotPossibleNow` when it is more than may be, or the folder cannot be read."""
        walk = FolderWalk()
        waiting = [""]
        while waiting:
            inner = waiting.pop()
            try:
                entries = _entries(root, inner)
            except OSError as error:
                if not inner:
                    raise NotPossibleNow(
                        f"cannot read the folder {str(root)!r}: {error.strerror}"
                    ) from error
                self._miss(walk, inner.rstrip("/"), error)
                continue
            for entry in entries:
                path = inner + entry.name
                if self._take(walk, entry, path):
                    waiting.append(f"{path}/")
                self._check(walk, root)
        return walk

    def _take(self, walk: FolderWalk, entry: os.DirEntry[str], path: str) -> bool:
        """Note what it is; whether it is a folder to look into."""
        if comparable(entry.name) in self.never or path in self.skipped:
            walk.passed_over.add(path)
            return False
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            self._miss(walk, path, error)
            return False
        if stat.S_ISDIR(status.st_mode):
            return self._enter(walk, path, status)
        if stat.S_ISLNK(status.st_mode):
            walk.links.add(path)
        elif not stat.S_ISREG(status.st_mode):
            walk.passed_over.add(path)
        elif not os.access(entry.path, os.R_OK):
            self._miss(walk, path, PermissionError(0, "permission denied"))
        else:
            walk.files[path] = stat.S_IMODE(status.st_mode) & 0o777
            walk.bytes += status.st_size
        return False

    def _enter(self, walk: FolderWalk, path: str, status: os.stat_result) -> bool:
        if (status.st_dev, status.st_ino) == self.own:
            walk.passed_over.add(path)
            return False
        walk.folders[path] = stat.S_IMODE(status.st_mode) & 0o777
        return True

    def _miss(self, walk: FolderWalk, path: str, error: OSError) -> None:
        walk.folders.pop(path, None)
        walk.passed_over.add(path)
        walk.left_out.append(f"{printable(path)[:200]!r}: {error.strerror}")

    def _check(self, walk: FolderWalk, root: Path) -> None:
        count = len(walk.files) + len(walk.links) + len(walk.folders)
        if count > self.most_files:
            raise NotPossibleNow(f"{str(root)!r} has more than {self.most_files} files and folders")
        if walk.bytes > self.most_bytes:
            raise NotPossibleNow(
                f"the files in {str(root)!r} take more than {self.most_bytes // 1_000_000} MB"
            )


def printable(path: str) -> str:
    """The path as text that can be written anywhere."""
    return os.fsencode(path).decode(errors="replace")


def identity_of(folder: Path) -> tuple[int, int]:
    """Device and inode, which identify a folder under any name."""
    status = folder.stat()
    return status.st_dev, status.st_ino


def _entries(root: Path, inner: str) -> list[os.DirEntry[str]]:
    """Read at once: however deep the walk goes, no more than one folder is open."""
    with os.scandir(root / inner) as entries:
        return list(entries)


_LEADING_BACK = ("worktrees", "index.lock", "remotes", "branches", "commondir", "gitdir")
"""In a git directory: other checkouts, other repositories, and a lock that nobody would take away."""
_SETTINGS = ("config", "config.worktree")
_ALTERNATES = "objects/info/alternates"
_POINTER_BYTES = 5_000


def copy_folder(root: Path, target: Path, walk: FolderWalk, ready: Path) -> list[Path]:
    """Copy files, links and git directories; gives the files of settings of these.

    `ready` is where the copy will be worked in. Folders stay open to their owner, so that the copy can be worked in and removed.
    """
    settings = _copy_plain(root, target, walk, "")
    for path in walk.links:
        if DOT_GIT not in PurePosixPath(path).parts:
            (target / path).symlink_to(_led_inside(root, ready, path))
    return settings


def copy_repository(common: Path, admin: Path, target: Path, walk: FolderWalk) -> list[Path]:
    """A git directory of its own, out of the one that a linked worktree shares and what it has itself."""
    settings = _copy_plain(common, target, walk, f"{DOT_GIT}/")
    for name in ("HEAD", "index"):
        if content := read_plain(admin / name):
            atomic_write(target / name, content)
    return settings


def _copy_plain(source: Path, target: Path, walk: FolderWalk, above: str) -> list[Path]:
    """`above` is where the source would lie in a whole copy."""
    target.mkdir(mode=0o700)
    for path, mode in walk.folders.items():
        if not _leads_back(source, path, above):
            (target / path).mkdir(mode=0o700)
            (target / path).chmod(mode | 0o700)
    settings = []
    for path, mode in walk.files.items():
        if _leads_back(source, path, above):
            continue
        _copy_file(source / path, target / path, mode)
        if _in_git(above + path) and path.endswith(_ALTERNATES):
            _bring_alternates(source / path, target / path)
        if _in_git(above + path) and path.rpartition("/")[2] in _SETTINGS:
            settings.append(target / path)
    return settings


def _copy_file(source: Path, target: Path, mode: int) -> None:
    shutil.copyfile(source, target, follow_symlinks=False)
    if not target.is_symlink():
        target.chmod(mode | 0o400)


def _led_inside(root: Path, ready: Path, path: str) -> str:
    """Return the target of a link in the copy. One that names the original by its whole path would lead back there."""
    leads = os.readlink(root / path)  # noqa: PTH115 — a `Path` is not the text as it stands
    within = PurePosixPath(leads).is_relative_to(root)
    return str(ready / PurePosixPath(leads).relative_to(root)) if within else leads


def _in_git(path: str) -> bool:
    """Check that a path lies in a git directory and is not a ref with an odd name."""
    parts = PurePosixPath(path).parts
    return DOT_GIT in parts[:-1] and not {"refs", "logs"}.intersection(parts)


def _leads_back(source: Path, path: str, above: str) -> bool:
    parts = PurePosixPath(above + path).parts
    if DOT_GIT not in parts:
        return False
    within = parts[parts.index(DOT_GIT) + 1 :]
    if not within:
        return (source / path).is_file() and not _points_inside(source, path)
    if within[0] == "modules":
        within = within[2:]
    return bool(within) and within[0] in _LEADING_BACK


def _points_inside(root: Path, path: str) -> bool:
    """Check that a submodule's pointer names its repository by a path that stays in the folder."""
    text = os.fsdecode(read_plain(root / path, _POINTER_BYTES)).strip()
    leads = text.removeprefix("gitdir:").strip()
    there = os.path.normpath(root / PurePosixPath(path).parent / leads)
    return not PurePosixPath(leads).is_absolute() and Path(there).is_relative_to(root)


def _bring_alternates(source: Path, target: Path) -> None:
    """A relative way to borrowed objects leads nowhere from the copy. git only ever reads there."""
    lines = "".join(f"{real}\n" for _, real in alternates_of(str(source.parents[1])))
    atomic_write(target, os.fsencode(lines))


_DRAFT = "draft-"
_DROPPED_SETTINGS = ("remote.", "include.", "includeif.")


class FolderCopies:
    """Makes and removes copies, one for each run."""

    def __init__(self, git: Git, folder: Path, limits: FolderLimits) -> None:
        self._git = git
        self._folder = folder
        self._copies = folder / "copies"
        self._limits = limits

    async def make(self, run_id: str, root: Path) -> Path:
        """The run's copy, made whole or not at all. Raises `NotPossibleNow` that says why there is none."""
        ready = self._copies / run_id / (root.name or "root")
        if os.path.lexists(ready):  # noqa: ASYNC240 — one look
            return ready
        draft = self._copies / f"{_DRAFT}{run_id}"
        try:
            await asyncio.to_thread(self._clear_draft, draft)
            await self._fill(root, draft / ready.name, ready)
            await asyncio.to_thread(draft.rename, ready.parent)
        except OSError as error:
            await asyncio.to_thread(clear_away, draft)
            raise NotPossibleNow(
                f"cannot copy {str(root)!r}: {error.strerror} ({error.filename!r}); free disk space, or run without --dry-run"
            ) from error
        except NotPossibleNow:
            await asyncio.to_thread(clear_away, draft)
            raise
        return ready

    async def remove(self, copy: Path) -> str:
        """Remove the copy at this place; gives the run that it was made for."""
        run_id = copy.parent.name
        if copy.parent.parent != self._copies or not run_id or run_id.startswith(_DRAFT):
            raise BadInput(f"{str(copy)!r} is not a copy made by Podium; it was left unchanged")
        await self.drop(run_id)
        return run_id

    async def drop(self, run_id: str) -> None:
        """Remove a run's copy, or what a kill left of one."""
        for name in (run_id, f"{_DRAFT}{run_id}"):
            await asyncio.to_thread(clear_away, self._copies / name)

    def runs(self) -> list[str]:
        """All runs that a copy was made for, or begun."""
        names = os.listdir(self._copies) if self._copies.is_dir() else []  # noqa: PTH208 — names alone
        return sorted({name.removeprefix(_DRAFT) for name in names})

    async def _fill(self, root: Path, target: Path, ready: Path) -> None:
        walk = await asyncio.to_thread(self._walk, root, root)
        settings = await asyncio.to_thread(copy_folder, root, target, walk, ready)
        own = root / DOT_GIT
        if own.is_symlink() or own.is_file():
            settings += await self._bring_repository(root, target)
        for config in settings:
            await self._clean(config)

    async def _bring_repository(self, root: Path, target: Path) -> list[Path]:
        """A linked worktree has its repository elsewhere: the copy gets one of its own."""
        command = ("rev-parse", "--path-format=absolute", "--git-common-dir", "--absolute-git-dir")
        common, admin = map(Path, (await self._git.text(*command, cwd=str(root))).split("\n"))
        walk = await asyncio.to_thread(self._walk, common, root)
        return await asyncio.to_thread(copy_repository, common, admin, target / DOT_GIT, walk)

    async def _clean(self, config: Path) -> None:
        """No setting of the copy's repository leads to another one."""
        here = ("config", "--file", str(config), "--no-includes")
        listed = await self._git.run(*here, "--name-only", "--list", "-z")
        keys = dict.fromkeys(listed.stdout.decode(errors="surrogateescape").split("\0"))
        sections = [key.rpartition(".")[0] for key in keys if key.startswith(_DROPPED_SETTINGS)]
        for section in dict.fromkeys(sections):
            await self._git.run("config", "--file", str(config), "--remove-section", section)
        if "core.worktree" in keys:
            await self._git.run("config", "--file", str(config), "--unset-all", "core.worktree")

    def _clear_draft(self, draft: Path) -> None:
        for folder in (self._folder, self._copies):
            make_private_folder(folder)
        clear_away(draft)
        draft.mkdir(mode=0o700)

    def _walk(self, folder: Path, root: Path) -> FolderWalk:
        options = WalkOptions(
            most_files=self._limits.copied_files,
            most_bytes=self._limits.copied_bytes,
            never=(STATE,),
            own=identity_of(self._folder),
        )
        try:
            walk = options.through(folder)
        except NotPossibleNow as error:
            raise NotPossibleNow(
                f"cannot copy {str(root)!r}: {error}; name a smaller folder, or run without --dry-run"
            ) from error
        if walk.left_out:
            raise NotPossibleNow(f"cannot copy {str(root)!r}: {walk.left_out[0]}; make it readable")
        return walk
