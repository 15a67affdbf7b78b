"""Records of workspaces out of the agent's reach, of removed ones, and claims on branches and folders."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from pydantic import ValidationError

from podium.core.errors import AmbiguousId, LockHeld, PodiumError, UnknownId, WorkspaceTampered
from podium.core.model import FrozenModel, UtcDatetime, json_of
from podium.core.workspaces import WorkspaceRecord
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write
from podium.platform.file_lock import take_file_lock, take_file_lock_async

RECORD = "record.json"
CREATING = "creating.json"
"""Stands in place of the record while a workspace is being made; it says what to undo."""
REMOVING = "removing.json"
"""Stands beside the record while a workspace is being removed; it says what to finish."""
DELIVERED = "delivered"
LOCK = "lock"

_ID = re.compile(r"[a-z]+_[0-9a-f]{32}")
_MAX_RECORD_BYTES = 1_000_000
_PATIENCE_SECONDS = 0.2


class WorkspaceRecords:
    """The folder of all workspaces of a user, one private folder for each."""

    def __init__(self, state_home: Path) -> None:
        self.folder = state_home / "workspaces"

    def private(self, workspace_id: str) -> Path:
        """The private folder of a workspace, which need not exist."""
        if not _ID.fullmatch(workspace_id):
            raise UnknownId("workspace", workspace_id)
        return self.folder / workspace_id

    def ids(self) -> list[str]:
        """List all workspaces with a folder, oldest first: finished, half made and half removed."""
        try:
            names = [entry.name for entry in os.scandir(self.folder) if entry.is_dir()]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if _ID.fullmatch(name))

    def find(self, name: str) -> str:
        """The whole id for one that a person typed: whole, a beginning of its tail, or the task's name."""
        ids = self.ids()
        if name in ids:
            return name
        fits = [id_ for id_ in ids if len(name) >= 4 and id_[-12:].startswith(name)]
        fits = fits or [id_ for id_ in ids if (held := self.of(id_)) and held.task == name]
        if not fits:
            raise UnknownId("workspace", name)
        if len(fits) > 1:
            raise AmbiguousId("workspace", name, fits)
        return fits[0]

    def read(self, workspace_id: str) -> WorkspaceRecord:
        """The record of a finished workspace. Raises `UnknownId`, also for one that is half made."""
        record = self._parsed(self.private(workspace_id) / RECORD)
        if record is None:
            raise UnknownId("workspace", workspace_id)
        return record

    def creating(self, workspace_id: str) -> WorkspaceRecord | None:
        """Return the record of an unfinished creation. None: it was finished."""
        if (self.private(workspace_id) / RECORD).exists():
            return None
        return self._parsed(self.private(workspace_id) / CREATING)

    def removing(self, workspace_id: str) -> WorkspaceRecord | None:
        """Return the record of an unfinished removal."""
        return self._parsed(self.private(workspace_id) / REMOVING)

    def of(self, workspace_id: str) -> WorkspaceRecord | None:
        """Return the record of any state: finished, half made or half removed. None: an empty folder."""
        private = self.private(workspace_id)
        for name in (RECORD, REMOVING, CREATING):
            if (record := self._parsed(private / name)) is not None:
                return record
        return None

    def finished(self, workspace_id: str) -> WorkspaceRecord | None:
        """The record of one that is whole."""
        return self._parsed(self.private(workspace_id) / RECORD)

    def begin(self, record: WorkspaceRecord) -> None:
        """Make the private folder and note what is about to be made."""
        private = self.private(record.id)
        make_private_folder(self.folder)
        private.mkdir(mode=0o700)
        atomic_write(private / CREATING, json_of(record).encode())

    def finish(self, record: WorkspaceRecord) -> None:
        """From here on the workspace exists."""
        self.write(record)
        (self.private(record.id) / CREATING).unlink(missing_ok=True)

    def write(self, record: WorkspaceRecord) -> None:
        """Replace the record, whole or not at all."""
        atomic_write(self.private(record.id) / RECORD, json_of(record).encode())

    def note_removal(self, record: WorkspaceRecord) -> None:
        """From here on the workspace is to be removed, and whoever finds it may finish that."""
        atomic_write(self.private(record.id) / REMOVING, json_of(record).encode())

    def delivered(self, record: WorkspaceRecord) -> str:
        """The commit that came back last; the base when none did."""
        try:
            text = (self.private(record.id) / DELIVERED).read_text("ascii").strip()
        except FileNotFoundError:
            return record.base
        return text or record.base

    def note_delivered(self, record: WorkspaceRecord, commit: str) -> None:
        atomic_write(self.private(record.id) / DELIVERED, commit.encode() + b"\n")

    @asynccontextmanager
    async def repository_lock(self, git_dir: str, seconds: float = 120.0) -> AsyncIterator[None]:
        """One creation, delivery or removal at a time for each repository. Raises `LockHeld` after a while."""
        locks = self.folder / "locks"
        make_private_folder(locks)
        name = hashlib.sha256(os.fsencode(git_dir)).hexdigest()[:32]
        try:
            handle = await take_file_lock_async(locks / f"{name}.lock", seconds=seconds)
        except BlockingIOError:
            raise LockHeld(f"another Podium is using {git_dir!r}; wait until it is done") from None
        try:
            yield
        finally:
            os.close(handle)

    @contextmanager
    def workspace_lock(
        self, workspace_id: str, patience_seconds: float = _PATIENCE_SECONDS
    ) -> Iterator[None]:
        """Held while somebody works in the workspace. Raises `LockHeld`; a dead holder holds nothing.

        The patience is for those who only look whether it is held.
        """
        path = self.private(workspace_id) / LOCK
        if not path.parent.is_dir():
            raise UnknownId("workspace", workspace_id)
        try:
            handle = take_file_lock(path, seconds=patience_seconds)
        except BlockingIOError:
            raise LockHeld(f"a run is using workspace {workspace_id}; wait until it ends") from None
        try:
            yield
        finally:
            os.close(handle)

    def in_use(self, workspace_id: str) -> bool:
        """Check whether somebody holds its lock."""
        try:
            with self.workspace_lock(workspace_id, patience_seconds=0.0):
                return False
        except LockHeld:
            return True

    def _parsed(self, path: Path) -> WorkspaceRecord | None:
        try:
            with path.open("rb") as file:
                content = file.read(_MAX_RECORD_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return WorkspaceRecord.model_validate(json.loads(content))
        except (ValueError, ValidationError):
            raise WorkspaceTampered(
                f"{str(path)!r} is not a valid record of a workspace; check it and the worktree it names, save what you "
                "need, then delete its folder"
            ) from None


_MERGED_BASES = "merged-bases"
"""In a workspace's private folder, which no agent sees: commits of the remote's base branch that Podium merged."""


def merged_bases(record: WorkspaceRecord) -> list[str]:
    try:
        return Path(record.private, _MERGED_BASES).read_text().split()
    except FileNotFoundError:
        return []


def note_merged_base(record: WorkspaceRecord, commit: str) -> None:
    noted = dict.fromkeys([*merged_bases(record), commit])
    atomic_write(Path(record.private, _MERGED_BASES), "\n".join(noted).encode())


_MAX_BYTES_SIZE = 1_000_000


class RemovalRecord(FrozenModel):
    """A workspace that is no more."""

    record: WorkspaceRecord
    removed_at: UtcDatetime
    because: str
    delivered: str = ""
    """The commit that came back last; empty when none did, or when that was not noted."""


class RemovedWorkspaces:
    """One small file for each workspace that was removed."""

    def __init__(self, records: WorkspaceRecords) -> None:
        self._folder = records.folder / "removed"

    def remember(self, memory: RemovalRecord) -> None:
        """Write it down. On return it survives a crash."""
        make_private_folder(self._folder)
        atomic_write(self._file(memory.record.id), json_of(memory).encode())

    def listed(self) -> list[RemovalRecord]:
        """All of them, oldest first. A file that cannot be read hides no other."""
        if not self._folder.is_dir():
            return []
        records = [_read(file) for file in sorted(self._folder.glob("*.json"))]
        return [memory for memory in records if memory is not None]

    def find(self, workspace_id: str) -> RemovalRecord | None:
        return next((memory for memory in self.listed() if memory.record.id == workspace_id), None)

    def forget(self, workspace_id: str) -> None:
        self._file(workspace_id).unlink(missing_ok=True)

    def _file(self, workspace_id: str) -> Path:
        return self._folder / f"{workspace_id}.json"


def _read(file: Path) -> RemovalRecord | None:
    try:
        with file.open("rb") as opened:
            return RemovalRecord.model_validate(json.loads(opened.read(_MAX_BYTES_SIZE)))
    except (OSError, ValueError, ValidationError):
        return None


class RecordLookup:
    """Finds the workspace that claims a folder or branch: finished, half made or removed."""

    def __init__(self, records: WorkspaceRecords) -> None:
        self._records = records

    def of_folder(self, folder: str) -> WorkspaceRecord | None:
        """The workspace whose worktree is there, or was about to be."""
        return next((record for record in self._readable() if record.path == folder), None)

    def describe_folder(self, record: WorkspaceRecord) -> str:
        """Describe the workspace that owns a folder, and what to do."""
        if self._records.finished(record.id) is None or self._records.removing(record.id):
            return (
                f"it is left over from the workspace {record.task!r} of {record.repository!r}, which was not completely "
                "created or removed; run `podium workspaces gc` to remove it"
            )
        return (
            f"it belongs to the workspace {record.task!r} of {record.repository!r}; name another task, or run "
            f"`podium workspaces gc {record.task}` there, which removes it when its work is safe"
        )

    def describe_branch(self, git_dir: str, branch: str) -> str:
        """Describe the origin of a branch and what to do; without a workspace only the latter."""
        short = branch.removeprefix("refs/heads/")
        another = "name another branch with --branch"
        for record in self._readable():
            if (record.git_dir, record.branch) == (git_dir, branch):
                return f"it belongs to the workspace {record.task!r}; {another}"
        for memory in reversed(RemovedWorkspaces(self._records).listed()):
            if (memory.record.git_dir, memory.record.branch) == (git_dir, branch):
                made, gone = memory.record.created_at, memory.removed_at
                return (
                    f"it was created on {made:%Y-%m-%d %H:%M} by a workspace that was removed on "
                    f"{gone:%Y-%m-%d %H:%M}; {another}, or delete it with `git branch -d {short}`, which fails if it is not merged"
                )
        return f"{another}, or delete it if its work is merged"

    def _readable(self) -> list[WorkspaceRecord]:
        records = []
        for id_ in self._records.ids():
            try:
                record = self._records.of(id_)
            except PodiumError:
                continue  # it cannot be read: `podium workspaces list` tells
            if record is not None:
                records.append(record)
        return records
