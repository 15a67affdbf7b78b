"""Which forbidden paths a merge may take: those of the user's newest commits in it, and no older ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from podium.domain.errors import ImportRefused
from podium.domain.protected_paths import protection_of
from podium.workspaces.git.history import History

_MOST_THEIRS = 500


def users_commits(new: dict[str, list[str]]) -> dict[str, frozenset[str]]:
    """By new commit, oldest first: the user's commits that it and the new ones before it stand on."""
    found: dict[str, frozenset[str]] = {}
    for commit, parents in new.items():
        above = [found[parent] if parent in new else frozenset([parent]) for parent in parents]
        found[commit] = reduce(frozenset.union, above, frozenset[str]())
    return found


class MergeJudge:
    """Compares merges with what the user has on the branches that are merged.

    Otherwise a merge that keeps an older side would undo the user's changes when it is merged back.
    """

    def __init__(self, history: History, forbidden: Sequence[str]) -> None:
        self._history = history
        self._forbidden = forbidden
        self._known: dict[tuple[str, str], set[str]] = {}

    async def wrong_path(self, commit: str, theirs: Collection[str]) -> str:
        """A forbidden path that is not as the user's newest commits have it; empty when there is none."""
        if len(theirs) > _MOST_THEIRS:
            raise ImportRefused(
                f"commit {commit[:12]} merges more than {_MOST_THEIRS} branches; merge fewer"
            )
        newest = await self._history.independent(sorted(theirs)) if theirs else []
        differing = {each: await self._zone_paths(each, commit) for each in newest}
        for path in sorted(set().union(*differing.values())):
            taken = [each for each in newest if path not in differing[each]]
            for other in newest:
                if path in differing[other] and not await self._may_override(path, taken, other):
                    return path
        return ""

    async def _may_override(self, path: str, taken: Sequence[str], other: str) -> bool:
        """Whether one of those that the path is taken from is not behind the other as to this path."""
        for each in taken:
            base = await self._history.merge_base(each, other)
            changed_here = path in await self._zone_paths(base, each)
            if changed_here or path not in await self._zone_paths(base, other):
                return True
        return False

    async def _zone_paths(self, one: str, other: str) -> set[str]:
        """Forbidden paths in which two commits differ. The first may be none at all."""
        if (one, other) not in self._known:
            paths = await self._history.differing(one, other)
            self._known[one, other] = {
                each for each in paths if protection_of(each, self._forbidden)
            }
        return self._known[one, other]
