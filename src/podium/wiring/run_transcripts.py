"""What was really said in a turn, read back from beside the record."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from podium.domain.errors import NotPossibleNow, UnknownId

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

MOST_BYTES = 400_000


async def transcript_of(podium: Podium, run_id: str, name: str) -> tuple[str, bool]:
    """The beginning of a transcript of a run, and whether that is not all of it.

    Raises `UnknownId` for any other file.
    """
    folder = podium.folders.state / "runs" / run_id / "replies"
    return await asyncio.to_thread(_read, folder, name)


def _read(folder: Path, name: str) -> tuple[str, bool]:
    # Only what is listed there: a name is never followed as a path.
    if not folder.is_dir() or name not in {each.name for each in folder.iterdir()}:
        raise UnknownId("transcript", name)
    try:
        handle = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            said = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise NotPossibleNow(f"transcript {name!r} cannot be read ({error.strerror})") from None
    return said[:MOST_BYTES].decode(errors="replace"), len(said) > MOST_BYTES
