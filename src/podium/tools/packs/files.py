"""All files of a pack, by their hashes: what an approval of a plan is bound to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from podium.domain.errors import PackFault, PackInvalid, ToolBroke
from podium.domain.gating import digest_of

_LEFT_OUT = frozenset({"__pycache__", ".git"})
"""Never read: code is compiled from its source."""
MOST_FILES = 10_000
MOST_BYTES = 200_000_000


@dataclass(frozen=True)
class PackFiles:
    """The files of a pack as they were loaded."""

    folder: Path
    digest: str

    def manifest(self) -> dict[str, str]:
        """Path → SHA-256 of every file. Raises `ToolBroke` when they are not what was loaded."""
        try:
            found = manifest_of(self.folder)
        except PackInvalid as error:
            raise ToolBroke(f"the pack's files cannot be used any more: {error}") from None
        if digest_of(found) != self.digest:
            raise ToolBroke(
                f"files of the pack in {str(self.folder)!r} have changed since it was loaded, and nothing "
                "of them was run; plan again, and start workers again"
            )
        return found


def pack_digest(folder: Path) -> str:
    """Digest of path and content of every file in the folder. Raises `PackInvalid`."""
    return digest_of(manifest_of(folder))


def manifest_of(folder: Path) -> dict[str, str]:
    """Path from the folder → SHA-256 of every file. Raises `PackInvalid` for what leads out of it."""
    real = folder.resolve()
    hashes: dict[str, str] = {}
    size = 0
    for path in _files(real):
        name = path.relative_to(real).as_posix()
        try:
            if not path.resolve().is_relative_to(real) or not path.is_file():
                raise _invalid(folder, name, "leads out of the pack's folder or is no plain file")
            size += path.stat().st_size
            if len(hashes) >= MOST_FILES or size > MOST_BYTES:
                most = f"{MOST_FILES} files and {MOST_BYTES} bytes"
                raise _invalid(folder, "", f"is too large for a pack: at most {most}")
            with path.open("rb") as file:
                hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _invalid(folder, name, f"cannot be read: {error.strerror or error}") from None
    return hashes


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        # A link to a folder is not walked into, so it is looked at like a file.
        linked = [name for name in folders if (Path(place) / name).is_symlink()]
        folders[:] = sorted(
            name for name in folders if name not in _LEFT_OUT and name not in linked
        )
        for name in sorted((*names, *linked)):
            yield Path(place) / name


def _invalid(folder: Path, name: str, problem: str) -> PackInvalid:
    return PackInvalid([PackFault(str(folder / name), "", problem)])
