"""What is in a workspace now, as objects that can be compared with what the user's repository holds."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from podium.domain.launching import Confinement
from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.committable import committable_tree, make_scratch
from podium.workspaces.git.git import Git
from podium.workspaces.git.keeper import Keeper
from podium.workspaces.git.layout import confinement_of
from podium.workspaces.git.loose_commits import LooseCommits, known_tips
from podium.workspaces.git.pipes import mend_private_dir
from podium.workspaces.git.planted import kept_planted
from podium.workspaces.git.private_dir import given_commits
from podium.workspaces.git.private_refs import read_head, read_ref, read_refs
from podium.workspaces.git.tree_size import check_size


@dataclass(frozen=True)
class Contents:
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
    """What could not be looked into, in words."""
    aside: tuple[str, ...]
    """Commits that nothing names any more but a log, if that."""
    planted: tuple[str, ...]
    """A commit of what was moved out of the worktree."""
    aside_unread: tuple[str, ...]
    """What of such things could not be looked into, in words."""


_HEX = re.compile(r"[0-9a-fA-F]+")


class ContentsReader:
    """Reads workspaces. It puts nothing into them, nor any ref into the user's repository."""

    def __init__(self, git: Git, *, confined: bool) -> None:
        self._git = git
        self._confined = confined

    @asynccontextmanager
    async def read(self, record: WorkspaceRecord) -> AsyncIterator[Contents]:
        """What is in it, which can be asked about until the end of the block."""
        await asyncio.to_thread(mend_private_dir, record)
        head, others = await asyncio.to_thread(_tips, record)
        there = os.path.isdir(record.path)  # noqa: PTH112, ASYNC240 — one look
        # The user's repository takes over what it lacks, checked and with nothing referring to it.
        loose = LooseCommits(self._git, record, await self._confinement(record, there))
        tips = [tip for tip in (head, *others) if tip not in ("", record.base)]
        unread = await loose.bring(tips) if tips else []
        await check_size(self._git, record, head)
        aside, aside_unread = await self._aside(record, loose, {head, *others})
        with tempfile.TemporaryDirectory(prefix="looking-", dir=record.private) as folder:
            scratch = Path(folder)
            await asyncio.to_thread(make_scratch, scratch, record)
            objects = str(scratch / "objects")
            keeper = Keeper(self._git, record, objects, scratch / "keeper")
            planted, too_large = await kept_planted(self._git, record, keeper, objects)
            tree = await committable_tree(self._git, record, scratch, head) if there else ""
            yield Contents(
                objects=objects,
                head=head,
                others=others,
                tree=tree,
                unread=tuple(unread),
                aside=tuple(aside),
                planted=tuple(planted),
                aside_unread=(*aside_unread, *too_large),
            )

    async def _aside(
        self, record: WorkspaceRecord, loose: LooseCommits, named: Collection[str]
    ) -> tuple[list[str], list[str]]:
        known = await asyncio.to_thread(known_tips, record)
        given = await asyncio.to_thread(given_commits, Path(record.private))
        tips = [tip for tip in known.tips if tip not in given]
        unread = known.unread + await loose.bring(tips)
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
    given = given_commits(Path(record.private))
    made = [commit for commit in read_refs(private).values() if commit not in given]
    others = _ids([named, *made], record)
    return "".join(head[:1]), tuple(tip for tip in others if tip not in head)


def _ids(texts: Sequence[str], record: WorkspaceRecord) -> list[str]:
    """Those that are ids of this repository's kind and not all zeros, each once."""
    length = len(record.base)
    fitting = (text.lower() for text in texts if len(text) == length and _HEX.fullmatch(text))
    return [text for text in dict.fromkeys(fitting) if text.strip("0")]
