"""Primitives of the operating system that every package above may use."""

from podium.platform.folders import (
    hold_folder,
    is_locked,
    is_wide,
    locked_folder,
    make_private_folder,
    shipped_folder,
    tighten,
)

__all__ = [
    "hold_folder",
    "is_locked",
    "is_wide",
    "locked_folder",
    "make_private_folder",
    "shipped_folder",
    "tighten",
]
