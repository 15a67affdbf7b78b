"""Layout of a worktree: forbidden zones, the `.git` pointer, the private git directory mounted inside, planted repositories moved out.

Where nothing can be mounted a confined agent can replace it: inside, variables tell git
which directory is its own. So it is looked at after every turn and before anything is done with a workspace,
and no git that would find its way by it runs before.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from podium.core.errors import WorkspaceTampered
from podium.core.processes import Confinement, Mount
from podium.core.protected_paths import STATE_DIR, protected_name
from podium.core.workspaces import WorkspaceRecord
from podium.git.git_command import Git
from podium.git.planted import (
    PlantedRepository,
    find_planted,
    move_away,
    same_as_blob,
    take_borrowed_rights,
)
from podium.git.private_dir import (
    BASE_OBJECTS,
    PRIVATE_CONFIG,
    PRIVATE_HOOKS,
    alternates_of,
    read_plain,
)
from podium.platform.atomic_write import atomic_write
from podium.platform.folder_tree import files_within, open_up
from podium.platform.safe_open import create_new


def pin_zones(worktree: str, forbidden: Iterable[str]) -> tuple[str, ...]:
    """The paths to pin. Missing ones become empty folders, which git does not see.

    Raises `WorkspaceTampered` when a link or anything else odd stands in the way: what mounts a path follows
    links in it. Only while no process of the agent lives.
    """
    return tuple(str(_pinned(Path(worktree), path)) for path in forbidden)


def closed_state(record: WorkspaceRecord) -> tuple[Mount, ...]:
    """Mounts that keep a worktree's top free of a state folder: read-only, and made as an empty folder when missing.

    What stands in its way is moved into the private folder. One that the base has is among the forbidden paths. Where
    nothing can be mounted it is put back after the turn, so that files can be made beside it.
    """
    if STATE_DIR in record.forbidden:
        return ()
    folder = Path(record.path, STATE_DIR)
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        move_away(Path(record.path), Path(record.private), [STATE_DIR])
    folder.mkdir(mode=0o700, exist_ok=True)
    return (Mount(source=str(folder), target=str(folder), put_back=True),)


async def tracked_states(git: Git, git_dir: str, commit: str) -> list[str]:
    """State folders that a commit has, at any depth: they are the user's, and stay as they are."""
    text = await git.text("ls-tree", "-r", "-d", "-z", "--name-only", commit, git_dir=git_dir)
    folders = (path for path in text.split("\0") if path)
    return [path for path in folders if protected_name(path.rpartition("/")[2]) == STATE_DIR]


def _pinned(worktree: Path, path: str) -> Path:
    current = worktree
    parts = path.split("/")
    for number, part in enumerate(parts, 1):
        current = current / part
        try:
            mode = current.lstat().st_mode
        except FileNotFoundError:
            current.mkdir(mode=0o755)
            continue
        last = number == len(parts)
        if not (stat.S_ISDIR(mode) or (last and stat.S_ISREG(mode))):
            raise WorkspaceTampered(
                f"{str(current)!r} is {_kind(mode)}, but {path!r} is a forbidden path; create a folder there, or remove the "
                "path from the forbidden paths"
            )
    return current


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a file" if stat.S_ISREG(mode) else "a special file"


def check_plain(path: Path, kind: str) -> None:
    """Raise `WorkspaceTampered` unless a real folder (or file) is there and no link."""
    is_kind = stat.S_ISDIR if kind == "folder" else stat.S_ISREG
    try:
        fine = is_kind(os.lstat(path).st_mode)
    except OSError:
        fine = False
    if not fine:
        raise WorkspaceTampered(
            f"{str(path)!r} is no longer the {kind} that the workspace was created with; save what you need from the "
            "worktree and create a new workspace"
        )


POINTER = ".git"
_ATTEMPTS = 10
_ONE_AT_A_TIME = threading.Lock()
"""Several starts in one worktree may be prepared at once, and each relies on what it has just seen."""
_FOR_ITS_OWNER, _FOR_OTHERS = 0o600, 0o044


def put_pointer_back(record: WorkspaceRecord) -> tuple[str, ...]:
    """Make it what the worktree was made with, and give what was moved into the private folder.

    An agent may live meanwhile. Raises `WorkspaceTampered` when the worktree or the user's git directory is
    not there, or when somebody changes the pointer as quickly as it is made.
    """
    admin = Path(record.git_dir, "worktrees", record.admin)
    check_plain(Path(record.path), "folder")
    check_plain(admin, "folder")
    with _ONE_AT_A_TIME:
        return _put_back(record, os.fsencode(f"gitdir: {admin}\n"))


