"""Workspaces in git repositories."""

from podium.workspaces.git.workspaces import GitWorkspaces

__all__ = ["GitWorkspaces"]
