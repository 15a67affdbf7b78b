"""Folders that are repositories by the files in them: whoever enters one and runs git obeys its settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

SETTING = frozenset({"head", "config", "config.worktree", "commondir"})
"""Files, in small letters, that make git do things when they lie in such a folder; so do its `hooks`."""
_PARTS = SETTING | {"objects", "refs", "hooks"}


def may_be_of_repository(path: str) -> bool:
    """Whether a path has a name that such a folder is known by. Most have none, and no more is asked."""
    return any(part.lower() in _PARTS for part in path.split("/"))


def embedded_repositories(paths: Iterable[str]) -> set[str]:
    """Folders that git takes for bare repositories, of a tree with these files. Its top is none."""
    names: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        *folders, _ = parts = path.split("/")
        for depth in range(1, len(parts)):
            if parts[depth].lower() in _PARTS:
                names["/".join(folders[:depth])].add(parts[depth].lower())
    return {
        folder
        for folder, held in names.items()
        if "head" in held and ({"objects", "refs"} <= held or "commondir" in held)
    }


def repository_part(path: str, repositories: set[str]) -> str:
    """The repository whose settings or hooks this file is among; empty when it is among none's."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        name, folder = parts[depth].lower(), "/".join(parts[:depth])
        if folder in repositories and (
            name == "hooks" or (name in SETTING and depth == len(parts) - 1)
        ):
            return folder
    return ""
