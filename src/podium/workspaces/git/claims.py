"""Whose a branch or a folder is that stands in the way of a new workspace."""

from __future__ import annotations

from podium.domain.errors import PodiumError
from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.records import Records
from podium.workspaces.git.removed import RemovedOnes


class Claims:
    """Asks what is known of workspaces: whole ones, half made ones and those that are no more."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def of_folder(self, folder: str) -> WorkspaceRecord | None:
        """The workspace whose worktree is there, or was about to be."""
        return next((each for each in self._known() if each.path == folder), None)

    def folder_words(self, record: WorkspaceRecord) -> str:
        """Whose a folder is, and what to do."""
        if self._records.finished(record.id) is None or self._records.removing(record.id):
            return (
                f"it is left of the workspace {record.task!r} of {record.repository!r}, which was not wholly "
                "made or removed; `podium workspaces gc` clears that away"
            )
        return (
            f"it is the workspace {record.task!r} of {record.repository!r}; name another task, or "
            f"let `podium workspaces gc {record.task}` remove it there when its work is safe"
        )

    def branch_words(self, git_dir: str, branch: str) -> str:
        """Where a branch comes from, with what to do; of one that no workspace made only the latter."""
        short = branch.removeprefix("refs/heads/")
        another = "name another with --branch"
        for record in self._known():
            if (record.git_dir, record.branch) == (git_dir, branch):
                return f"it is that of the workspace {record.task!r}; {another}"
        for memory in reversed(RemovedOnes(self._records).listed()):
            if (memory.record.git_dir, memory.record.branch) == (git_dir, branch):
                made, gone = memory.record.created_at, memory.removed_at
                return (
                    f"it is there since {made:%Y-%m-%d %H:%M} by a workspace that was removed on "
                    f"{gone:%Y-%m-%d %H:%M}; {another}, or delete it with `git branch -d {short}`, which "
                    "refuses when it is not merged"
                )
        return f"{another}, or delete it when its work is merged"

    def _known(self) -> list[WorkspaceRecord]:
        found = []
        for each in self._records.ids():
            try:
                record = self._records.of(each)
            except PodiumError:
                continue  # it cannot be read: `podium workspaces list` tells
            if record is not None:
                found.append(record)
        return found
