"""Creation of a workspace, whole or not at all: its names, its entry under `worktrees`, and the undo of a failed creation."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath

from podium.core.errors import BadInput, NotPossibleNow, WorkspaceTampered
from podium.core.protected_paths import GIT_DIR, STATE_DIR, protected_name
from podium.core.workspaces import WorkspaceRecord, WorkspaceSpec
from podium.git.git_command import Git, GitFailed, clear_stale_lock
from podium.git.layout import pin_zones, tracked_states
from podium.git.private_dir import (
    PRIVATE_CONFIG,
    PRIVATE_HOOKS,
    build_private_dir,
    identity_settings,
    note_initial_commits,
    private_settings,
)
from podium.git.records import RecordLookup, WorkspaceRecords
from podium.git.repository import RepositoryState
from podium.platform import make_private_folder, tighten
from podium.platform.atomic_write import atomic_write
from podium.platform.completion import in_thread, run_to_completion
from podium.platform.folder_tree import clear_away, remove_if_empty

_TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,99}")
_NOT_IN_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def check_task(task: str) -> None:
    if not _TASK.fullmatch(task) or ".." in task or task.endswith((".", ".lock")):
        raise BadInput(
            f"{task!r} is not a valid task name; use at most 100 letters, digits, dots and dashes, "
            "beginning with a letter or digit and not ending with a dot"
        )


def branch_of(spec: WorkspaceSpec, repository: RepositoryState, claims: RecordLookup) -> str:
    """The whole name of the branch. Raises for one that cannot be made."""
    short = spec.branch or f"podium/{spec.task}"
    parts = short.split("/")
    bad = _NOT_IN_BRANCH.search(short) or short.startswith("-") or short in ("HEAD", "@")
    if bad or any(_bad_part(part) for part in parts):
        raise BadInput(f"{short!r} is not a valid branch name; see `git check-ref-format`")
    name = f"refs/heads/{short}"
    _refuse_taken(name, short, repository, claims)
    return name


def _bad_part(part: str) -> bool:
    return not part or part.startswith(".") or part.endswith((".", ".lock"))


def _refuse_taken(name: str, short: str, repository: RepositoryState, claims: RecordLookup) -> None:
    if name in repository.refs:
        whose = claims.describe_branch(repository.git_dir, name)
        raise NotPossibleNow(f"branch {short!r} already exists: {whose}")
    for other in repository.refs:
        if other.startswith(name + "/") or name.startswith(other + "/"):
            raise NotPossibleNow(
                f"branch {short!r} conflicts with {other.removeprefix('refs/heads/')!r}: one name is a folder of "
                "the other; name another branch"
            )
    if repository.is_on("core.ignorecase"):
        alike = [other for other in repository.refs if same_name(other) == same_name(name)]
        if alike:
            raise NotPossibleNow(
                f"branch {short!r} differs from {alike[0].removeprefix('refs/heads/')!r} only in case, which this file system ignores; name another branch"
            )


def folder_of(
    spec: WorkspaceSpec, repository: RepositoryState, state_home: Path, claims: RecordLookup
) -> str:
    """Return the folder for the worktree. Raises when something is there already."""
    if spec.folder:
        named = Path(os.path.abspath(spec.folder))  # noqa: PTH100 — links in it are resolved below
        folder = Path(os.path.realpath(named.parent)) / named.name
        if not os.path.isdir(folder.parent):  # noqa: PTH112 — see `find_repository`
            raise BadInput(f"the folder {str(folder.parent)!r} does not exist; create it first")
    else:
        folder = _default_folder(spec.task, repository, state_home, claims)
    if "\n" in str(folder) or '"' in str(folder):
        raise BadInput(f"{str(folder)!r} contains a line break or a quote; name another folder")
    if os.path.lexists(folder):
        owner = claims.of_folder(str(folder))
        whose = "Podium did not create it; name another task"
        if owner is not None:
            whose = claims.describe_folder(owner)
        raise NotPossibleNow(f"{str(folder)!r} already exists: {whose}")
    inside = (Path(repository.git_dir), Path(repository.own_git_dir))
    if any(folder.is_relative_to(git_dir) for git_dir in inside):
        raise BadInput(f"{str(folder)!r} is inside a git directory; name another folder")
    return str(folder)


def _default_folder(
    task: str, repository: RepositoryState, state_home: Path, claims: RecordLookup
) -> Path:
    beside = Path(repository.checkout).parent / ".worktrees"
    parent = beside if os.path.isdir(beside) else beside.parent  # noqa: PTH112 — see `find_repository`
    longer = f"{Path(repository.checkout).name}-{task}"
    if os.access(parent, os.W_OK | os.X_OK) and not beside.is_symlink():
        # Repositories side by side have this folder in common.
        owner = claims.of_folder(str(beside / task))
        shared = owner is not None and owner.git_dir != repository.git_dir
        return beside / (longer if shared else task)
    return Path(os.path.realpath(state_home)) / "worktrees" / longer


def forbidden_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Each path as it is compared: without `./` and doubled slashes. Raises for what is no path inside."""
    clean: list[str] = []
    for path in paths:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            raise BadInput(
                f"{path!r} cannot be forbidden: name a path relative to the workspace, without '..'"
            )
        names = {protected_name(part) for part in parts}
        if GIT_DIR in names:
            raise BadInput(
                f"{path!r} is already forbidden, as git directories always are; remove it"
            )
        if STATE_DIR not in names:  # protected at any depth, whether or not somebody asks for it
            clean.append("/".join(parts))
    return tuple(dict.fromkeys(clean))


