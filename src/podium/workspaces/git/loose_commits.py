"""Commits in a private git directory that the user's repository does not have: taken over as they are."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from podium.domain.errors import ImportRefused
from podium.domain.launching import Confinement, Ended
from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.borrowing import make_borrower
from podium.workspaces.git.git import Git, GitFailed
from podium.workspaces.git.private_refs import (
    logged_commits,
    read_head,
    read_ref,
    read_refs,
    stray_objects,
)
from podium.workspaces.git.quarantine import LARGEST_PACK_BYTES, quarantined

_MOST_LOGGED = 5000
_MOST_TIPS = 50_000


class KnownTips(NamedTuple):
    """Commits, and names that may be those of commits."""

    tips: list[str]
    unread: list[str]
    """What was not looked at, in words."""


def known_tips(record: WorkspaceRecord) -> KnownTips:
    """Whatever its branches, tags, stash and logs ever stood for; the branch's own tip comes first.

    Behind them the objects that nothing may name any more.
    """
    private = Path(record.private, "git")
    logged, strays = logged_commits(private, record.admin), stray_objects(private)
    tips = [read_ref(private, record.branch), read_head(private, record.admin)]
    # Logs first: the refs are mostly copies of the user's, however many he has.
    tips += [*logged.commits[:_MOST_LOGGED], *read_refs(private).values()]
    fitting = (tip for tip in tips if len(tip) == len(record.base) and "/" not in tip)
    named = list(dict.fromkeys(tip for tip in fitting if tip.strip("0")))
    unread = []
    if not logged.whole or len(logged.commits) > _MOST_LOGGED or len(named) > _MOST_TIPS:
        unread.append("commits: its logs and refs name more than can be looked at")
    if not strays.whole:
        unread.append("commits: it has more objects than can be looked at")
    also = (name for name in strays.commits if len(name) == len(record.base))
    return KnownTips(list(dict.fromkeys([*named[:_MOST_TIPS], *also])), unread)


class LooseCommits:
    """Reads commits out of one workspace: inside its confinement, or else by a borrower of its objects."""

    def __init__(self, git: Git, record: WorkspaceRecord, confinement: Confinement | None) -> None:
        self._git = git
        self._record = record
        self._confinement = confinement

    async def bring(self, tips: Sequence[str]) -> list[str]:
        """Put what is missing into the user's objects, where nothing refers to it yet.

        Gives what could not be brought, in words. When not all can be, the first one is tried alone.
        """
        missing = await self._missing(tips)
        if not missing:
            return []
        try:
            await self._bring(missing)
        except (ImportRefused, GitFailed) as refused:
            if len(missing) > 1 and tips[0] in missing:
                return [f"some commits: {refused}", *await self.bring(tips[:1])]
            return [f"commits: {refused}"]
        return []

    async def heads(self, tips: Sequence[str]) -> list[str]:
        """Of these, those that no branch or tag of the user's reaches and none of the others."""
        missing = set(await self._missing(tips))
        there = [tip for tip in tips if tip not in missing]
        ended = await self._git.run(
            "rev-list", "--parents", "--stdin", "--not", "--branches", "--tags", "--remotes",
            git_dir=self._record.git_dir, stdin="".join(f"{tip}\n" for tip in there).encode(),
        )  # fmt: skip
        rows = [line.split() for line in ended.stdout.decode().splitlines()]
        parents = {parent for row in rows for parent in row[1:]}
        return [row[0] for row in rows if row[0] not in parents]

    async def _missing(self, tips: Sequence[str]) -> list[str]:
        """Those that are no commits in the user's repository."""
        ended = await self._git.run(
            "cat-file", "--batch-check", git_dir=self._record.git_dir, stdin=_commits(tips)
        )
        rows = ended.stdout.decode().splitlines()
        return [tip for tip, row in zip(tips, rows, strict=True) if row.endswith(" missing")]

    async def _bring(self, tips: Sequence[str]) -> None:
        """Raises `ImportRefused` for objects that are wrong, `GitFailed` for a history with holes."""
        asked = await self._inside("cat-file", "--batch-check", stdin=_commits(tips))
        rows = [row.split() for row in asked.stdout.decode(errors="replace").splitlines()]
        commits = [row[0] for row in rows if len(row) == 3 and row[1] == "commit"]
        if not commits:
            return
        wanted = "".join(f"{commit}\n" for commit in commits) + f"^{self._record.base}\n"
        packed = await self._inside(
            "pack-objects", "--revs", "--thin", "--stdout", "--quiet", "--delta-base-offset",
            stdin=wanted.encode(),
        )  # fmt: skip
        async with quarantined(self._git, self._record.git_dir) as quarantine:
            await quarantine.take(packed.stdout)
            await quarantine.release()

    async def _inside(self, *words: str, stdin: bytes) -> Ended:
        if self._confinement is not None:
            return await self._git.run(
                *words, cwd=self._record.path, stdin=stdin, confinement=self._confinement,
                env={"HOME": str(Path(self._record.private, "home"))},
                output_bytes=LARGEST_PACK_BYTES,
            )  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="podium-", dir=self._record.private) as folder:
            await asyncio.to_thread(make_borrower, Path(folder), self._record, self._record.base)
            return await self._git.run(
                *words, git_dir=folder, stdin=stdin, output_bytes=LARGEST_PACK_BYTES
            )


def _commits(tips: Sequence[str]) -> bytes:
    return "".join(f"{tip}^{{commit}}\n" for tip in tips).encode()
