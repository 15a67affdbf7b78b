"""Turns: what the user's repository was like before one, and what is done about changes after it.

Under the kernel's confinement the agent cannot have changed anything there, so a change is the user's own:
it is told and stays. Without confinement nobody can know who it was, so everything is put back, and what was
there instead is kept.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

from podium.domain.errors import NotPossibleNow, WorkspaceTampered
from podium.domain.workspaces import RefsSeen, TurnEnd, Violation, WorkspaceRecord
from podium.platform import make_private_folder
from podium.ports.clock import Clock
from podium.workspaces.git.git import Git, GitFailed
from podium.workspaces.git.hygiene import moved, moved_since
from podium.workspaces.git.layout import confinement_of
from podium.workspaces.git.pipes import mend_private_dir
from podium.workspaces.git.pointer import put_pointer_back
from podium.workspaces.git.putting_back import put_back_file, put_back_ref
from podium.workspaces.git.records import Records
from podium.workspaces.git.tidying import tidy
from podium.workspaces.git.watching import (
    differences,
    files_of,
    heads_of,
    is_podiums_own,
    look,
    refs_of,
    watched_files,
)

_COPIES = "turn"
_LARGEST_COPY_BYTES = 20_000_000


class Turns:
    """The two ends of an agent's turn in one workspace."""

    def __init__(
        self, git: Git, records: Records, clock: Clock, record: WorkspaceRecord, *, confined: bool
    ) -> None:
        self._git = git
        self._records = records
        self._clock = clock
        self._record = record
        self._confined = confined
        self._moved_before: int | None = None

    async def begin(self) -> RefsSeen:
        self._moved_before = await asyncio.to_thread(moved, Path(self._record.private))
        if not self._confined:
            await asyncio.to_thread(self._copy_files)
        return await look(self._git, self._record)

    async def end(self, seen: RefsSeen) -> TurnEnd:
        """Only when all processes of the agent are dead.

        Files go back before git is asked for anything: with broken settings it would not answer.
        """
        await asyncio.to_thread(mend_private_dir, self._record)
        before = await asyncio.to_thread(self._pointer_back)
        others = await asyncio.to_thread(self._others)
        files, heads = await asyncio.to_thread(self._files_and_heads)
        found = [name for name in differences(seen.files, files) if not _is_in(name, others)]
        found += [
            name
            for name in differences(_heads(seen.refs), heads)
            if heads.get(name) != others.get(name)
        ]
        violations: list[Violation] = []
        if not self._confined:
            was, now = {**seen.files, **_heads(seen.refs)}, {**files, **heads}
            violations = [
                await asyncio.to_thread(self._file_back, each, was, now) for each in found
            ]
        refs = await self._refs()
        moved_refs = [
            name
            for name in differences(_others_than_heads(seen.refs), refs)
            if not is_podiums_own(name, seen) and refs.get(name, "") != others.get(name)
        ]
        if not self._confined:
            violations += [await self._ref_back(each, seen.refs, refs) for each in moved_refs]
        # What may raise comes last, so that nothing an agent leaves behind keeps the rest from being done.
        await tidy(self._git, self._record)
        await asyncio.to_thread(confinement_of, self._record)
        told = [_told(name) for name in (*moved_refs, *found)] if self._confined else []
        return TurnEnd(
            violations=tuple(violations),
            moved_away=await asyncio.to_thread(moved_since, Path(self._record.private), before),
            changed_meanwhile=tuple(told),
            seen=RefsSeen(refs={**refs, **heads}, files=files),
        )

    def _pointer_back(self) -> int:
        """How much had been moved away when the turn began."""
        before = self._moved_before
        if before is None:
            before = moved(Path(self._record.private))
        # Before anything else, and again when all else is done: then it is told why it cannot be.
        with suppress(WorkspaceTampered, OSError):
            put_pointer_back(self._record)
        return before

    def _files_and_heads(self) -> tuple[dict[str, str], dict[str, str]]:
        return files_of(self._record), heads_of(self._record)

    async def _refs(self) -> dict[str, str]:
        try:
            return await refs_of(self._git, self._record)
        except GitFailed as failed:
            copies = Path(self._record.private, _COPIES, "before")
            raise WorkspaceTampered(
                f"git cannot read the refs of {self._record.git_dir!r} any more: {failed.stderr[-300:]}; "
                f"without confinement, copies from before the turn are in {str(copies)!r}"
            ) from failed

    async def _ref_back(self, name: str, was: dict[str, str], now: dict[str, str]) -> Violation:
        before, after = was.get(name, ""), now.get(name, "")
        folder = f"refs/podium/violations/{self._record.id}/{int(self._clock.now().timestamp())}"
        try:
            await put_back_ref(self._git, self._record.git_dir, name, before, after, folder)
            restored = True
        except NotPossibleNow:
            restored = False
        return Violation(what=_told(name), before=before, after=after, restored=restored)

    def _file_back(self, name: str, was: dict[str, str], now: dict[str, str]) -> Violation:
        private = Path(self._record.private, _COPIES)
        try:
            put_back_file(Path(self._record.git_dir), private / "before", private / "after", name)
            restored = True
        except OSError:
            restored = False
        before, after = was.get(name, ""), now.get(name, "")
        return Violation(what=_told(name), before=before, after=after, restored=restored)

    def _copy_files(self) -> None:
        """What is put back after the turn, kept from before it."""
        git_dir, copies = Path(self._record.git_dir), Path(self._record.private, _COPIES, "before")
        shutil.rmtree(copies, ignore_errors=True)
        for path in (
            *watched_files(git_dir),
            *(git_dir / name for name in (*heads_of(self._record), "packed-refs")),
        ):
            if path.is_symlink() or (path.is_file() and path.stat().st_size <= _LARGEST_COPY_BYTES):
                target = copies / path.relative_to(git_dir)
                make_private_folder(target.parent)
                shutil.copy2(path, target, follow_symlinks=False)

    def _others(self) -> dict[str, str]:
        """What other workspaces' branches were moved to by Podium itself, and their folders."""
        held = [self._records.of(each) for each in self._records.ids() if each != self._record.id]
        found: dict[str, str] = {}
        for record in held:
            if record is not None and record.git_dir == self._record.git_dir:
                found[record.branch] = self._records.delivered(record)
                found[f"worktrees/{record.admin}/"] = ""
                found[f"worktrees/{record.admin}/HEAD"] = f"ref: {record.branch}"
        return found


def _is_in(name: str, others: dict[str, str]) -> bool:
    return any(place.endswith("/") and name.startswith(place) for place in others)


def _is_head(name: str) -> bool:
    return name == "HEAD" or name.startswith("worktrees/")


def _heads(refs: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in refs.items() if _is_head(name)}


def _others_than_heads(refs: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in refs.items() if not _is_head(name)}


def _told(name: str) -> str:
    folder, _, rest = name.partition("/")
    if folder == "hooks" and rest:
        return f"hook {rest}"
    return f"ref {name}" if name == "HEAD" or name.startswith("refs/") else name
