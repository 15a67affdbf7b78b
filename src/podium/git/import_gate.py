"""Import gate: conditions on an agent's commits, merges and embedded repositories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce

from podium.core.errors import ImportRefused
from podium.core.protected_paths import comparable_parts, protection_of, zone_holding
from podium.git.commit_changes import (
    NO_FILE,
    CommitChange,
    CommitHistory,
    change_problem,
    hidden_by_link,
    link_problem,
    own_changes,
)

_MAX_THEIRS = 500


def users_commits(new: dict[str, list[str]]) -> dict[str, frozenset[str]]:
    """By new commit, oldest first: the user's commits that it and the new ones before it stand on."""
    ancestors: dict[str, frozenset[str]] = {}
    for commit, parents in new.items():
        above = [ancestors[parent] if parent in new else frozenset([parent]) for parent in parents]
        ancestors[commit] = reduce(frozenset.union, above, frozenset[str]())
    return ancestors


class MergeCheck:
    """Compares merges with what the user has on the branches that are merged.

    Otherwise a merge that keeps an older side would undo the user's changes when it is merged back.
    """

    def __init__(self, history: CommitHistory, forbidden: Sequence[str]) -> None:
        self._history = history
        self._forbidden = forbidden
        self._zone_paths_cache: dict[tuple[str, str], set[str]] = {}

    async def wrong_path(self, commit: str, theirs: Collection[str]) -> str:
        """A forbidden path that is not as the user's newest commits have it; empty when there is none."""
        if len(theirs) > _MAX_THEIRS:
            raise ImportRefused(
                f"commit {commit[:12]} merges more than {_MAX_THEIRS} branches; merge fewer"
            )
        newest = await self._history.independent(sorted(theirs)) if theirs else []
        differing = {tip: await self._zone_paths(tip, commit) for tip in newest}
        for path in sorted(set().union(*differing.values())):
            taken = [tip for tip in newest if path not in differing[tip]]
            for other in newest:
                if path in differing[other] and not await self._may_override(path, taken, other):
                    return path
        return ""

    async def _may_override(self, path: str, taken: Sequence[str], other: str) -> bool:
        """Check that one of the tips that the path is taken from is not behind the other one in this path."""
        for tip in taken:
            base = await self._history.merge_base(tip, other)
            changed_here = path in await self._zone_paths(base, tip)
            if changed_here or path not in await self._zone_paths(base, other):
                return True
        return False

    async def _zone_paths(self, one: str, other: str) -> set[str]:
        """Forbidden paths in which two commits differ. The first may be none at all."""
        if (one, other) not in self._zone_paths_cache:
            paths = await self._history.differing(one, other)
            self._zone_paths_cache[one, other] = {
                path for path in paths if protection_of(path, self._forbidden)
            }
        return self._zone_paths_cache[one, other]


SETTING = frozenset({"head", "config", "config.worktree", "commondir"})
"""Files, in small letters, that make git do things when they lie in such a folder; so do its `hooks`."""
_MAKING = frozenset({"head", "objects", "refs", "commondir"})
"""Names by which git takes a folder for a repository."""
_PARTS = SETTING | _MAKING | {"hooks"}

Folder = tuple[str, ...]
"""A folder by its comparable parts: two spellings of one folder are one."""


