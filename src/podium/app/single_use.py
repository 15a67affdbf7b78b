"""Tokens that are used once, stored as files for every process."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from podium.config.folders import write_whole
from podium.platform import make_private_folder
from podium.platform.atomic_write import sync
from podium.platform.safe_open import create_new

SWEEP_SECONDS = 600.0
"""Interval of sweeps, and the grace after expiry: a new file has no expiry time yet."""
MAX_ANSWER_BYTES = 20_000


class OnceBook:
    """Remembers what was taken, over restarts, until it could not come again. May block for a disk's moment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._swept = 0.0

    def take(self, key: str, now: datetime, until: datetime) -> bool:
        """Take the key if no process has. False: it was taken before. Remembered until the given time."""
        make_private_folder(self._folder)
        self._sweep(now)
        file = self._file(key)
        try:
            os.close(create_new(file))
        except FileExistsError:
            return False
        _remember(file, until)
        sync(self._folder)
        return True

    def is_taken(self, key: str) -> bool:
        return self._file(key).exists()

    def keep_answer(self, key: str, answer: str, until: datetime) -> None:
        """Store the answer for repeated requests."""
        file = self._file(key)
        write_whole(file, answer, mode=0o600)
        _remember(file, until)

    def answer(self, key: str) -> str:
        """Stored answer; empty while there is none."""
        try:
            with self._file(key).open("rb") as file:
                return file.read(MAX_ANSWER_BYTES).decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _file(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode(errors="replace")).hexdigest()

    def _sweep(self, now: datetime) -> None:
        timestamp = now.timestamp()
        if timestamp - self._swept < SWEEP_SECONDS:
            return
        self._swept = timestamp
        with os.scandir(self._folder) as entries:
            for entry in entries:
                # Another process may sweep at the same time.
                with suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime < timestamp - SWEEP_SECONDS:
                        Path(entry).unlink()


def _remember(file: Path, until: datetime) -> None:
    # The time of the file's last change is until when it is kept.
    os.utime(file, (until.timestamp(), until.timestamp()))
