"""Locks on refs that a killed git left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

_PATIENCE_SECONDS = 1.0


async def clear_stale_lock(git_dir: str, ref: str) -> None:
    """Take the lock away from a ref that Podium alone moves. The repository's lock is held.

    Every other git holds it for a moment only, so it is taken away when it stays.
    """
    lock = Path(git_dir, f"{ref}.lock")
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while lock.exists():  # noqa: ASYNC240 — one look at a local file; git tells nobody
        if asyncio.get_running_loop().time() > deadline:
            lock.unlink(missing_ok=True)  # noqa: ASYNC240 — one local file
            return
        await asyncio.sleep(0.02)
