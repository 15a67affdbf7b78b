"""Safety of the work in a workspace: its contents, and where they are stored elsewhere."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from podium.core.processes import Confinement
from podium.core.workspaces import WorkLocation, WorkspaceRecord, WorktreeSnapshot
from podium.git.commit_trees import check_size
from podium.git.committable_tree import (
    RAW_DIFFERENCE,
    committable_tree,
    differences,
    left_by_set_up,
    make_scratch,
)
from podium.git.git_command import Git
from podium.git.layout import confinement_of
from podium.git.planted import store_planted
from podium.git.private_dir import initial_commits, mend_private_dir, read_head, read_ref, read_refs
from podium.git.snapshots import LooseCommits, recorded_tips
from podium.git.worktree_objects import ObjectKeeper


@dataclass(frozen=True)
class WorkspaceContents:
    """Commits and files of a workspace at a moment."""

    objects: str
    """Folder of objects in which all of it can be read, together with the user's own."""
    head: str
    """The agent's own tip; empty when it has none."""
    others: tuple[str, ...]
    """Further tips in its private git directory that it was not made with: branches, tags, a stash."""
    tree: str
    """Of the worktree without what git ignores; empty when the worktree is gone."""
    unread: tuple[str, ...]
    """Descriptions of what could not be read."""
    unreferenced: tuple[str, ...]
    """Commits that nothing names any more but a log, if that."""
    planted: tuple[str, ...]
    """A commit of what was moved out of the worktree."""
    extras_unread: tuple[str, ...]
    """Descriptions of unreferenced or planted things that could not be read."""


_HEX = re.compile(r"[0-9a-fA-F]+")


class ContentsReader:
    """Reads workspaces. It puts nothing into them, nor any ref into the user's repository."""

    def __init__(self, git: Git, *, confined: bool) -> None:
        self._git = git
        self._confined = confined

    @asynccontextmanager
    async def read(self, record: WorkspaceRecord) -> AsyncIterator[WorkspaceContents]:
        """Read the contents, whose objects exist until the end of the block."""
        await asyncio.to_thread(mend_private_dir, record)
        head, others = await asyncio.to_thread(_tips, record)
        there = os.path.isdir(record.path)  # noqa: PTH112, ASYNC240 — one look
        # The user's repository takes over what it lacks, checked and with nothing referring to it.
        loose = LooseCommits(self._git, record, await self._confinement(record, there))
        tips = [tip for tip in (head, *others) if tip not in ("", record.base)]
        unread = await loose.bring(tips) if tips else []
        await check_size(self._git, record, head)
        unreferenced, extras_unread = await self._unreferenced(record, loose, {head, *others})
        with tempfile.TemporaryDirectory(prefix="looking-", dir=record.private) as folder:
            scratch = Path(folder)
            await asyncio.to_thread(make_scratch, scratch, record)
            objects = str(scratch / "objects")
            keeper = ObjectKeeper(self._git, record, objects, scratch / "keeper")
            planted, too_large = await store_planted(self._git, record, keeper, objects)
            tree = await committable_tree(self._git, record, scratch, head) if there else ""
            yield WorkspaceContents(
                objects=objects,
                head=head,
                others=others,
                tree=tree,
                unread=tuple(unread),
                unreferenced=tuple(unreferenced),
                planted=tuple(planted),
                extras_unread=(*extras_unread, *too_large),
            )

    async def _unreferenced(
        self, record: WorkspaceRecord, loose: LooseCommits, named: Collection[str]
    ) -> tuple[list[str], list[str]]:
        recorded = await asyncio.to_thread(recorded_tips, record)
        initial = await asyncio.to_thread(initial_commits, Path(record.private))
        tips = [tip for tip in recorded.tips if tip not in initial]
        unread = recorded.unread + await loose.bring(tips)
        return [tip for tip in await loose.heads(tips) if tip not in named], unread

    async def _confinement(self, record: WorkspaceRecord, there: bool) -> Confinement | None:
        if not self._confined or not there:
            return None
        return await asyncio.to_thread(confinement_of, record)


def _tips(record: WorkspaceRecord) -> tuple[str, tuple[str, ...]]:
    """Read as the plain data it is: an agent can have written anything there."""
    private = Path(record.private, "git")
    checked_out = read_head(private, record.admin)
    detached = "" if checked_out.startswith("refs/") else checked_out
    named = read_ref(private, record.branch)
    head = _ids([detached or named], record)
    # The directory was made with copies of the user's own refs, which are no work.
    initial = initial_commits(Path(record.private))
    made = [commit for commit in read_refs(private).values() if commit not in initial]
    others = _ids([named, *made], record)
    return "".join(head[:1]), tuple(tip for tip in others if tip not in head)


def _ids(texts: Sequence[str], record: WorkspaceRecord) -> list[str]:
    """Those that are ids of this repository's kind and not all zeros, each once."""
    length = len(record.base)
    fitting = (text.lower() for text in texts if len(text) == length and _HEX.fullmatch(text))
    return [text for text in dict.fromkeys(fitting) if text.strip("0")]


