"""Folders of the repository that are part of the installed package."""

from __future__ import annotations

from pathlib import Path

import podium


def shipped_folder(name: str) -> Path:
    """The folder with this name: in the package where Podium is installed, at the root of a checkout else."""
    package = Path(podium.__file__).parent
    installed = package / name
    return installed if installed.is_dir() else package.parents[1] / name