class EmbeddedRepositoryCheck:
    """Looks for folders that a commit makes a repository of, or whose settings it changes."""

    def __init__(self, history: CommitHistory) -> None:
        self._history = history
        self._zone_paths_cache: dict[str, set[Folder]] = {}

    async def first_made(
        self,
        new: Mapping[str, Sequence[str]],
        changes: Sequence[CommitChange],
        own: Sequence[CommitChange],
    ) -> tuple[str, str] | None:
        """The oldest commit that makes or sets a repository, and why it may not; None when none does.

        `changes` are against every parent, `own` those that a commit has from none of them.
        """
        possible = await self._possible(new, changes)
        if not possible:
            return None
        touched = {change.commit for change in changes if touches_repository(change.path, possible)}
        of_commit: dict[str, list[CommitChange]] = defaultdict(list)
        for change in own:
            of_commit[change.commit].append(change)
        for commit in (commit for commit in new if commit in touched):
            if problem := await self._problem(commit, new[commit], of_commit[commit]):
                return commit, problem
        return None

    async def _possible(
        self, new: Mapping[str, Sequence[str]], changes: Sequence[CommitChange]
    ) -> set[Folder]:
        """Folders that could be a repository in some commit.

        No commit has a path that neither the new ones add nor the user's commits beneath them have.
        """
        added = {change.path for change in changes if change.new_mode != NO_FILE}
        paths = set(filter(may_be_of_repository, added))
        if not paths:
            return set()
        user_parents = {
            parent for parents in new.values() for parent in parents if parent not in new
        }
        for commit in sorted(user_parents):
            paths.update(filter(may_be_of_repository, await self._history.entries(commit)))
        return embedded_repositories(paths)

    async def _problem(
        self, commit: str, parents: Sequence[str], own: Sequence[CommitChange]
    ) -> str:
        there = await self._repositories(commit)
        before: set[Folder] = set()
        for parent in parents:
            before |= await self._repositories(parent)
        for change in own:
            folder = repository_part(change.path, there)
            if folder and change.new_mode != NO_FILE:
                return f"the commit changes a file of {'/'.join(folder)!r}, which git treats as a repository"
        if made := there - before:
            return f"git would treat the folder {'/'.join(min(made))!r} as a repository"
        return ""

    async def _repositories(self, commit: str) -> set[Folder]:
        if commit not in self._zone_paths_cache:
            self._zone_paths_cache[commit] = embedded_repositories(
                await self._history.entries(commit)
            )
        return self._zone_paths_cache[commit]


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


MAX_FILE_BYTES = 500_000_000
_MAX_CHANGES = 500_000

Parents = dict[str, list[str]]


class ImportGate:
    """Judges commits in quarantine. Every check raises `ImportRefused` with a message for the agent."""

    def __init__(self, history: CommitHistory, forbidden: Sequence[str]) -> None:
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
        if len(changes) > _MAX_CHANGES:
            raise ImportRefused(
                f"the commits change more than {_MAX_CHANGES} paths; split the work"
            )
        made = own_changes(changes, new)
        for change in made:
            if problem := change_problem(change):
                raise _refused(change.commit, problem)
        await self._judge_zones(made, new, {**(own or {}), **new})
        await self._judge_files(made)
        if repository := await EmbeddedRepositoryCheck(self._history).first_made(
            new, changes, made
        ):
            raise _refused(*repository)
        if any(change.about_links for change in changes):
            await self._judge_links(base, tip)
        return sorted({change.path for change in made})

    async def _judge_zones(self, made: Sequence[CommitChange], new: Parents, own: Parents) -> None:
        for change in made:
            if zone := zone_holding(change.path, self._forbidden):
                raise _refused(
                    change.commit, f"it changes {change.path!r}, but {zone!r} is forbidden"
                )
        merges = MergeCheck(self._history, self._forbidden)
        for commit, theirs in users_commits(new).items():
            if len(new[commit]) > 1 and (path := await merges.wrong_path(commit, theirs)):
                zone = protection_of(path, self._forbidden)
                raise _refused(commit, f"its merge changes {path!r}, but {zone!r} is forbidden")

    async def _judge_files(self, own: Sequence[CommitChange]) -> None:
        blobs = list(dict.fromkeys(change.blob for change in own if change.new_mode != "000000"))
        sizes = await self._history.sizes(blobs) if blobs else {}
        for change in own:
            if sizes.get(change.blob, 0) > MAX_FILE_BYTES:
                raise _refused(change.commit, f"{change.path!r} is larger than 500 MB")
        links = [change for change in own if change.makes_link]
        targets = await self._history.targets([link.blob for link in links], sizes) if links else {}
        for change in links:
            if problem := link_problem(change.path, targets.get(change.blob, "")):
                raise _refused(change.commit, problem)

    async def _judge_links(self, base: str, tip: str) -> None:
        """No link may end outside that did not in the base, by whatever other links it goes."""
        worse = await self._history.leading_out(tip) - await self._history.leading_out(base)
        if worse:
            raise _refused(tip, f"the link {min(worse)!r} leads out of the repository")
        entries = await self._history.entries(tip)
        links = [path for path, mode in entries.items() if mode == "120000"]
        if hidden := hidden_by_link(links, entries):
            raise _refused(tip, hidden)


def _refused(commit: str, why: str) -> ImportRefused:
    return ImportRefused(
        f"commit {commit[:12]} cannot be delivered: {why}; reset to the commit before it (`git reset --soft`) and "
        "commit again without it, so that no commit contains it"
    )
