"""An inbox in a folder of the test, and orders to put into it."""

from __future__ import annotations

import os
from pathlib import Path

from podium.jobs.sense.io.inbox import FolderInbox, InboxFolders
from podium.ports.engine import Clock
from podium.testing import FixedClock

FOLDERS = InboxFolders(
    inbox="bridge/inbox/CLC",
    claimed="bridge/claimed/CLC",
    done="bridge/done/CLC",
    parked="bridge/parked/CLC",
    acks="bridge/outbox/LIAM",
)
ORDER = "id: {name}\ntitle: A folder\nops:\n  - op: mkdir\n    path: g/reports/{name}\n"
RUN = "run_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f"
TAIL = "5a6b7c8d9e0f"


def inbox_at(root: Path, clock: Clock | None = None) -> FolderInbox:
    return FolderInbox(root, FOLDERS, clock=clock or FixedClock(), redact=without_secret)


def without_secret(text: str) -> str:
    return text.replace("hunter2", "[redacted:password]")


def dropped(
    root: Path, name: str, content: str | bytes | None = None, *, at: float | None = None
) -> Path:
    """A file in the inbox, with its own order in it unless it is told otherwise."""
    path = root / FOLDERS.inbox / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = ORDER.format(name=path.stem) if content is None else content
    path.write_bytes(text if isinstance(text, bytes) else text.encode(errors="replace"))
    if at is not None:
        os.utime(path, (at, at))
    return path
