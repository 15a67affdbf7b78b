"""Writing a small file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from podium.domain.errors import BadInput, NotPossibleNow
from podium.platform import make_private_folder


def write_whole(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Put `text` in the file. On return it survives a crash; on an error the old content stands."""
    side = _side_file(path, text, mode)
    try:
        side.replace(path)
    except OSError as error:
        side.unlink(missing_ok=True)
        raise _explained(path, error) from None


def write_new(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Make the file. Raises `NotPossibleNow` when it is there already, whoever made it."""
    side = _side_file(path, text, mode)
    try:
        os.link(side, path)
    except FileExistsError:
        raise NotPossibleNow(f"{str(path)!r} is there already; nothing was changed") from None
    except OSError as error:
        raise _explained(path, error) from None
    finally:
        side.unlink(missing_ok=True)


def _side_file(path: Path, text: str, mode: int) -> Path:
    name: str | None = None
    try:
        make_private_folder(path.parent)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise _explained(path, error) from None
    return Path(name)


def _explained(path: Path, error: OSError) -> BadInput:
    return BadInput(f"{str(path)!r} cannot be written: {error.strerror or error}")
