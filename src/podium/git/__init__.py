"""Workspaces in git repositories."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.git.folder_restore import FolderRestoring
    from podium.git.working_folder import FolderGrounds
    from podium.git.workspace_registry import GitWorkspaces

__all__ = [
    "FolderGrounds",
    "FolderRestoring",
    "GitWorkspaces",
]

export_lazily(
    __name__,
    {
        "FolderGrounds": "working_folder",
        "FolderRestoring": "folder_restore",
        "GitWorkspaces": "workspace_registry",
    },
)
