"""One at a time: two calls that change the same file must not lose each other's words."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator

from podium.platform import make_private_folder
from podium.tools.scope import ToolScope

_FOLDER = "turns"


@contextlib.contextmanager
def in_turn(scope: ToolScope, *paths: str) -> Iterator[None]:
    """While open, no other call of this root makes a new content of these files'. Waits for its turn.

    The lock lies beside what is kept, never beside the file: it dies with its process, and readers of
    the folder never see it.
    """
    if scope.kept_folder is None:
        yield  # then nothing can be fixed either, and the call is refused for that
        return
    folder = scope.kept_folder / _FOLDER
    make_private_folder(folder)
    with contextlib.ExitStack() as held:
        for name in _locks_of(paths):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(folder / name, flags, 0o600)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _locks_of(paths: Iterable[str]) -> list[str]:
    """Names of their locks. Each once and in one order for all, or two calls could wait for each other."""
    # On file systems that see no case one file has many names; waiting for a stranger costs nothing.
    folded = (path.casefold().encode(errors="backslashreplace") for path in paths)
    return sorted({hashlib.sha256(each).hexdigest()[:2] for each in folded})
