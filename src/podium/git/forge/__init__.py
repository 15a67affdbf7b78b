"""The forge: preflight, push, pull request; GitHub, or a file that stands for it."""

from podium.git.forge.repository_forge import ForgeSettings, RepositoryForge

__all__ = ["ForgeSettings", "RepositoryForge"]
