"""The heads of receipt chains, kept in files outside the database."""

from __future__ import annotations

import errno
import os
import re
from datetime import datetime
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple

from podium.domain.errors import StoreUnusable
from podium.journal.plain_names import is_plain, plain_name
from podium.journal.receipt_key import HEADS_FOLDER
from podium.journal.sqlite import seals_of
from podium.platform import make_private_folder

BEGUN_ANEW = "begun-anew"
"""File beside the key: the record was begun anew and holds no receipt yet."""
_LINE = re.compile(rb"([1-9][0-9]{0,17}) ([0-9a-f]{64})")


class Head(NamedTuple):
    """The last receipt of a chain, as it was at some time."""

    number: int
    seal: str


class Anchors:
    """Append-only notes of every head a chain has had, one file for each run.

    They are written after the commit, so a crash may leave them behind the database, never ahead.
    """

    def __init__(self, folder: Path, name: str = HEADS_FOLDER) -> None:
        """`folder` is the one that holds the key, `name` that of the heads in it; others are those put aside."""
        self._folder = folder / name
        self._mark = folder / BEGUN_ANEW

    def write(self, run_id: str, number: int, seal: str) -> None:
        """Note a head. Cheap: the file is appended to and not forced to disk.

        Raises `OSError` when it cannot be written; earlier heads stay readable.
        """
        path = self._folder / plain_name(run_id)
        try:
            handle = _open_for_append(path)
        except FileNotFoundError:
            make_private_folder(self._folder)
            handle = _open_for_append(path)
        try:
            # A line that a crash tore is ended first, so that it spoils itself alone.
            start = "" if _ends_whole(handle) else "\n"
            line = f"{start}{number} {seal}\n".encode()
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, f"head {number} was written in part only", str(path))
        finally:
            os.close(handle)
        self._mark.unlink(missing_ok=True)

    def head(self, run_id: str) -> Head | None:
        """The furthest head of the run, or None when there is none."""
        return max(self.heads(run_id), key=lambda head: head.number, default=None)

    def heads(self, run_id: str) -> list[Head]:
        """Every head of the run in the order of writing. Torn lines are passed over."""
        path = self._folder / run_id
        if not is_plain(run_id) or not path.exists():
            return []
        try:
            content = path.read_bytes()
        except OSError as error:
            raise StoreUnusable(
                str(path), f"the heads cannot be read: {error.strerror}", "make the file readable"
            ) from error
        whole = content.split(b"\n")[:-1]
        matches = [match for line in whole if (match := _LINE.fullmatch(line))]
        return [Head(int(match[1]), match[2].decode()) for match in matches]

    def newest(self, limit: int) -> dict[str, int]:
        """Numbers of the furthest heads of the runs that were noted last, at most so many."""
        if not self._folder.is_dir():
            return {}
        entries = [entry for entry in os.scandir(self._folder) if is_plain(entry.name)]
        noted = nlargest(limit, entries, key=lambda entry: (entry.stat().st_mtime_ns, entry.name))
        heads = {entry.name: self.head(entry.name) for entry in noted}
        return {run: head.number for run, head in heads.items() if head is not None}

    @property
    def are_begun_anew(self) -> bool:
        """Whether the record was begun anew, and nothing was sealed since."""
        return self._mark.exists()

    def put_aside(self, now: datetime) -> Path | None:
        """Begin without heads, and note that. Returns where the old ones are; None: there were none."""
        self._mark.write_text(f"{now:%Y-%m-%dT%H:%M:%SZ}\n")
        if not self.runs():
            return None
        return self._folder.rename(self._folder.with_name(f"{HEADS_FOLDER}-{now:%Y%m%dT%H%M%SZ}"))

    def runs(self) -> list[str]:
        """Ids of all runs that have heads."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if is_plain(path.name))


def copy_heads(source: Anchors, target: Anchors, database: Path) -> None:
    """Take over those heads whose receipts are in this database."""
    for run_id in source.runs():
        seals = seals_of(database, run_id)
        for head in source.heads(run_id):
            if seals.get(head.number) == head.seal:
                target.write(run_id, head.number, head.seal)


def _open_for_append(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _ends_whole(handle: int) -> bool:
    size = os.fstat(handle).st_size
    return size == 0 or os.pread(handle, 1, size - 1) == b"\n"
