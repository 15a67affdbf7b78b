"""The import gate: what an agent's commits must be like to come back."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.errors import ImportRefused
from podium.domain.protected_paths import protection_of, zone_holding
from podium.workspaces.git.embedded import EmbeddedJudge
from podium.workspaces.git.history import History
from podium.workspaces.git.judging import (
    Change,
    fault_of,
    hidden_by_link,
    link_fault,
    own_changes,
)
from podium.workspaces.git.merge_judge import MergeJudge, users_commits

LARGEST_FILE_BYTES = 500_000_000
_MOST_CHANGES = 500_000
_MOST_MERGED = 1000

Parents = dict[str, list[str]]


class ImportGate:
    """Judges commits in quarantine. Every check raises `ImportRefused` with words for the agent."""

    def __init__(self, history: History, forbidden: Sequence[str]) -> None:
        self._history = history
        self._forbidden = forbidden

    async def judge(
        self, base: str, tip: str, new: Parents, own: Parents | None = None
    ) -> list[str]:
        """The paths that the new commits change. `new` are those the user's repository does not have.

        `own` are these together with what was brought back before and is on no branch of the user's.
        """
        await self._history.refuse_endless(list(new), base)
        changes = await self._history.changes(list(new))
        if len(changes) > _MOST_CHANGES:
            raise ImportRefused(
                f"the commits change more than {_MOST_CHANGES} paths; split the work"
            )
        made = own_changes(changes, new)
        for change in made:
            if fault := fault_of(change):
                raise _refused(change.commit, fault)
        await self._judge_zones(made, new, {**(own or {}), **new})
        await self._judge_files(made)
        if repository := await EmbeddedJudge(self._history).first_made(new, changes, made):
            raise _refused(*repository)
        if any(change.about_links for change in changes):
            await self._judge_links(base, tip)
        return sorted({change.path for change in made})

    async def _judge_zones(self, made: Sequence[Change], new: Parents, own: Parents) -> None:
        for change in made:
            if zone := zone_holding(change.path, self._forbidden):
                raise _refused(
                    change.commit, f"it changes {change.path!r}, and {zone!r} is forbidden"
                )
        merges = MergeJudge(self._history, self._forbidden)
        for commit, theirs in users_commits(new).items():
            if len(new[commit]) > 1 and (path := await merges.wrong_path(commit, theirs)):
                zone = protection_of(path, self._forbidden)
                raise _refused(commit, f"it merges {path!r} differently, and {zone!r} is forbidden")

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

    async def _judge_links(self, base: str, tip: str) -> None:
        """No link may end outside that did not in the base, by whatever other links it goes."""
        worse = await self._history.leading_out(tip) - await self._history.leading_out(base)
        if worse:
            raise _refused(tip, f"the link {min(worse)!r} leads out of the repository")
        entries = await self._history.entries(tip)
        links = [path for path, mode in entries.items() if mode == "120000"]
        if hidden := hidden_by_link(links, entries):
            raise _refused(tip, hidden)


def _beneath(commit: str, own: Parents) -> list[str]:
    """The user's commits that the workspace's own ones, from this one down, stand on."""
    found: dict[str, None] = {}
    seen, waiting = {commit}, [commit]
    while waiting:
        for parent in own[waiting.pop()]:
            if parent not in own:
                found[parent] = None
            elif parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return list(found)


def _refused(commit: str, why: str) -> ImportRefused:
    return ImportRefused(
        f"commit {commit[:12]} may not come back: {why}; undo that with commits that are made anew from "
        "the one before it (`git reset --soft`), so that no commit contains it"
    )
