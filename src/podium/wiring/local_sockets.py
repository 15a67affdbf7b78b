"""Where this project's own sockets are: places that other processes of the same user find by themselves."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


def local_socket(podium: Podium, name: str) -> Path:
    """The project's socket of this name. Short, since the kernel takes no long path for one.

    Raises `BadInput` when somebody else has made the folder above it.
    """
    from podium.agents.private_sockets import make_private

    place = socket_place(podium, name)
    make_private(place.parent.parent)
    return place


def socket_place(podium: Podium, name: str) -> Path:
    """Where that would be. Makes nothing and checks nothing."""
    top = Path(podium.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    base = top / f"podium-{os.getuid()}"
    project = hashlib.sha256(os.fsencode(podium.folders.project)).hexdigest()[:16]
    return base / project / name
