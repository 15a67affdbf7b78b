"""Copies of the whole database, kept beside it with their hashes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podium.core.errors import ToolBroke

from .database import Database

if TYPE_CHECKING:
    from podium.tools.packs import PackScope

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\.(db|json)")


@dataclass(frozen=True)
class Snapshot:
    """A finished copy. `file_name` is in the folder `snapshots` of the pack's state."""

    file_name: str
    sha256: str
    bytes: int


async def take_snapshot(db: Database, scope: PackScope, snapshot_id: str) -> Snapshot:
    """Copy the database, unless there is a copy of this id already; on return it is on the disk.

    Media files are not part of it.
    """
    if not _ID.fullmatch(snapshot_id):
        raise ToolBroke(f"{snapshot_id!r} cannot name a snapshot; use letters, digits, _ and -")
    folder = scope.state / "snapshots"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{snapshot_id}.{db.copy_format}"
    if not file.exists():
        unfinished = folder / f".{snapshot_id}.{secrets.token_hex(4)}"
        try:
            await db.copy_to(unfinished)
            await asyncio.to_thread(_finish, unfinished, file)
        finally:
            unfinished.unlink(missing_ok=True)
    return await asyncio.to_thread(_facts, file)


async def remove_snapshot(scope: PackScope, file_name: str) -> bool:
    """Delete the copy's file. False: it was not there."""
    if not _FILE_NAME.fullmatch(file_name):
        raise ToolBroke(f"{file_name!r} is not the file of a snapshot")
    file = scope.state / "snapshots" / file_name
    if not file.exists():
        return False
    file.unlink(missing_ok=True)
    return True


def _finish(unfinished: Path, file: Path) -> None:
    unfinished.chmod(0o600)
    with unfinished.open("rb") as written:
        os.fsync(written.fileno())
    unfinished.replace(file)


def _facts(file: Path) -> Snapshot:
    with file.open("rb") as copy:
        digest = hashlib.file_digest(copy, "sha256").hexdigest()
    return Snapshot(file.name, digest, file.stat().st_size)
