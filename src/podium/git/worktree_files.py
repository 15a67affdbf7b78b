"""Files of a worktree for Podium's own process, opened by folder handles, and the paths nobody may change.

An agent may have put a link, a pipe or a git directory anywhere, so no name is ever followed as a whole path.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Literal

from podium.core.errors import NotPossibleNow, WorkspaceTampered
from podium.core.protected_paths import protected_in, protected_name, zone_holding

Kind = Literal["file", "link", "folder", "other", "missing"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: opening a named pipe would wait for its other end.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check_paths(paths: Sequence[str], forbidden: Sequence[str]) -> None:
    """Raise `WorkspaceTampered` for the first that is no path inside, or one that nobody may touch."""
    for path in paths:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or not _can_be_a_name(path):
            raise WorkspaceTampered(
                f"{path[:200]!r} is no path inside the workspace; name it from the top of the worktree on"
            )
        if (protected := protected_in(path)) is not None:
            raise WorkspaceTampered(
                f"{path[:200]!r} lies in {protected.name!r}, which is {protected.what}; name another file"
            )
        if zone := zone_holding("/".join(parts), forbidden):
            raise WorkspaceTampered(
                f"{path[:200]!r} may not be touched: {zone!r} is forbidden; name another file"
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
    with _parent(root, path) as (folder, name):
        if folder is None or _kind(folder, name) != "file":
            return None
        with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(most_bytes + 1)
    cut = len(content) > most_bytes
    # A letter of several bytes that the limit cuts is left out.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(content[:most_bytes], final=not cut)


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    """All of them under names of their own first, then each put in its place in one step."""
    for path in files:
        kind = kind_of(root, path)
        if kind not in ("file", "missing"):
            raise WorkspaceTampered(f"{path!r} is {_WORDS[kind]}, and no file to be written")
    for path, content in files.items():
        with _parent(root, path, create=True) as (folder, name):
            _write_draft(_there(folder), name, _draft(path), content)
    for path in files:
        with _parent(root, path) as (folder, name):
            handle = _there(folder)
            os.rename(_draft(path), name, src_dir_fd=handle, dst_dir_fd=handle)


def move_file(root: Path, old: str, new: str) -> None:
    """Rename it, making folders. Done already is done; what is there under the new name stays."""
    before, after = kind_of(root, old), kind_of(root, new)
    if before == "missing":
        if after == "missing":
            raise NotPossibleNow(
                f"there is no {old!r} that could become {new!r}; look at the worktree"
            )
        return
    if after != "missing":
        raise NotPossibleNow(f"{old!r} cannot become {new!r}, which is there already; name another")
    with (
        _parent(root, old) as (source, name),
        _parent(root, new, create=True) as (target, new_name),
    ):
        os.rename(name, new_name, src_dir_fd=_there(source), dst_dir_fd=_there(target))


def remove_file(root: Path, path: str) -> None:
    """Remove whatever has that name and is no folder. Not there is no error."""
    with _parent(root, path) as (folder, name):
        if folder is not None and _kind(folder, name) not in ("missing", "folder"):
            os.unlink(name, dir_fd=folder)


def remove_empty_folders(root: Path, path: str) -> None:
    """Those above the path that nothing is left in, innermost first."""
    for above in PurePosixPath(path).parents:
        if not above.parts:
            return
        with _parent(root, str(above)) as (folder, name):
            if folder is None:
                continue
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError:
                return


def open_folders(root: Path, path: str) -> None:
    """Let the owner into all folders above the path. Up to the first that is none."""
    handle = os.open(root, _FOLDER)
    try:
        for part in PurePosixPath(path).parts[:-1]:
            if _kind(handle, part) != "folder":
                return
            deeper = os.open(part, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = deeper
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            if mode & 0o700 != 0o700:
                os.fchmod(handle, mode | 0o700)
    finally:
        os.close(handle)


def kind_of(root: Path, path: str) -> Kind:
    """What has that name. Raises `WorkspaceTampered` when a link stands in place of a folder above it."""
    with _parent(root, path) as (folder, name):
        return "missing" if folder is None else _kind(folder, name)


_WORDS: Mapping[Kind, str] = {
    "link": "a link",
    "folder": "a folder",
    "other": "a pipe, socket or device",
}


def _kind(folder: int, name: str) -> Kind:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return "missing"
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISLNK(mode):
        return "link"
    return "folder" if stat.S_ISDIR(mode) else "other"


@contextmanager
def _parent(root: Path, path: str, *, create: bool = False) -> Iterator[tuple[int | None, str]]:
    """Handle of the folder that holds it, and its name there. None: there is no such folder."""
    *above, name = PurePosixPath(path).parts
    handle: int | None = os.open(root, _FOLDER)
    try:
        for part in above:
            if handle is None:
                break
            deeper = _entered(handle, part, path, create=create)
            os.close(handle)
            handle = deeper
        yield handle, name
    finally:
        if handle is not None:
            os.close(handle)


def _entered(folder: int, part: str, path: str, *, create: bool) -> int | None:
    if create:
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=folder)
    kind = _kind(folder, part)
    if kind == "folder":
        return os.open(part, _FOLDER, dir_fd=folder)
    if kind == "link" or create:
        raise WorkspaceTampered(
            f"{part!r} on the way to {path[:200]!r} is {_WORDS.get(kind, 'a file')} in place of a folder; "
            "put a plain folder there, or name another path"
        )
    return None


def _write_draft(folder: int, name: str, draft: str, content: bytes) -> None:
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=folder)  # a killed Podium's
    with os.fdopen(os.open(draft, _CREATE, 0o666, dir_fd=folder), "wb") as file:
        if _kind(folder, name) == "file":
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            os.fchmod(file.fileno(), stat.S_IMODE(mode) & 0o777 | stat.S_IWUSR | stat.S_IRUSR)
        file.write(content)


def _draft(path: str) -> str:
    """The same at every try, so that a second one clears away what the first left."""
    return f".podium-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}.tmp"


def _there(folder: int | None) -> int:
    if folder is None:
        raise NotPossibleNow("a folder of the worktree went away meanwhile; try again")
    return folder


MAX_LOOKED_AT = 200_000
MAX_CLOSED = 500


def closed_places(root: Path, is_closed: Callable[[str], bool]) -> list[str]:
    """The outermost of them, from the root on. Ignore lists and links are not asked.

    Raises `NotPossibleNow` where there are more than can be looked at.
    """
    found: list[str] = []
    for path in _walk(root, is_closed):
        found.append(path)
        if len(found) > MAX_CLOSED:
            raise NotPossibleNow(
                f"more than {MAX_CLOSED} places here are closed to the agent, by the profile or as files of secrets; name "
                "the folders they are in, or work in a smaller folder with --root"
            )
    return sorted(found)


def is_memory(path: str) -> bool:
    """Whether it is of a kind that git, or Podium, takes its orders from."""
    return bool(protected_name(path.rpartition("/")[2]))


def _walk(root: Path, is_closed: Callable[[str], bool]) -> Iterator[str]:
    looked_at = 0
    for folder, folders, names in os.walk(root):
        place = os.path.relpath(folder, root)
        closed = {name for name in folders if is_memory(name)}
        for name in (*folders, *names):
            looked_at += 1
            if looked_at > MAX_LOOKED_AT:
                raise NotPossibleNow(
                    f"the folder holds more than {MAX_LOOKED_AT} files, too many to look for closed paths among; "
                    "work in a smaller one"
                )
            path = name if place == "." else f"{place}/{name}"
            if is_closed(path):
                closed.add(name)
                yield path
        folders[:] = [name for name in folders if name not in closed]
