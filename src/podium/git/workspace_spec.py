"""Names that a person may ask for: tasks, branches, folders, forbidden paths."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.protected_paths import GIT_DIR, STATE_DIR, protected_name
from podium.core.workspaces import WorkspaceSpec
from podium.git.records import RecordLookup
from podium.git.repository import RepositoryState

_TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,99}")
_NOT_IN_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def check_task(task: str) -> None:
    if not _TASK.fullmatch(task) or ".." in task or task.endswith((".", ".lock")):
        raise BadInput(
            f"{task!r} cannot be the name of a task; use at most 100 letters, digits, dots and dashes, "
            "beginning with a letter or digit and not ending with a dot"
        )


def branch_of(spec: WorkspaceSpec, repository: RepositoryState, claims: RecordLookup) -> str:
    """The whole name of the branch. Raises for one that cannot be made."""
    short = spec.branch or f"podium/{spec.task}"
    parts = short.split("/")
    bad = _NOT_IN_BRANCH.search(short) or short.startswith("-") or short in ("HEAD", "@")
    if bad or any(_bad_part(part) for part in parts):
        raise BadInput(f"{short!r} cannot be the name of a branch; see `git check-ref-format`")
    name = f"refs/heads/{short}"
    _refuse_taken(name, short, repository, claims)
    return name


def _bad_part(part: str) -> bool:
    return not part or part.startswith(".") or part.endswith((".", ".lock"))


def _refuse_taken(name: str, short: str, repository: RepositoryState, claims: RecordLookup) -> None:
    if name in repository.refs:
        whose = claims.describe_branch(repository.git_dir, name)
        raise NotPossibleNow(f"branch {short!r} exists already: {whose}")
    for other in repository.refs:
        if other.startswith(name + "/") or name.startswith(other + "/"):
            raise NotPossibleNow(
                f"branch {short!r} cannot stand beside {other.removeprefix('refs/heads/')!r}: one name "
                "is a folder of the other; name another"
            )
    if repository.is_on("core.ignorecase"):
        alike = [other for other in repository.refs if same_name(other) == same_name(name)]
        if alike:
            raise NotPossibleNow(
                f"branch {short!r} differs from {alike[0].removeprefix('refs/heads/')!r} by upper and "
                "lower case alone, which this file system cannot keep apart; name another"
            )


def folder_of(
    spec: WorkspaceSpec, repository: RepositoryState, state_home: Path, claims: RecordLookup
) -> str:
    """Return the folder for the worktree. Raises when something is there already."""
    if spec.folder:
        named = Path(os.path.abspath(spec.folder))  # noqa: PTH100 — links in it are resolved below
        folder = Path(os.path.realpath(named.parent)) / named.name
        if not os.path.isdir(folder.parent):  # noqa: PTH112 — see `find_repository`
            raise BadInput(f"there is no folder {str(folder.parent)!r}; make it first")
    else:
        folder = _default_folder(spec.task, repository, state_home, claims)
    if "\n" in str(folder) or '"' in str(folder):
        raise BadInput(f"{str(folder)!r} cannot be the folder of a worktree; name another")
    if os.path.lexists(folder):
        owner = claims.of_folder(str(folder))
        whose = "Podium does not know whose it is; name another task"
        if owner is not None:
            whose = claims.describe_folder(owner)
        raise NotPossibleNow(f"{str(folder)!r} exists already: {whose}")
    inside = (Path(repository.git_dir), Path(repository.own_git_dir))
    if any(folder.is_relative_to(git_dir) for git_dir in inside):
        raise BadInput(f"{str(folder)!r} lies inside a git directory; name another folder")
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
                f"{path!r} cannot be forbidden: name a path from the top of the workspace on, "
                "without '..'"
            )
        names = {protected_name(part) for part in parts}
        if GIT_DIR in names:
            raise BadInput(f"{path!r} need not be forbidden: git directories always are")
        if STATE_DIR not in names:  # protected at any depth, whether or not somebody asks for it
            clean.append("/".join(parts))
    return tuple(dict.fromkeys(clean))


def same_name(text: str) -> str:
    """Equal for names that a file system which ignores case takes for one."""
    return unicodedata.normalize("NFC", text).casefold()
