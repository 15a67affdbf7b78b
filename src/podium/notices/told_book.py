"""The marks of outlets, a small file each, and who of several processes tells."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from pathlib import Path

from pydantic import ValidationError

from podium.platform import make_private_folder
from podium.ports import ToldMark

_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


class FileToldBook:
    """Marks in a folder of the project's state. Only the process that holds the folder may tell."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: int | None = None

    def try_hold(self) -> bool:
        """Whether this process is now the one that tells; it stays so until `let_go`, or until it dies."""
        if self._held is None:
            make_private_folder(self._folder)
            handle = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                return False
            self._held = handle
        return True

    def let_go(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def mark(self, outlet: str) -> ToldMark | None:
        """None also for a file that cannot be read: what is told then begins anew."""
        try:
            return ToldMark.model_validate_json(self._file(outlet).read_bytes())
        except (OSError, ValidationError):
            return None

    def save(self, outlet: str, mark: ToldMark) -> None:
        """Put the mark in its file, whole or not at all. On return it survives a crash."""
        handle, side = tempfile.mkstemp(prefix=".mark-", dir=self._folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(mark.model_dump_json())
                file.flush()
                os.fsync(file.fileno())
            Path(side).replace(self._file(outlet))
        except OSError:
            Path(side).unlink(missing_ok=True)
            raise

    def _file(self, outlet: str) -> Path:
        return self._folder / f"{_NOT_IN_FILE_NAMES.sub('_', outlet)}.json"