def _put_back(record: WorkspaceRecord, content: bytes) -> tuple[str, ...]:
    worktree = Path(record.path)
    away: tuple[str, ...] = ()
    for _ in range(_ATTEMPTS):
        if _is_right(worktree / POINTER, content):
            return away
        open_up(worktree)
        away = _taken_away(record, content) or away
        _write(worktree / POINTER, content)
    raise WorkspaceTampered(
        f"{str(worktree / POINTER)!r} keeps being changed; stop the programs that run in the worktree, then try again"
    )


def _is_right(pointer: Path, content: bytes) -> bool:
    try:
        about = pointer.lstat()
    except OSError:
        return False  # not there, or in a folder that nobody may enter
    rights = stat.S_IMODE(about.st_mode) & ~_FOR_OTHERS
    if not stat.S_ISREG(about.st_mode) or rights != _FOR_ITS_OWNER:
        return False
    # Under a second name it could be changed where the first is protected.
    return about.st_nlink == 1 and _says(pointer, content)


def _says(pointer: Path, content: bytes) -> bool:
    return read_plain(pointer, len(content) + 1) == content


def _taken_away(record: WorkspaceRecord, content: bytes) -> tuple[str, ...]:
    """Remove the wrong pointer. One that only has a second name or another mode is deleted, anything else moved away."""
    pointer = Path(record.path, POINTER)
    with suppress(FileNotFoundError, IsADirectoryError):
        if _says(pointer, content):
            pointer.unlink()
            return ()
    return move_away(Path(record.path), Path(record.private), [POINTER])


def _write(pointer: Path, content: bytes) -> None:
    """Not written in one step: one that a kill cuts off is found wrong the next time."""
    with suppress(FileExistsError), os.fdopen(create_new(pointer, mode=0o644), "wb") as file:
        file.write(content)


DRAFT = "git.draft"
"""A private git directory that is being made anew."""
NEXT = "git.next"
"""One that is whole and about to take the place of `git`."""


def confinement_of(record: WorkspaceRecord) -> Confinement:
    """Check the workspace and return its mounts. Raises `WorkspaceTampered`.

    The worktree's `.git` is made what it was; what stood in its place is reported when the turn ends.
    Everything the agent cannot write is checked too: it may have run without confinement before.
    """
    private, worktree, git_dir = Path(record.private), record.path, record.git_dir
    _check_layout(record)
    mounts = [
        Mount(source=str(private / "home"), target=str(private / "home"), writable=True),
        Mount(source=worktree, target=worktree, writable=True),
        Mount(source=f"{worktree}/.git", target=f"{worktree}/.git", put_back=True),
        *closed_state(record),
        Mount(source=str(private / "git"), target=git_dir, writable=True),
        Mount(source=f"{git_dir}/objects", target=f"{git_dir}/{BASE_OBJECTS}"),
        *(Mount(source=real, target=named) for named, real in alternates_of(f"{git_dir}/objects")),
        Mount(source=str(private / PRIVATE_CONFIG), target=f"{git_dir}/config"),
        # Not its own empty one: where nothing is mounted, what lies in a writable folder would close that.
        Mount(source=str(private / PRIVATE_HOOKS), target=f"{git_dir}/hooks"),
    ]
    return Confinement(
        kind="kernel",
        mounts=tuple(mounts),
        pinned=pin_zones(worktree, record.forbidden),
        home=str(private / "home"),
        unmounted_env={
            "GIT_DIR": str(private / "git/worktrees" / record.admin),
            "GIT_WORK_TREE": worktree,
        },
        network="none",
    )


def _check_layout(record: WorkspaceRecord) -> None:
    """Raise `WorkspaceTampered` unless everything that is mounted is what it was made as."""
    finish_swap(Path(record.private))
    private = Path(record.private)
    for folder in ("home", PRIVATE_HOOKS, *folders_of_git(record)):
        check_plain(private / folder, "folder")
    check_plain(private / PRIVATE_CONFIG, "file")
    put_pointer_back(record)
    _renew_config(private)


def folders_of_git(record: WorkspaceRecord) -> tuple[str, ...]:
    """Folders of the private git directory that everything mounted there stands on, outer ones first."""
    inner = ("hooks", "objects", BASE_OBJECTS, "worktrees", f"worktrees/{record.admin}")
    return ("git", *(f"git/{name}" for name in inner))


