"""Looking through folders of any depth: `os.walk` calls itself for each level, and ends at a thousand of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def entries_within(*folders: Path) -> Iterator[os.DirEntry[str]]:
    """Whatever lies in them at any depth. No link is followed; what cannot be looked into has nothing."""
    waiting = [os.fspath(folder) for folder in folders]
    while waiting:
        for entry in _entries(waiting.pop()):
            if _is_folder(entry):
                waiting.append(entry.path)
            yield entry


def files_within(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Those that are no folders: files, links, pipes and the like."""
    return (entry for entry in entries_within(folder) if not _is_folder(entry))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Read at once: however deep the walk goes, no more than one folder is open."""
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
