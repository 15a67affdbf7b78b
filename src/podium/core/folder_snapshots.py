"""Snapshot of a working folder: the folder, its changes, and what a restore puts back."""

from __future__ import annotations

from podium.core.model import FrozenModel, NonEmpty


class WorkingFolder(FrozenModel):
    """The folder that a run's tools work in."""

    root: NonEmpty
    """The working folder: the job's root, or a copy of it."""
    is_copy: bool = False
    snapshot: str = ""
    """The snapshot that `podium playbook restore` puts back. Empty: nothing could be kept, and `why_none` says why."""
    why_none: str = ""
    closed: tuple[str, ...] = ()
    """Places that nobody may change, the outermost, as they were there."""
    left_out: tuple[str, ...] = ()
    """Descriptions of what was not kept: large files that git ignores, and what may not be read."""


class FolderChanges(FrozenModel):
    """Changes that a run made to its folder."""

    paths: tuple[str, ...] = ()
    """From the root on, in order; without what the folder's own git ignores."""
    ignored: tuple[str, ...] = ()
    """The changed paths that it does ignore, such as caches."""
    trespasses: tuple[str, ...] = ()
    """Changed or planted paths outside its permission: a program found a way that no call named."""
    diff: str = ""
    """Of `paths`, as git shows it, bounded."""
    unknown: str = ""
    """The reason why it could not be found out; empty when it could."""


class FolderRestore(FrozenModel):
    """Changes that restoring a folder makes, or has made. Paths are from the root on."""

    root: NonEmpty
    written: tuple[str, ...] = ()
    """Brought back, or brought back to what they were."""
    removed: tuple[str, ...] = ()
    """Not there at that time."""
    conflicts: tuple[str, ...] = ()
    """Those of them that somebody changed after Podium had let go of the folder."""
    left_out: tuple[str, ...] = ()
    """Descriptions of what was not kept and stays as it is."""
    seen: str = ""
    """Stands for what the folder holds now."""
    kept: str = ""
    """The snapshot of that, once it was put back; empty before."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted({*self.written, *self.removed}))
