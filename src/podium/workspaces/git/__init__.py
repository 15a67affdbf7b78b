"""Workspaces in git repositories."""

from podium.workspaces.git.folder_grounds import FolderGrounds
from podium.workspaces.git.folder_restoring import FolderRestoring
from podium.workspaces.git.workspaces import GitWorkspaces

__all__ = ["FolderGrounds", "FolderRestoring", "GitWorkspaces"]
