"""The import gate: what an agent's commits must be like to come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from podium.domain.errors import ImportRefused
from podium.workspaces.git.embedded import (
    embedded_repositories,
    may_be_of_repository,
    repository_part,
)
from podium.workspaces.git.history import History
from podium.workspaces.git.judging import Change, fault_of, hidden_by_link, link_fault, zone_of

LARGEST_FILE_BYTES = 500_000_000
_MOST_CHANGES = 500_000

Parents = dict[str, list[str]]


class ImportGate:
    """Judges commits in quarantine. Every check raises `ImportRefused` with words for the agent."""

    def __init__(self, history: History, forbidden: Sequence[str]) -> None:
        self._history = history
        self._forbidden = forbidden

    async def judge(self, base: str, tip: str, new: Parents) -> list[str]:
        """The paths that the new commits change. `new` are those the user's repository does not have."""
        changes = await self._history.changes(list(new))
        if len(changes) > _MOST_CHANGES:
            raise ImportRefused(
                f"the commits change more than {_MOST_CHANGES} paths; split the work"
            )
        own = _own_changes(changes, new)
        for change in own:
            if fault := fault_of(change):
                raise _refused(change.commit, fault)
        await self._judge_zones(own, new)
        await self._judge_files(own)
        await self._judge_embedded(base, tip, own)
        if any(change.about_links for change in changes):
            await self._judge_links(base, tip)
        return sorted({change.path for change in own})

    async def _judge_zones(self, own: Sequence[Change], new: Parents) -> None:
        for change in own:
            if zone := zone_of(change.path, self._forbidden):
                raise _refused(
                    change.commit, f"it changes {change.path!r}, and {zone!r} is forbidden"
                )
        if self._forbidden:
            for commit, parents in new.items():
                if len(parents) > 1:
                    await self._judge_merge(commit, parents, new)

    async def _judge_merge(self, commit: str, parents: Sequence[str], new: Parents) -> None:
        """A merge may take forbidden paths only as the user's newest commit in it has them.

        Otherwise one that keeps the older side would undo the user's changes when it is merged back.
        """
        theirs = [parent for parent in parents if parent not in new]
        newest = [each for each in theirs if not await self._is_behind(each, theirs)]
        for parent in newest or parents:
            for path in await self._history.differing(parent, commit):
                if zone := zone_of(path, self._forbidden):
                    raise _refused(
                        commit, f"it merges {path!r} differently, and {zone!r} is forbidden"
                    )

    async def _is_behind(self, commit: str, others: Sequence[str]) -> bool:
        for other in others:
            if other != commit and await self._history.is_ancestor(commit, other):
                return True
        return False

    async def _judge_files(self, own: Sequence[Change]) -> None:
        blobs = list(dict.fromkeys(each.blob for each in own if each.new_mode != "000000"))
        sizes = await self._history.sizes(blobs) if blobs else {}
        for change in own:
            if sizes.get(change.blob, 0) > LARGEST_FILE_BYTES:
                raise _refused(change.commit, f"{change.path!r} is larger than 500 MB")
        links = [change for change in own if change.makes_link]
        targets = await self._history.targets([each.blob for each in links], sizes) if links else {}
        for change in links:
            if fault := link_fault(change.path, targets.get(change.blob, "")):
                raise _refused(change.commit, fault)

    async def _judge_embedded(self, base: str, tip: str, own: Sequence[Change]) -> None:
        """No folder may become one that git takes for a repository: it would obey the settings in it."""
        if not any(may_be_of_repository(change.path) for change in own):
            return
        there = embedded_repositories(await self._history.entries(tip))
        before = embedded_repositories(await self._history.entries(base)) if there else set()
        for change in own:
            folder = repository_part(change.path, there)
            if folder and change.new_mode != "000000":
                raise _refused(
                    change.commit, f"{folder!r} is a repository by its files, and it sets one"
                )
        if made := there - before:
            raise _refused(tip, f"git would take the folder {min(made)!r} for a repository")

    async def _judge_links(self, base: str, tip: str) -> None:
        """No link may end outside that did not in the base, by whatever other links it goes."""
        worse = await self._history.leading_out(tip) - await self._history.leading_out(base)
        if worse:
            raise _refused(tip, f"the link {min(worse)!r} leads out of the repository")
        entries = await self._history.entries(tip)
        links = [path for path, mode in entries.items() if mode == "120000"]
        if hidden := hidden_by_link(links, entries):
            raise _refused(tip, hidden)


def _own_changes(changes: Sequence[Change], parents: Parents) -> list[Change]:
    """What a commit has from none of its parents: for a merge, only what differs from all of them."""
    seen = Counter((change.commit, change.path) for change in changes)
    own: dict[tuple[str, str], Change] = {}
    for change in changes:
        if seen[change.commit, change.path] >= max(1, len(parents[change.commit])):
            own.setdefault((change.commit, change.path), change)
    return list(own.values())


def _refused(commit: str, why: str) -> ImportRefused:
    return ImportRefused(
        f"commit {commit[:12]} may not come back: {why}; undo that with commits that are made anew from "
        "the one before it (`git reset --soft`), so that no commit contains it"
    )