def same_name(text: str) -> str:
    """Equal for names that a file system which ignores case takes for one."""
    return unicodedata.normalize("NFC", text).casefold()


_MAX_POINTER_BYTES = 5000


def admin_of(record: WorkspaceRecord) -> str:
    """The name that git gave to the folder of the record's worktree."""
    named = admin_folders(record)
    if len(named) != 1 or not points_at(record, named[0]):
        raise NotPossibleNow(
            f"git created no worktree in {record.path!r} that belongs to {record.git_dir!r}; check "
            "`git worktree list`"
        )
    return named[0].name


def admin_folders(record: WorkspaceRecord) -> list[Path]:
    """Folders in the user's git directory that name the record's worktree: one, or none after a crash."""
    pointer = f"{record.path}/.git"
    return [entry for entry in _entries(record) if _read(entry / "gitdir") == pointer]


def begun_folders(record: WorkspaceRecord) -> list[Path]:
    """Folders that a killed git had begun for the record's worktree, or half taken away again.

    They name no worktree, so they are of no use to anybody. git calls them as the worktree, with a
    number behind it where that is taken.
    """
    name = Path(record.path).name
    return [
        entry
        for entry in _entries(record)
        if entry.name.startswith(name)
        and entry.name.removeprefix(name).strip("0123456789") == ""
        and not _read(entry / "gitdir")
    ]


def _entries(record: WorkspaceRecord) -> list[Path]:
    with suppress(FileNotFoundError):
        entries = os.scandir(Path(record.git_dir, "worktrees"))
        return [Path(entry.path) for entry in entries if entry.is_dir()]
    return []


def points_at(record: WorkspaceRecord, admin: Path) -> bool:
    """Check that the worktree's `.git` file names this folder."""
    return _read(Path(record.path, ".git")) == f"gitdir: {admin}"


