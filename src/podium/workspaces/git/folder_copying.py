"""A private copy of a folder, from which nothing leads back: for work that is thrown away."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from podium.domain.errors import BadInput, NotPossibleNow
from podium.platform import make_private_folder
from podium.workspaces.git.clearing import clear_away
from podium.workspaces.git.folder_copied import copy_folder, copy_repository
from podium.workspaces.git.folder_walking import (
    DOT_GIT,
    STATE,
    GroundLimits,
    Seen,
    Walk,
    identity_of,
)
from podium.workspaces.git.git import Git

_DRAFT = "draft-"
_DROPPED_SETTINGS = ("remote.", "include.", "includeif.")


class FolderCopies:
    """Makes and removes copies, one for each run."""

    def __init__(self, git: Git, folder: Path, limits: GroundLimits) -> None:
        self._git = git
        self._folder = folder
        self._place = folder / "copies"
        self._limits = limits

    async def make(self, run_id: str, root: Path) -> Path:
        """The run's copy, made whole or not at all. Raises `NotPossibleNow` that says why there is none."""
        ready = self._place / run_id / (root.name or "root")
        if os.path.lexists(ready):  # noqa: ASYNC240 — one look
            return ready
        draft = self._place / f"{_DRAFT}{run_id}"
        try:
            await asyncio.to_thread(self._make_room, draft)
            await self._fill(root, draft / ready.name, ready)
            await asyncio.to_thread(draft.rename, ready.parent)
        except OSError as error:
            await asyncio.to_thread(clear_away, draft)
            raise NotPossibleNow(
                f"no copy of {str(root)!r} can be made: {error.strerror} ({error.filename!r}); make room, or run it "
                "without --dry-run"
            ) from error
        except NotPossibleNow:
            await asyncio.to_thread(clear_away, draft)
            raise
        return ready

    async def remove(self, copy: Path) -> str:
        """Remove the copy at this place; gives the run that it was made for."""
        run_id = copy.parent.name
        if copy.parent.parent != self._place or not run_id or run_id.startswith(_DRAFT):
            raise BadInput(f"{str(copy)!r} is no copy that Podium made, so it is left as it is")
        await self.drop(run_id)
        return run_id

    async def drop(self, run_id: str) -> None:
        """Remove a run's copy, or what a kill left of one."""
        for name in (run_id, f"{_DRAFT}{run_id}"):
            await asyncio.to_thread(clear_away, self._place / name)

    def runs(self) -> list[str]:
        """All runs that a copy was made for, or begun."""
        names = os.listdir(self._place) if self._place.is_dir() else []  # noqa: PTH208 — names alone
        return sorted({name.removeprefix(_DRAFT) for name in names})

    async def _fill(self, root: Path, target: Path, ready: Path) -> None:
        seen = await asyncio.to_thread(self._seen, root, root)
        settings = await asyncio.to_thread(copy_folder, root, target, seen, ready)
        own = root / DOT_GIT
        if own.is_symlink() or own.is_file():
            settings += await self._bring_repository(root, target)
        for config in settings:
            await self._clean(config)

    async def _bring_repository(self, root: Path, target: Path) -> list[Path]:
        """A linked worktree has its repository elsewhere: the copy gets one of its own."""
        words = ("rev-parse", "--path-format=absolute", "--git-common-dir", "--absolute-git-dir")
        common, admin = map(Path, (await self._git.text(*words, cwd=str(root))).split("\n"))
        seen = await asyncio.to_thread(self._seen, common, root)
        return await asyncio.to_thread(copy_repository, common, admin, target / DOT_GIT, seen)

    async def _clean(self, config: Path) -> None:
        """No setting of the copy's repository leads to another one."""
        here = ("config", "--file", str(config), "--no-includes")
        listed = await self._git.run(*here, "--name-only", "--list", "-z")
        keys = dict.fromkeys(listed.stdout.decode(errors="surrogateescape").split("\0"))
        sections = [key.rpartition(".")[0] for key in keys if key.startswith(_DROPPED_SETTINGS)]
        for section in dict.fromkeys(sections):
            await self._git.run("config", "--file", str(config), "--remove-section", section)
        if "core.worktree" in keys:
            await self._git.run("config", "--file", str(config), "--unset-all", "core.worktree")

    def _make_room(self, draft: Path) -> None:
        for folder in (self._folder, self._place):
            make_private_folder(folder)
        clear_away(draft)
        draft.mkdir(mode=0o700)

    def _seen(self, folder: Path, root: Path) -> Seen:
        walk = Walk(
            most_files=self._limits.copied_files,
            most_bytes=self._limits.copied_bytes,
            never=(STATE,),
            own=identity_of(self._folder),
        )
        try:
            seen = walk.through(folder)
        except NotPossibleNow as error:
            raise NotPossibleNow(
                f"no copy of {str(root)!r} can be made: {error}; name a smaller folder, or run it without --dry-run"
            ) from error
        if seen.left_out:
            raise NotPossibleNow(
                f"no copy of {str(root)!r} can be made: {seen.left_out[0]}; give yourself the right to read it"
            )
        return seen
