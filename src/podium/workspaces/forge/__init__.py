"""The forge: preflight, push, pull request; GitHub, or a file that stands for it."""

from podium.workspaces.forge.forge import ForgeSettings, RepositoryForge

__all__ = ["ForgeSettings", "RepositoryForge"]
