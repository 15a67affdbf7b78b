"""Snapshot of a working folder: the folder, its changes, and what a restore puts back."""

from __future__ import annotations

from podium.core.model import FrozenModel, NonEmpty


class WorkingFolder(FrozenModel):
    """The folder that a run's tools work in."""

    root: NonEmpty
    """Where it works: the job's root, or a copy of it."""
    is_copy: bool = False
    snapshot: str = ""
    """What `podium playbook restore` puts back. Empty: nothing could be kept, and `why_none` says why."""
    why_none: str = ""
    closed: tuple[str, ...] = ()
    """Places that nobody may change, the outermost, as they were there."""
    left_out: tuple[str, ...] = ()
    """What was not kept, in words: large files that git ignores, and what may not be read."""


class FolderChanges(FrozenModel):
    """What a run left different from what it found."""

    paths: tuple[str, ...] = ()
    """From the root on, in order; without what the folder's own git ignores."""
    ignored: tuple[str, ...] = ()
    """The changed paths that it does ignore, such as caches."""
    trespasses: tuple[str, ...] = ()
    """What should not have been changed, or planted, and was: a program found a way that no call named."""
    diff: str = ""
    """As git shows it, bounded."""
    unknown: str = ""
    """Why it could not be found out; empty when it could."""


class FolderRestore(FrozenModel):
    """What putting a folder back to what it was changes, or has changed. Paths are from the root on."""

    root: NonEmpty
    written: tuple[str, ...] = ()
    """Brought back, or brought back to what they were."""
    removed: tuple[str, ...] = ()
    """Not there at that time."""
    conflicts: tuple[str, ...] = ()
    """Those of them that somebody changed after Podium had let go of the folder."""
    left_out: tuple[str, ...] = ()
    """What was not kept and stays as it is, in words."""
    seen: str = ""
    """Stands for what the folder holds now."""
    kept: str = ""
    """Where that is kept, once it was put back; empty before."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted({*self.written, *self.removed}))