_SQUASHES_TRIED = 100
"""Number of commits of a branch that are compared with the whole work."""


class SafetyFinding(NamedTuple):
    """Location of the work, and the reason."""

    location: WorkLocation
    because: str


class WorkComparison:
    """Compares what is in one workspace with what the user's repository holds."""

    def __init__(self, git: Git, record: WorkspaceRecord, contents: WorkspaceContents) -> None:
        self._git = git
        self._record = record
        self._contents = contents

    async def judge(
        self, snapshots: Sequence[WorktreeSnapshot], own_branches: Collection[str]
    ) -> SafetyFinding:
        """`own_branches` are those of all workspaces: being on one of them is not being merged."""
        if self._contents.unread:
            return SafetyFinding(
                WorkLocation.UNKNOWN, f"some of it cannot be read: {self._contents.unread[0]}"
            )
        tips = await self._tips(own_branches)
        loose = await self._loose()
        finding = None if loose or await self._has_only_extras(tips) else await self._safe(tips)
        if finding is None and snapshots and await self._is_in(snapshots[-1], tips):
            finding = SafetyFinding(WorkLocation.SNAPSHOTTED, _describe_snapshot(snapshots[-1]))
        if finding is not None:
            return finding
        if snapshots and not snapshots[-1].complete:
            left_out = "".join(snapshots[-1].left_out[:1]) or "everything"
            reason = f"its snapshot could not store {left_out}; save or delete that, then take another snapshot"
            return SafetyFinding(WorkLocation.UNKNOWN, reason)
        others = [*tips.user_tips, *tips.of_other_workspaces]
        commits = await self._missing(tips.mine, others) or await self._missing(
            tips.mine, tips.user_tips
        )
        extras = await self._describe_extras(tips) if not commits else ""
        return SafetyFinding(
            WorkLocation.UNKNOWN, _describe_unsafe(self._record, loose, commits, extras)
        )

    async def _has_only_extras(self, tips: _WorkTips) -> bool:
        """Check that nothing is there but commits that were reset away and files moved out of the worktree.

        Beside work that is safe, such things are kept by the snapshot that is taken before it is removed.
        """
        contents = self._contents
        extras = contents.unreferenced or contents.planted or contents.extras_unread
        return bool(extras) and not await self._missing(tips.mine, [self._record.base])

    async def _describe_extras(self, tips: _WorkTips) -> str:
        if self._contents.extras_unread:
            return f"{self._contents.extras_unread[0]}"
        if self._contents.planted:
            return "files that were moved out of the worktree"
        count = await self._missing(self._contents.unreferenced, [*tips.user_tips, *tips.mine])
        return f"{count} commit{'s' if count > 1 else ''} on no branch" if count else ""

    async def _tips(self, own_branches: Collection[str]) -> _WorkTips:
        listed = await self._ask("for-each-ref", "--format=%(refname) %(objectname)")
        refs = dict(line.rsplit(" ", 1) for line in listed.splitlines())
        tips = _WorkTips(self._record, self._contents, refs, own_branches)
        # Commits that a ref of the user's contains need no other location; the own tip is checked apart.
        theirs = [tip for name, tip in refs.items() if not name.startswith("refs/podium/")]
        if tips.others and not await self._missing(tips.others, [self._record.base, *theirs]):
            tips.others = []
        return tips

    async def _safe(self, tips: _WorkTips) -> SafetyFinding | None:
        """Find the one location that has all commits; None when there is none."""
        for location, commits, reason in tips.safe_locations():
            if not await self._missing(tips.mine, commits):
                return SafetyFinding(location, reason)
        squashed = await self._squashed(tips)
        return SafetyFinding(WorkLocation.MERGED, squashed) if squashed else None

    async def _loose(self) -> list[str]:
        """Paths in the worktree that are in no commit of the agent's, but for what the set-up left."""
        if not self._contents.tree:
            return []
        head = self._contents.head or self._record.base
        raw = await self._ask(
            *RAW_DIFFERENCE, f"{head}^{{tree}}", f"{self._contents.tree}^{{tree}}"
        )
        entries = differences(raw.encode(errors="surrogateescape"))
        left = await asyncio.to_thread(left_by_set_up, self._record)
        return [path for path, entry in entries.items() if left.get(path) != entry]

    async def _squashed(self, tips: _WorkTips) -> str:
        """Describe a commit of a branch that has every file as the work left it; empty when there is none."""
        head, base = self._contents.head, self._record.base
        if not head or await self._missing(tips.mine, [*tips.user_tips, head]):
            return ""
        paths = set(await self._differing(base, head))
        expected = await self._entries(head, paths)
        for name, tip in tips.branches.items():
            for commit in await self._since_the_base(tip) if paths else ():
                if await self._entries(commit, paths) == expected:
                    return f"{commit[:12]} on {_short(name)} has the same files as this workspace"
        return ""

    async def _since_the_base(self, tip: str) -> list[str]:
        """Commits that came to a branch after the work began, newest first."""
        count = f"--max-count={_SQUASHES_TRIED}"
        listed = await self._ask(
            "rev-list", "--first-parent", count, tip, "--not", self._record.base
        )
        return listed.split()

    async def _entries(self, commit: str, paths: Collection[str]) -> set[str]:
        """Mode, id and path of each of the paths, as far as the commit has them."""
        listed = await self._ask("ls-tree", "-r", "-z", "--full-tree", commit)
        return {entry for entry in listed.split("\0") if entry.partition("\t")[2] in paths}

    async def _is_in(self, snapshot: WorktreeSnapshot, tips: _WorkTips) -> bool:
        """Check that the snapshot has everything that is in the workspace now. It may hold more."""
        if not snapshot.complete:
            return False
        if self._contents.extras_unread:
            return False
        mine = [*tips.mine, *self._contents.unreferenced, *self._contents.planted]
        if await self._missing(mine, [*tips.user_tips, snapshot.commit]):
            return False
        if not self._contents.tree:
            return True
        # What was deleted since is no work that could be lost.
        commit = snapshot.carried or snapshot.commit
        return not await self._differing(commit, self._contents.tree, "--diff-filter=AMT")

    async def _differing(self, old: str, new: str, *options: str) -> list[str]:
        command = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", *options)
        listed = await self._ask(*command, f"{old}^{{tree}}", f"{new}^{{tree}}")
        return [path for path in listed.split("\0") if path]

    async def _missing(self, tips: Sequence[str], excluded: Sequence[str]) -> int:
        """Count the commits of the tips that none of the excluded contains. A ref may name a missing object."""
        apart = [tip for tip in tips if tip not in excluded]
        if not apart:
            return 0
        # By stdin: a repository may have more refs than a command line holds.
        revisions = "".join(
            [*(f"{tip}\n" for tip in apart), *(f"^{commit}\n" for commit in excluded)]
        )
        return int(
            await self._ask(
                "rev-list", "--count", "--ignore-missing", "--stdin", stdin=revisions.encode()
            )
        )

    async def _ask(self, *arguments: str, stdin: bytes = b"") -> str:
        ended = await self._git.run(
            *arguments,
            git_dir=self._record.git_dir,
            env={"GIT_OBJECT_DIRECTORY": self._contents.objects},
            stdin=stdin,
        )
        return ended.stdout.decode(errors="surrogateescape")


