"""Earlier contents of overwritten files, kept by their hash so that a write can be undone."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from podium.domain.errors import ToolBroke
from podium.platform import make_private_folder


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def keep(folder: Path, content: bytes) -> str:
    """Store the content and give its hash. On return it survives a crash."""
    digest = sha256_of(content)
    target = folder / digest
    if target.exists():
        return digest
    make_private_folder(folder)
    handle, draft = tempfile.mkstemp(dir=folder)
    with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
        file.write(content)
        file.flush()
        os.fsync(handle)
    Path(draft).replace(target)
    return digest


def kept(folder: Path | None, digest: str) -> bytes:
    """The content with this hash. Raises `ToolBroke` when it is not there or was changed."""
    if folder is None:
        raise ToolBroke("earlier contents are not kept here, so there is nothing to put back")
    try:
        content = (folder / digest).read_bytes()
    except FileNotFoundError as error:
        raise ToolBroke(f"the content with hash {digest!r} is not kept any more") from error
    if sha256_of(content) != digest:
        raise ToolBroke(f"the content kept under hash {digest!r} was changed; it is not put back")
    return content
