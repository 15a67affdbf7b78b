"""Files that agents keep below their homes: named plainly, written in one step, private."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

LONGEST_NAME = 80


def plain_name(name: str) -> str:
    """The name as that of a folder. Different names never become the same one."""
    kept = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
    if kept == name and 0 < len(name) <= LONGEST_NAME:
        return name
    return f"{kept[:LONGEST_NAME]}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def write_private(target: Path, content: bytes, *, survives: bool = True) -> None:
    """Replace a file in one step, readable by nobody else. On return it survives a crash, unless it need not."""
    handle, name = tempfile.mkstemp(dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if survives:
                os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
