"""Files of a worktree for Podium's own process, opened by folder handles, and the paths nobody may change.

An agent may have put a link, a pipe or a git directory anywhere, so no name is ever followed as a whole path.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Literal

from podium.core.errors import NotPossibleNow, WorkspaceTampered
from podium.core.protected_paths import protected_in, protected_name, zone_holding
from podium.platform.atomic_write import write_draft
from podium.platform.folder_tree import open_up
from podium.platform.safe_files import draft_name, open_parent
from podium.platform.safe_open import (
    LinkInTheWay,
    NotFolder,
    NotPlainFile,
    open_folder,
    read_start,
    status_at,
)

Kind = Literal["file", "link", "folder", "other", "missing"]


def check_paths(paths: Sequence[str], forbidden: Sequence[str]) -> None:
    """Raise `WorkspaceTampered` for the first that is no path inside, or one that nobody may touch."""
    for path in paths:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or not _can_be_a_name(path):
            raise WorkspaceTampered(
                f"{path[:200]!r} is not a path inside the workspace; use a path relative to the worktree"
            )
        if (protected := protected_in(path)) is not None:
            raise WorkspaceTampered(
                f"{path[:200]!r} is in {protected.name!r}, which is {protected.what}; name another file"
            )
        if zone := zone_holding("/".join(parts), forbidden):
            raise WorkspaceTampered(
                f"{path[:200]!r} cannot be used: {zone!r} is forbidden; name another file"
            )


def _can_be_a_name(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def clean_path(path: str) -> str:
    """As git writes it: without `./` and doubled slashes."""
    return "/".join(PurePosixPath(path).parts)


def read_text(root: Path, path: str, most_bytes: int) -> str | None:
    """The beginning of a plain file as text. None when there is none."""
    try:
        with _parent(root, path) as (folder, name):
            content = read_start(name, most_bytes + 1, folder)
    except (FileNotFoundError, NotPlainFile):
        return None
    cut = len(content) > most_bytes
    # A letter of several bytes that the limit cuts is left out.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(content[:most_bytes], final=not cut)


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    """All of them under names of their own first, then each put in its place in one step."""
    for path in files:
        kind = kind_of(root, path)
        if kind not in ("file", "missing"):
            raise WorkspaceTampered(f"{path!r} is {_KIND_LABELS[kind]} and cannot be written")
    for path, content in files.items():
        with _parent(root, path, make=True) as (folder, name):
            bits = _bits_of(folder, name)
            write_draft(
                folder, content, mode=0o666, bits=bits, draft=draft_name(path), durable=False
            )
    for path in files:
        with _parent(root, path) as (folder, name):
            os.rename(draft_name(path), name, src_dir_fd=folder, dst_dir_fd=folder)


def move_file(root: Path, old: str, new: str) -> None:
    """Rename it, making folders. Done already is done; what is there under the new name stays."""
    before, after = kind_of(root, old), kind_of(root, new)
    if before == "missing":
        if after == "missing":
            raise NotPossibleNow(
                f"{old!r} does not exist and cannot be renamed to {new!r}; check the worktree"
            )
        return
    if after != "missing":
        raise NotPossibleNow(
            f"{old!r} cannot be renamed to {new!r}, which already exists; use another name"
        )
    with (
        _parent(root, old) as (source, name),
        _parent(root, new, make=True) as (target, new_name),
    ):
        os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)


def remove_file(root: Path, path: str) -> None:
    """Remove whatever has that name and is no folder. Not there is no error."""
    with suppress(FileNotFoundError), _parent(root, path) as (folder, name):
        if _kind(folder, name) != "folder":
            os.unlink(name, dir_fd=folder)


def remove_empty_folders(root: Path, path: str) -> None:
    """Those above the path that nothing is left in, innermost first."""
    for above in PurePosixPath(path).parents:
        if not above.parts:
            return
        try:
            with _parent(root, str(above)) as (folder, name):
                os.rmdir(name, dir_fd=folder)
        except FileNotFoundError:
            continue
        except OSError:
            return


def open_folders(root: Path, path: str) -> None:
    """Let the owner into all folders above the path. Up to the first that is none."""
    above: list[str] = []
    for part in PurePosixPath(path).parts[:-1]:
        with open_folder(root, "/".join(above)) as folder:
            if _kind(folder, part) != "folder":
                return
            open_up(part, folder)
        above.append(part)


def kind_of(root: Path, path: str) -> Kind:
    """Return the kind of a path. Raises `WorkspaceTampered` when a link stands in place of a folder above it."""
    try:
        with _parent(root, path) as (folder, name):
            return _kind(folder, name)
    except FileNotFoundError:
        return "missing"


_KIND_LABELS: Mapping[Kind, str] = {
    "link": "a link",
    "folder": "a folder",
    "other": "a pipe, socket or device",
}


def _kind(folder: int, name: str) -> Kind:
    status = status_at(folder, name)
    if status is None:
        return "missing"
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISLNK(status.st_mode):
        return "link"
    return "folder" if stat.S_ISDIR(status.st_mode) else "other"


def _bits_of(folder: int, name: str) -> int | None:
    """The permission bits of a file that will be replaced, which its owner can read and write."""
    status = status_at(folder, name)
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    return stat.S_IMODE(status.st_mode) & 0o777 | stat.S_IWUSR | stat.S_IRUSR


@contextmanager
def _parent(root: Path, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The folder that holds it, and its name there. Raises `FileNotFoundError` when there is no such folder."""
    try:
        with open_parent(root, path, make=make) as parent:
            yield parent
    except NotFolder as error:
        if make or isinstance(error, LinkInTheWay):
            raise WorkspaceTampered(f"{path[:200]!r} {error.strerror}") from None
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None


MAX_LOOKED_AT = 200_000
MAX_CLOSED = 500


def closed_paths(root: Path, is_closed: Callable[[str], bool]) -> list[str]:
    """List the outermost closed paths, from the root on. Ignore lists and links are not read.

    Raises `NotPossibleNow` where there are more than can be looked at.
    """
    paths: list[str] = []
    for path in _walk(root, is_closed):
        paths.append(path)
        if len(paths) > MAX_CLOSED:
            raise NotPossibleNow(
                f"more than {MAX_CLOSED} paths here are closed to the agent, by the profile or because they hold secrets; close whole "
                "folders instead, or work in a smaller folder with --root"
            )
    return sorted(paths)


def is_memory(path: str) -> bool:
    """Check for a name that git or Podium reads settings from."""
    return bool(protected_name(path.rpartition("/")[2]))


def _walk(root: Path, is_closed: Callable[[str], bool]) -> Iterator[str]:
    looked_at = 0
    for folder, folders, names in os.walk(root):
        prefix = os.path.relpath(folder, root)
        closed = {name for name in folders if is_memory(name)}
        for name in (*folders, *names):
            looked_at += 1
            if looked_at > MAX_LOOKED_AT:
                raise NotPossibleNow(
                    f"the folder has more than {MAX_LOOKED_AT} files, too many to search for closed paths; work in a smaller folder"
                )
            path = name if prefix == "." else f"{prefix}/{name}"
            if is_closed(path):
                closed.add(name)
                yield path
        folders[:] = [name for name in folders if name not in closed]


_PATTERN_SIGNS = re.compile(r"[\\*?\[\]! #]")


def ignoring(names: Sequence[str]) -> str:
    """Lines for a file of patterns that make git ignore just these paths."""
    return "".join(f"/{_PATTERN_SIGNS.sub(_escaped, name)}\n" for name in names)


def _escaped(sign: re.Match[str]) -> str:
    return f"\\{sign[0]}"
