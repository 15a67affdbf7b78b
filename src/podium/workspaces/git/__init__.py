"""Workspaces in git repositories."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.workspaces.git.folder_grounds import FolderGrounds
    from podium.workspaces.git.folder_restoring import FolderRestoring
    from podium.workspaces.git.workspaces import GitWorkspaces

__all__ = [
    "FolderGrounds",
    "FolderRestoring",
    "GitWorkspaces",
]

export_lazily(
    __name__,
    {
        "FolderGrounds": "folder_grounds",
        "FolderRestoring": "folder_restoring",
        "GitWorkspaces": "workspaces",
    },
)
