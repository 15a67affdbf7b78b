"""Workspaces in git repositories."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.git.working_folder import FolderRestorer, GitWorkingFolders
    from podium.git.workspace_registry import GitWorkspaces

__all__ = [
    "FolderRestorer",
    "GitWorkingFolders",
    "GitWorkspaces",
]

export_lazily(
    __name__,
    {
        "GitWorkingFolders": "working_folder",
        "FolderRestorer": "working_folder",
        "GitWorkspaces": "workspace_registry",
    },
)
