"""Primitives of the operating system that every package above may use."""

from podium.platform.folders import (
    is_wide,
    make_private_folder,
    shipped_folder,
    tighten,
)

__all__ = [
    "is_wide",
    "make_private_folder",
    "shipped_folder",
    "tighten",
]