def _read(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return os.fsdecode(file.read(_MAX_POINTER_BYTES)).strip()
    return ""


def prepare_parent(folder: Path) -> None:
    """Make the folder for worktrees; where it lies in a repository, that one does not see them."""
    parent = folder.parent
    make_private_folder(parent)
    if parent.name == ".worktrees" and _inside_repository(parent):
        ignore = parent / ".gitignore"
        if not os.path.lexists(ignore):
            ignore.write_text("*\n")


def tighten_worktree(folder: Path) -> None:
    """Take the worktree from all others, and the folder for worktrees that it lies in. No link is followed."""
    own = [folder.parent] if folder.parent.name == ".worktrees" else []
    for path in (*own, folder):
        if not path.is_symlink():
            tighten(path)


def forget_parent(folder: Path) -> None:
    """Remove the folder for worktrees when the last one is gone."""
    parent = folder.parent
    if parent.name != ".worktrees":
        return
    with suppress(OSError):
        ignore = parent / ".gitignore"
        if list(parent.iterdir()) == [ignore] and ignore.read_text() == "*\n":
            ignore.unlink()
        parent.rmdir()


def _inside_repository(folder: Path) -> bool:
    return any(os.path.lexists(above / ".git") for above in folder.parents)


async def undo_creation(
    git: Git, records: WorkspaceRecords, record: WorkspaceRecord, *, keep_branch: bool = False
) -> None:
    """Take away what was made of it: worktree, its folder in the git directory, branch, private folder.

    Each is what tells that the one before is ours, so they go in this order. Hold the repository's lock.
    """
    await asyncio.to_thread(_clear_worktree, record)
    if not keep_branch:
        await _drop_branch(git, record)
    await asyncio.to_thread(clear_away, records.private(record.id))


def _clear_worktree(record: WorkspaceRecord) -> None:
    worktree = Path(record.path)
    admins = admin_folders(record)
    if admins or _points_into(record):
        if worktree.is_dir() and not worktree.is_symlink():
            clear_away(worktree)
    else:
        # Somebody else's, unless git was killed before it wrote anything.
        remove_if_empty(worktree)
    for admin in (*admins, *begun_folders(record)):
        clear_away(admin)
    remove_if_empty(Path(record.git_dir, "worktrees"))
    forget_parent(worktree)


def _points_into(record: WorkspaceRecord) -> bool:
    try:
        return any(points_at(record, path) for path in Path(record.git_dir, "worktrees").iterdir())
    except FileNotFoundError:
        return False


async def _drop_branch(git: Git, record: WorkspaceRecord) -> None:
    """It was not there before, and nothing was ever delivered: where it stands, no work is lost."""
    if not os.path.isdir(record.git_dir):  # noqa: PTH112, ASYNC240 — one look at a local folder
        return
    await clear_stale_lock(record.git_dir, record.branch)
    if await git.resolve(record.branch, record.git_dir) == record.base:
        await git.run("update-ref", "-d", record.branch, record.base, git_dir=record.git_dir)


_NEXT_TO_NOTHING_BYTES = 1_000_000

Plan = Callable[[], Awaitable[tuple[RepositoryState, WorkspaceRecord, str]]]
"""Says what is to be made, as of now, and where its branch stands if there is one. Raises when it cannot be."""
SetUpOf = Callable[[WorkspaceRecord], Awaitable[WorkspaceRecord]]
"""Sets the workspace up; gives the record with what belongs to that. Raises when it fails."""


async def make_workspace(
    git: Git, records: WorkspaceRecords, git_dir: str, plan: Plan, set_up: SetUpOf
) -> WorkspaceRecord:
    """Make a workspace, or nothing. Its lock is held until it is whole, the repository's only as needed."""
    with ExitStack() as held:
        async with records.repository_lock(git_dir):
            repository, record, tip = await plan()
            _refuse_case_twins(await _twins(git, repository, tip or record.base))
            with _errors_explained(record):
                records.begin(record)
                held.enter_context(records.workspace_lock(record.id))
            async with _undone_on_failure(git, records, record, locked=True, keep_branch=bool(tip)):
                made = await _checked_out(git, repository, record, tip)
        async with _undone_on_failure(git, records, made, locked=False, keep_branch=bool(tip)):
            made = await set_up(made)
            if tip:
                records.note_delivered(made, tip)
            records.finish(made)
    return made


@asynccontextmanager
async def _undone_on_failure(
    git: Git, records: WorkspaceRecords, record: WorkspaceRecord, *, locked: bool, keep_branch: bool
) -> AsyncIterator[None]:
    try:
        with _errors_explained(record):
            yield
    except BaseException as error:
        was_there = keep_branch or _branch_was_there(error)
        undoing = _undo(git, records, record, locked, keep_branch=was_there)
        await run_to_completion(undoing)
        raise


async def _undo(
    git: Git, records: WorkspaceRecords, record: WorkspaceRecord, locked: bool, *, keep_branch: bool
) -> None:
    lock = nullcontext() if locked else records.repository_lock(record.git_dir)
    async with lock:
        await undo_creation(git, records, record, keep_branch=keep_branch)


async def _checked_out(
    git: Git, repository: RepositoryState, record: WorkspaceRecord, tip: str
) -> WorkspaceRecord:
    await _add_worktree(git, repository, record, there=bool(tip))
    tighten_worktree(Path(record.path))
    start = tip or record.base
    states = await tracked_states(git, repository.git_dir, start)
    forbidden = tuple(dict.fromkeys((*record.forbidden, *states)))
    made = record.model_copy(update={"admin": admin_of(record), "forbidden": forbidden})
    # A thread that went on after a cancellation would make again what is being undone.
    await in_thread(_make_private, repository, made, start)
    return made


async def _add_worktree(
    git: Git, repository: RepositoryState, record: WorkspaceRecord, *, there: bool
) -> None:
    prepare_parent(Path(record.path))
    short = record.branch.removeprefix("refs/heads/")
    # By force: the worktree that it was checked out in before may still be listed.
    how = (
        ("--force", "--", record.path, short)
        if there
        else ("-b", short, "--", record.path, record.base)
    )
    await git.run(
        "worktree", "add", "--quiet", *how,
        git_dir=repository.own_git_dir, env=without_filters(repository),
        settings=("checkout.workers=0",),  # as many as there are processors
    )  # fmt: skip


def without_filters(repository: RepositoryState) -> dict[str, str]:
    """Variables that switch off the user's filter drivers: large files stay pointers, nothing starts."""
    pairs = [
        (f"filter.{name}.{key}", value)
        for name in repository.filters
        for key, value in (("smudge", ""), ("clean", ""), ("process", ""), ("required", "false"))
    ]
    env = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def _make_private(repository: RepositoryState, record: WorkspaceRecord, tip: str) -> None:
    private = Path(record.private)
    for folder in ("home", PRIVATE_HOOKS):
        (private / folder).mkdir(mode=0o700)
    atomic_write(private / PRIVATE_CONFIG, private_settings(repository).encode())
    atomic_write(private / "home/.gitconfig", identity_settings(repository).encode())
    note_initial_commits(private, repository)
    build_private_dir(
        private / "git",
        repository,
        branch=record.branch,
        tip=tip,
        worktree=record.path,
        admin=record.admin,
    )
    try:
        pin_zones(record.path, record.forbidden)
    except WorkspaceTampered as odd:
        raise BadInput(f"a forbidden path cannot be protected: {odd}") from odd


async def _twins(git: Git, repository: RepositoryState, base: str) -> list[str]:
    """Paths of the base that this file system takes for one another."""
    if not repository.is_on("core.ignorecase"):
        return []
    names = await git.text("ls-tree", "-r", "-z", "--name-only", base, git_dir=repository.git_dir)
    paths = [path for path in names.split("\0") if path]
    counted = Counter(same_name(path) for path in paths)
    return [path for path in paths if counted[same_name(path)] > 1]


def _refuse_case_twins(paths: list[str]) -> None:
    if paths:
        raise NotPossibleNow(
            f"{paths[0]!r} and {paths[1]!r} differ only in case, which this file system ignores; rename one of them "
            "in the base, or work on another file system"
        )


def _branch_was_there(error: BaseException) -> bool:
    return isinstance(error, GitFailed) and "already exists" in error.stderr


@contextmanager
def _errors_explained(record: WorkspaceRecord) -> Iterator[None]:
    """Turn errors of git and the operating system into ones that say what to do."""
    try:
        yield
    except GitFailed as failed:
        # git does not always say why it could not write a file.
        if "No space left" in failed.stderr or _is_full(record):
            raise _no_space(record) from failed
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_space(record) from error
        raise NotPossibleNow(
            f"the workspace {record.task!r} cannot be created: {error.strerror} ({error.filename!r}); "
            "fix that, then try again"
        ) from error


def _is_full(record: WorkspaceRecord) -> bool:
    for path in (Path(record.path).parent, Path(record.git_dir), Path(record.private)):
        with suppress(OSError):
            usage = os.statvfs(path)
            if usage.f_bavail * usage.f_frsize < _NEXT_TO_NOTHING_BYTES:
                return True
    return False


def _no_space(record: WorkspaceRecord) -> NotPossibleNow:
    return NotPossibleNow(
        f"no space left for the workspace {record.task!r} in {record.path!r}; free some space, or name a folder "
        "on another disk. Nothing was created"
    )
