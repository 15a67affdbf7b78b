"""Patches read: what they say of which file. Where it fits is looked up elsewhere."""

from podium.tools.patches.nouns import FilePatch, PatchUnreadable
from podium.tools.patches.reading import read_patch

__all__ = ["FilePatch", "PatchUnreadable", "read_patch"]