class _WorkTips:
    """Tips of the work, and the refs that could contain it."""

    def __init__(
        self,
        record: WorkspaceRecord,
        contents: WorkspaceContents,
        refs: dict[str, str],
        own_branches: Collection[str],
    ) -> None:
        own = (contents.head, refs.get(record.branch, ""))
        self._own = [tip for tip in dict.fromkeys(own) if tip]
        self.others = list(contents.others)
        self.branches = {
            name: commit
            for name, commit in refs.items()
            if name.startswith("refs/heads/") and name not in own_branches
        }
        self.of_other_workspaces = [
            refs[name] for name in own_branches if name in refs and name != record.branch
        ]
        self._base = record.base
        self._remotes = _under(refs, "refs/remotes/")
        self._tags = _under(refs, "refs/tags/")

    @property
    def mine(self) -> list[str]:
        return [*self._own, *self.others]

    @property
    def user_tips(self) -> list[str]:
        return [self._base, *self.branches.values(), *self._tags, *self._remotes]

    def safe_locations(self) -> list[tuple[WorkLocation, list[str], str]]:
        """Each class with the commits that its work would have to be reachable from, best first."""
        merged = [self._base, *self.branches.values()]
        return [
            (WorkLocation.UNCHANGED, [self._base], "it has no changes"),
            (
                WorkLocation.MERGED,
                merged,
                "everything is committed, and every commit is on another branch",
            ),
            (
                WorkLocation.PUSHED,
                [*merged, *self._remotes],
                "everything is committed, and every commit is pushed",
            ),
        ]


def _under(refs: dict[str, str], prefix: str) -> list[str]:
    return [commit for name, commit in refs.items() if name.startswith(prefix)]


def _short(name: str) -> str:
    return name.removeprefix("refs/heads/")


def _describe_snapshot(snapshot: WorktreeSnapshot) -> str:
    if not snapshot.left_out:
        return f"everything is in {snapshot.ref}"
    more = f" and {len(snapshot.left_out) - 1} more" if len(snapshot.left_out) > 1 else ""
    return f"everything except large files that git ignores ({snapshot.left_out[0]}{more}) is in {snapshot.ref}"


def _describe_unsafe(
    record: WorkspaceRecord, loose: Sequence[str], commits: int, extras: str
) -> str:
    parts = []
    if commits:
        parts.append(f"{commits} commit{'s' if commits > 1 else ''} neither merged nor pushed")
    if loose:
        more = f" and {len(loose) - 1} more" if len(loose) > 1 else ""
        parts.append(f"{loose[0]!r}{more} not committed")
    if extras:
        parts.append(extras)
    what = " and ".join(parts) or "its content is stored nowhere else"
    elsewhere = "merge or push the branch, or " if commits and not loose else ""
    return f"{what}; {elsewhere}save it with `podium workspaces snapshot {record.task}`"
