"""Files that a call rests on, as they are now: a yes to `sh deploy.sh` is one to its content, and a yes to
overwriting a file is one to losing what it holds."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from podium.domain.gating import FileSeen

_HASHED_BYTES = 1_000_000
LARGEST_REPLACED_BYTES = 20_000_000
"""Of a file that is overwritten: it is shown to a person, and kept for undo."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def files_of(commands: Sequence[Sequence[str]], folder: Path, root: Path) -> tuple[FileSeen, ...]:
    """Plain files beneath `root` that words of the commands name, also as `--option=file`.

    Words are taken from `folder`, and from where a `cd` between the commands leads.
    """
    found: dict[str, FileSeen] = {}
    for words in commands:
        for word in words:
            for given in _candidates(word):
                path = os.path.realpath(folder / given)
                if path not in found and (seen := _seen(Path(path), root)) is not None:
                    found[path] = seen
        if len(words) == 2 and words[0] in ("cd", "pushd"):
            folder = folder / words[1]
    return tuple(found.values())


def overwritten(path: Path, content: bytes, root: Path) -> tuple[FileSeen, ...]:
    """The file that a write of `content` would change; empty when nothing would be lost.

    Raises `ValueError` for one that is too large to be replaced: nobody needs to be asked about that.
    """
    seen = _seen(path, root)
    if seen is None or _holds(path, content):
        return ()
    if _size_of(path) > LARGEST_REPLACED_BYTES:
        raise ValueError(
            f"{seen.path!r} is larger than {LARGEST_REPLACED_BYTES} bytes and is not replaced in one step; "
            "write another file, or remove this one first"
        )
    return (seen,)


def changed_since(files: Sequence[FileSeen], root: Path) -> str:
    """The first of the files that is not what it was; empty when none is."""
    for file in files:
        if _seen(root / file.path, root) != file:
            return file.path
    return ""


def _holds(path: Path, content: bytes) -> bool:
    try:
        with os.fdopen(os.open(path, _READ), "rb") as file:
            return file.read(len(content) + 1) == content
    except OSError:
        return False


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # gone again
        return 0


def _candidates(word: str) -> Iterator[str]:
    yield word
    _, _, value = word.partition("=")
    if value:
        yield value


def _seen(path: Path, root: Path) -> FileSeen | None:
    if not path.is_relative_to(root):
        return None
    try:
        handle = os.open(path, _READ)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return None
        with open(handle, "rb", closefd=False) as file:
            content = hashlib.sha256(file.read(_HASHED_BYTES))
    finally:
        os.close(handle)
    if status.st_size > _HASHED_BYTES:
        # Nobody can set the time of a change, so it stands for the rest of a large file.
        content.update(f"{status.st_size} {status.st_ctime_ns}".encode())
    name = os.fsencode(path.relative_to(root)).decode(errors="backslashreplace")
    return FileSeen(path=name, sha256=content.hexdigest())
