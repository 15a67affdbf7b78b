"""Folders that are repositories by the files in them: whoever enters one and runs git obeys its settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from podium.domain.protected_paths import comparable_parts
from podium.workspaces.git.history import History
from podium.workspaces.git.judging import NO_FILE, Change

SETTING = frozenset({"head", "config", "config.worktree", "commondir"})
"""Files, in small letters, that make git do things when they lie in such a folder; so do its `hooks`."""
_MAKING = frozenset({"head", "objects", "refs", "commondir"})
"""Names by which git takes a folder for a repository."""
_PARTS = SETTING | _MAKING | {"hooks"}

Folder = tuple[str, ...]
"""A folder by its comparable parts: two spellings of one folder are one."""


class EmbeddedJudge:
    """Looks for folders that a commit makes a repository of, or whose settings it changes."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known: dict[str, set[Folder]] = {}

    async def first_made(
        self,
        new: Mapping[str, Sequence[str]],
        changes: Sequence[Change],
        own: Sequence[Change],
    ) -> tuple[str, str] | None:
        """The oldest commit that makes or sets a repository, and why it may not; None when none does.

        `changes` are against every parent, `own` those that a commit has from none of them.
        """
        possible = await self._possible(new, changes)
        if not possible:
            return None
        touched = {change.commit for change in changes if touches_repository(change.path, possible)}
        of_commit: dict[str, list[Change]] = defaultdict(list)
        for change in own:
            of_commit[change.commit].append(change)
        for commit in (commit for commit in new if commit in touched):
            if fault := await self._fault(commit, new[commit], of_commit[commit]):
                return commit, fault
        return None

    async def _possible(
        self, new: Mapping[str, Sequence[str]], changes: Sequence[Change]
    ) -> set[Folder]:
        """Folders that could be a repository in some commit.

        No commit has a path that neither the new ones add nor the user's commits beneath them have.
        """
        added = {change.path for change in changes if change.new_mode != NO_FILE}
        paths = set(filter(may_be_of_repository, added))
        if not paths:
            return set()
        beneath = {parent for parents in new.values() for parent in parents if parent not in new}
        for commit in sorted(beneath):
            paths.update(filter(may_be_of_repository, await self._history.entries(commit)))
        return embedded_repositories(paths)

    async def _fault(self, commit: str, parents: Sequence[str], own: Sequence[Change]) -> str:
        there = await self._repositories(commit)
        before: set[Folder] = set()
        for parent in parents:
            before |= await self._repositories(parent)
        for change in own:
            folder = repository_part(change.path, there)
            if folder and change.new_mode != NO_FILE:
                return f"{'/'.join(folder)!r} is a repository by its files, and it sets one"
        if made := there - before:
            return f"git would take the folder {'/'.join(min(made))!r} for a repository"
        return ""

    async def _repositories(self, commit: str) -> set[Folder]:
        if commit not in self._known:
            self._known[commit] = embedded_repositories(await self._history.entries(commit))
        return self._known[commit]


def embedded_repositories(paths: Iterable[str]) -> set[Folder]:
    """Folders that git takes for bare repositories, of a tree with these files. Its top is none."""
    names: dict[Folder, set[str]] = defaultdict(set)
    for path in paths:
        if not may_be_of_repository(path):
            continue
        parts = comparable_parts(path)
        for depth in range(1, len(parts)):
            if parts[depth] in _MAKING:
                names[parts[:depth]].add(parts[depth])
    return {
        folder
        for folder, held in names.items()
        if "head" in held and ({"objects", "refs"} <= held or "commondir" in held)
    }


def may_be_of_repository(path: str) -> bool:
    """Tell by a quick look whether a path may have a name that such a folder is known by. Most have none."""
    if not path.isascii() or "\\" in path or ":" in path:
        return True
    return any(part.rstrip(". ") in _PARTS for part in path.lower().split("/"))


def touches_repository(path: str, repositories: set[Folder]) -> bool:
    """Tell whether a path lies in one of these folders."""
    parts = comparable_parts(path)
    return any(parts[:depth] in repositories for depth in range(1, len(parts)))


def repository_part(path: str, repositories: set[Folder]) -> Folder:
    """The repository whose settings or hooks this file is among; empty when it is among none's."""
    parts = comparable_parts(path)
    for depth in range(1, len(parts)):
        name, folder = parts[depth], parts[:depth]
        if folder in repositories and (
            name == "hooks" or (name in SETTING and depth == len(parts) - 1)
        ):
            return folder
    return ()