def finish_swap(private: Path) -> None:
    """Put the next git directory in its place where a killed Podium had taken the old one away."""
    if (private / NEXT).is_dir() and not os.path.lexists(private / "git"):
        (private / NEXT).rename(private / "git")


def _renew_config(private: Path) -> None:
    """Unmounted, the agent may have written settings of its own; they last for one turn at most."""
    inner = private / "git/config"
    settings = (private / PRIVATE_CONFIG).read_bytes()
    if inner.is_symlink() or not inner.is_file() or inner.read_bytes() != settings:
        atomic_write(inner, settings)


_COMMAND_LINE_BYTES = 500_000
"""Linux gives 2 MB with its usual stack, for the environment too."""
_POINTER_BYTES = 9
"""Bytes that each argument takes beside its text: a zero at its end, and a pointer."""


async def tidy(git: Git, record: WorkspaceRecord) -> tuple[str, ...]:
    """The paths that were moved into the private folder. Only while no process of the agent lives."""
    worktree = Path(record.path)
    pointer = await asyncio.to_thread(put_pointer_back, record)
    planted, unread = await asyncio.to_thread(find_planted, worktree)
    private = Path(record.private)
    # What is nobody's goes first, so that nothing about the rest keeps it here.
    nobodys = [item.path for item in planted if not item.may_be_tracked]
    moved = await asyncio.to_thread(move_away, worktree, private, nobodys)
    # Behind that, which opened every folder.
    await asyncio.to_thread(take_borrowed_rights, worktree)
    doubtful = [item for item in planted if item.may_be_tracked]
    tracked = await _tracked(git, record, [item.path for item in doubtful])
    inner = await asyncio.to_thread(_files_of_folders, worktree, doubtful, tracked)
    if inner:
        tracked |= await _tracked(git, record, [item.path for item in inner])
        doubtful = [item for item in doubtful if not _is_folder(worktree, item, tracked)] + inner
    added = await asyncio.to_thread(_not_the_projects, worktree, doubtful, tracked)
    moved += await asyncio.to_thread(move_away, worktree, private, added)
    if unread:
        raise WorkspaceTampered(f"a folder of the worktree cannot be read ({unread[0]}); remove it")
    return (*pointer, *moved)


async def _tracked(git: Git, record: WorkspaceRecord, paths: Sequence[str]) -> dict[str, str]:
    """Objects by path, of those paths that the base has."""
    objects: dict[str, str] = {}
    for some in _fitting(paths):
        text = await git.text(
            "--literal-pathspecs", "ls-tree", "-z", record.base, "--", *some, git_dir=record.git_dir
        )
        rows = [row.split("\t", 1) for row in text.split("\0") if row]
        objects |= {path: facts.split(" ")[2] for facts, path in rows}
    return objects


def _fitting(paths: Sequence[str]) -> Iterator[list[str]]:
    """All of them, in lists that fit on a command line."""
    some: list[str] = []
    size = 0
    for path in paths:
        length = len(os.fsencode(path)) + _POINTER_BYTES
        if some and size + length > _COMMAND_LINE_BYTES:
            yield some
            some, size = [], 0
        some.append(path)
        size += length
    if some:
        yield some


def _files_of_folders(
    worktree: Path, planted: Sequence[PlantedRepository], tracked: dict[str, str]
) -> list[PlantedRepository]:
    """The files of folders that the base has: each is judged by itself."""
    top = len(os.fspath(worktree)) + 1
    folders = [item.path for item in planted if _is_folder(worktree, item, tracked)]
    return [
        PlantedRepository(entry.path[top:], may_be_tracked=True)
        for folder in folders
        for entry in files_within(worktree / folder)
    ]


def _is_folder(worktree: Path, planted: PlantedRepository, tracked: dict[str, str]) -> bool:
    path = worktree / planted.path
    return planted.path in tracked and not path.is_symlink() and path.is_dir()


def _not_the_projects(
    worktree: Path, planted: Sequence[PlantedRepository], tracked: dict[str, str]
) -> list[str]:
    return [item.path for item in planted if not _is_the_projects(worktree, item, tracked)]


def _is_the_projects(worktree: Path, planted: PlantedRepository, tracked: dict[str, str]) -> bool:
    blob = tracked.get(planted.path)
    return blob is not None and same_as_blob(worktree / planted.path, blob)
