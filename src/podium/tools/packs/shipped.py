"""Location of the packs that come with Podium."""

from __future__ import annotations

from pathlib import Path

from podium.platform import shipped_folder


def shipped_packs() -> Path:
    """The folder of the packs that come with Podium: in the package, or beside it in a checkout."""
    return shipped_folder("packs")


def is_shipped(folder: Path) -> bool:
    """Check that a folder lies there. Whoever can write there could change Podium itself."""
    return folder.resolve().is_relative_to(shipped_packs().resolve())
