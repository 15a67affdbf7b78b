"""Where a task's documents lie while it is worked on, and where they go when it is done."""

from __future__ import annotations

import re
from datetime import date

from podium.domain.errors import BadInput

_ROOT = "docs/dev_docs"
_KINDS = ("research", "plans", "reviews")
ACTIVE_FOLDERS = tuple(f"{_ROOT}/{kind}" for kind in _KINDS)
ARCHIVE = f"{_ROOT}/archived"

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def archived(path: str, *, day: date, task: str, feat: str = "") -> str:
    """The place of a document in the archive, with day and task before its name.

    The task's words (`feat`) are taken out of the name itself: they stand before it now.
    A path that is there already is given back. Raises `BadInput` for one that is in no active folder.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise BadInput(f"{path[:200]!r} cannot be archived: it is no plain path inside the project")
    if path.startswith(f"{ARCHIVE}/"):
        return path
    for kind in _KINDS:
        folder = f"{_ROOT}/{kind}/"
        if path.startswith(folder):
            # Of a folder the first part carries the prefix, so that no two documents meet.
            name = path.removeprefix(folder)
            plain = name.replace(f"_{feat}", "", 1) if feat else name
            return f"{ARCHIVE}/{kind}/{day:%Y-%m-%d}_{_name(task)}_{plain}"
    folders = ", ".join(ACTIVE_FOLDERS)
    raise BadInput(f"{path[:200]!r} cannot be archived: it lies in none of {folders}")


def _name(task: str) -> str:
    return _NOT_IN_A_NAME.sub("-", task[:100]).strip("-.") or "task"
