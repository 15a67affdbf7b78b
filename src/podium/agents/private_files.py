"""Files that agents keep below their homes: named plainly, written in one step, private."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
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
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_private_at(folder, target.name, content, survives=survives)
    finally:
        os.close(folder)


def write_private_at(folder: int, name: str, content: bytes, *, survives: bool = True) -> None:
    """The same for a folder that was opened, whatever has its path by now."""
    draft = f".{secrets.token_hex(8)}"
    anew = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(draft, anew, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if survives:
                os.fsync(file.fileno())
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise
