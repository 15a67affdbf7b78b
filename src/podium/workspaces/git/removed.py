"""What is remembered of workspaces that are no more: enough to find their snapshots again."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from podium.domain.model import Moment, Noun, json_of
from podium.domain.workspaces import WorkspaceRecord
from podium.platform import make_private_folder
from podium.workspaces.git.records import Records, write_whole

_LARGEST_BYTES = 1_000_000


class Memory(Noun):
    """A workspace that is no more."""

    record: WorkspaceRecord
    removed_at: Moment
    because: str
    delivered: str = ""
    """The commit that came back last; empty when none did, or when that was not noted."""


class RemovedOnes:
    """One small file for each workspace that was removed."""

    def __init__(self, records: Records) -> None:
        self._folder = records.folder / "removed"

    def remember(self, memory: Memory) -> None:
        """Write it down. On return it survives a crash."""
        make_private_folder(self._folder)
        write_whole(self._file(memory.record.id), json_of(memory).encode())

    def listed(self) -> list[Memory]:
        """All of them, oldest first. A file that cannot be read hides no other."""
        if not self._folder.is_dir():
            return []
        found = [_read(file) for file in sorted(self._folder.glob("*.json"))]
        return [memory for memory in found if memory is not None]

    def find(self, workspace_id: str) -> Memory | None:
        return next((each for each in self.listed() if each.record.id == workspace_id), None)

    def forget(self, workspace_id: str) -> None:
        self._file(workspace_id).unlink(missing_ok=True)

    def _file(self, workspace_id: str) -> Path:
        return self._folder / f"{workspace_id}.json"


def _read(file: Path) -> Memory | None:
    try:
        with file.open("rb") as opened:
            return Memory.model_validate(json.loads(opened.read(_LARGEST_BYTES)))
    except (OSError, ValueError, ValidationError):
        return None
