"""One at a time: two orders that add to the same file must not lose each other's words."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator

from podium.tools.scope import ToolScope

_FOLDER = "turns"


@contextlib.contextmanager
def in_turn(scope: ToolScope, path: str) -> Iterator[None]:
    """While open, no other call of this root makes a new content of this file's. Waits for its turn.

    The lock lies beside what is kept, never beside the file: it dies with its process, and readers of
    the folder never see it.
    """
    if scope.kept_folder is None:
        yield  # then nothing can be fixed either, and the call is refused for that
        return
    folder = scope.kept_folder / _FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # On file systems that see no case one file has many names; waiting for a stranger costs nothing.
    name = hashlib.sha256(path.casefold().encode(errors="backslashreplace")).hexdigest()[:2]
    handle = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
