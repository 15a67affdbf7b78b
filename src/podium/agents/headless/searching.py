"""Where a search by a pattern really looks."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from podium.domain.model import Json

_GLOB = re.compile(r"[*?\[{]")


def searched_folder(path: Json, pattern: Json) -> Json:
    """The folder to be judged: a pattern may lead out of the one that was named."""
    folder = path or "."
    if not isinstance(folder, str) or not isinstance(pattern, str):
        return folder
    found = _GLOB.search(pattern)
    plain = pattern[: found.start()] if found else pattern
    behind = pattern[found.start() :] if found else ""
    if ".." in PurePosixPath(behind).parts:
        return "/"
    base = plain.rpartition("/")[0]
    if pattern.startswith("/"):
        return base or "/"
    return str(PurePosixPath(folder, base)) if ".." in PurePosixPath(plain).parts else folder
