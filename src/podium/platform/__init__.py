"""Primitives of the operating system that every package above may use."""

from podium.platform.private_folders import is_wide, locked_folder, make_private_folder, tighten

__all__ = ["is_wide", "locked_folder", "make_private_folder", "tighten"]
