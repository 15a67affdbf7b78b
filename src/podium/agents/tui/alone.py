"""One at a time, among all Podiums that hold the same pair."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podium.domain.errors import LockHeld
from podium.platform import make_private_folder

_PAUSE_SECONDS = 0.02
PATIENCE_SECONDS = 120.0


@asynccontextmanager
async def alone(file: Path, patience_seconds: float = PATIENCE_SECONDS) -> AsyncIterator[None]:
    """Hold what nobody else holds meanwhile. It is let go of however this process ends.

    Raises `LockHeld` when another keeps it for too long.
    """
    make_private_folder(file.parent)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        give_up_at = asyncio.get_running_loop().time() + patience_seconds
        while not _is_taken(handle):
            if asyncio.get_running_loop().time() > give_up_at:
                raise LockHeld(
                    f"another Podium has been starting programs at {str(file.parent)!r} for {patience_seconds:g} s; "
                    "wait for it, or end it"
                )
            # The kernel tells nobody that such a lock is free but who waits in a thread of his own.
            await asyncio.sleep(_PAUSE_SECONDS)
        yield
    finally:
        os.close(handle)


def _is_taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
