"""Paths of a project's sockets, where other processes of the same user find them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def local_socket(project: Path, environ: Mapping[str, str], name: str) -> Path:
    """The project's socket of this name. Short, since the kernel takes no long path for one.

    Raises `BadInput` when somebody else has made the folder above it.
    """
    from podium.platform.private_sockets import make_private

    path = socket_path_of(project, environ, name)
    make_private(path.parent.parent)
    return path


def socket_path_of(project: Path, environ: Mapping[str, str], name: str) -> Path:
    """Path of the socket. Creates and checks nothing."""
    return socket_folder(project, environ) / name


def socket_folder(project: Path, environ: Mapping[str, str]) -> Path:
    """The folder of all sockets of a project. It need not exist."""
    top = Path(environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    base = top / f"podium-{os.getuid()}"
    return base / hashlib.sha256(os.fsencode(project)).hexdigest()[:16]
