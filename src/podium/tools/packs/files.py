"""Packs on disk: found by path or name, newly made, and all files of one by their hashes, which trust and approvals are bound to."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from podium.core.decisions import digest_of
from podium.core.errors import BadInput, PackInvalid, PackProblem, ToolBroke
from podium.platform import shipped_folder

REGISTRY_FILE = "tools.registry.json"
CORPUS_FILE = "corpus.jsonl"
"""Sentences of a pack's users with the right readings. No pack needs one."""


def shipped_packs() -> Path:
    """The folder of the packs that come with Podium: in the package, or beside it in a checkout."""
    return shipped_folder("packs")


def is_shipped(folder: Path) -> bool:
    """Check that a folder lies there. Whoever can write there could change Podium itself."""
    return folder.resolve().is_relative_to(shipped_packs().resolve())


_MAX_EXCERPT_CHARACTERS = 200
Origin = Literal["project", "shipped"]


class PackFolder(NamedTuple):
    """A folder with a registry, which was not looked into."""

    name: str
    folder: Path
    origin: Origin


def list_packs(*, project: Path, shipped: Path) -> list[PackFolder]:
    """Packs that have a name here; the project's own come before shipped ones of the same name."""
    packs: dict[str, PackFolder] = {}
    roots: tuple[tuple[Origin, Path], ...] = (("project", project / "packs"), ("shipped", shipped))
    for origin, root in roots:
        for folder in sorted(root.iterdir()) if root.is_dir() else ():
            if _is_pack(folder):
                packs.setdefault(folder.name, PackFolder(folder.name, folder, origin))
    return list(packs.values())


def find_pack(name_or_dir: str | Path, *, project: Path, shipped: Path) -> Path:
    """The pack's folder: a path that has a registry, else a name. Raises `BadInput` with the names."""
    path = Path(name_or_dir)
    if str(name_or_dir) and _is_pack(path):
        return path.resolve()
    folders = {pack.name: pack.folder for pack in list_packs(project=project, shipped=shipped)}
    if str(name_or_dir) in folders:
        return folders[str(name_or_dir)].resolve()
    quoted = repr(str(name_or_dir)[:_MAX_EXCERPT_CHARACTERS])
    if "/" in str(name_or_dir) and _is_there(path):
        raise BadInput(f"{quoted} is not a pack: it has no {REGISTRY_FILE}")
    names = ", ".join(sorted(folders)) or "none"
    raise BadInput(f"unknown pack {quoted}; packs: {names}")


def _is_pack(folder: Path) -> bool:
    return _is_there(folder / REGISTRY_FILE)


def _is_there(path: Path) -> bool:
    """False also for what can be no path at all."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_PLACEHOLDER = "PACK_NAME"
FILES = ("tools.registry.json", "handlers.py")


def write_new_pack(folder: Path) -> list[str]:
    """Write a pack, named after its folder, that loads and works. Gives the names of its files.

    Raises `BadInput` when something is there already, or the name is none for a pack.
    """
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} is not a valid pack name; use lower-case letters, digits, `_` and `-`, beginning with a letter"
        )
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise BadInput(f"{str(folder)!r} already exists; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        template = resources.files("podium.tools.packs") / "sample" / f"{file}.txt"
        text = template.read_text("utf-8").replace(_PLACEHOLDER, name)
        (folder / file).write_text(text, encoding="utf-8")
    return list(FILES)


_COMPILED = "__pycache__"
_REFUSED = {
    _COMPILED: "contains compiled code, which cannot be reviewed; delete this folder",
    ".git": "changes without edits, which would revoke the trust; keep the repository elsewhere and copy its files "
    "here, or add it as a submodule",
}
"""Folders that come by themselves. A program of the pack could run what lies in them."""
MAX_FILES = 10_000
MAX_BYTES = 200_000_000
MAX_FILE = 5_000_000
"""Bytes that one file may take that is read to check the pack."""


@dataclass(frozen=True)
class PackSnapshot:
    """A pack's files as they were when they were hashed. Nothing else is ever given out as theirs."""

    folder: Path
    hashes: Mapping[str, str]
    """Path from the folder → SHA-256."""

    @property
    def digest(self) -> str:
        return digest_of(dict(self.hashes))

    def name_of(self, written: str) -> str:
        """The name under which a file is known here. Raises `ValueError`, with the words, for none."""
        path = PurePosixPath(written)
        if path.is_absolute() or ".." in path.parts or "\0" in written:
            raise ValueError(f"{written[:200]!r} must be a path inside the pack's folder")
        if path.as_posix() not in self.hashes:
            raise ValueError(f"the pack's folder has no file {written[:200]!r}")
        return path.as_posix()

    def content(self, name: str) -> bytes:
        """The very bytes that were hashed. Raises `PackInvalid` when they are gone, or too many."""
        try:
            with _opened(self.folder / name) as file:
                content = file.read(MAX_FILE + 1)
        except OSError as error:
            raise _invalid(
                self.folder, name, f"cannot be read: {error.strerror or error}"
            ) from None
        if len(content) > MAX_FILE:
            raise _invalid(self.folder, name, f"is larger than {MAX_FILE} bytes; make it smaller")
        if hashlib.sha256(content).hexdigest() != self.hashes[name]:
            raise _invalid(self.folder, name, "was changed while the pack was read; try again")
        return content


@dataclass(frozen=True)
class PackFiles:
    """The files of a pack as they were loaded."""

    folder: Path
    digest: str

    def manifest(self) -> dict[str, str]:
        """Path → SHA-256 of every file. Raises `ToolBroke` when they are not what was loaded."""
        try:
            snapshot = snapshot_of(self.folder)
        except PackInvalid as error:
            raise ToolBroke(f"the pack's files can no longer be used: {error}") from None
        if snapshot.digest != self.digest:
            raise ToolBroke(
                f"files of the pack in {str(self.folder)!r} have changed since it was loaded, and none of them was "
                "run; restart workers, and plan again"
            )
        return dict(snapshot.hashes)


def pack_digest(folder: Path) -> str:
    """Digest of path and content of every file in the folder. Raises `PackInvalid`."""
    return snapshot_of(folder).digest


def snapshot_of(folder: Path) -> PackSnapshot:
    """Every file of the folder. Raises `PackInvalid` for what leads out of it or may not be in it."""
    real = folder.resolve()
    hashes: dict[str, str] = {}
    size = 0
    for path in _files(folder, real):
        name = path.relative_to(real).as_posix()
        try:
            if not path.resolve().is_relative_to(real):
                raise _invalid(
                    folder, name, "leads out of the pack's folder; put the file into the folder"
                )
            with _opened(path) as file:
                size += os.fstat(file.fileno()).st_size
                if len(hashes) >= MAX_FILES or size > MAX_BYTES:
                    most = f"{MAX_FILES} files and {MAX_BYTES} bytes"
                    raise _invalid(folder, "", f"is too large for a pack: at most {most}")
                hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _invalid(folder, name, f"cannot be read: {error.strerror or error}") from None
    return PackSnapshot(folder, hashes)


def _opened(path: Path) -> BufferedReader:
    """The file, for reading. Raises `OSError` for what is no plain file."""
    # What is no file could else keep us waiting: a pipe until somebody writes to it.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(None, "not a regular file")
    return os.fdopen(number, "rb")


def _files(folder: Path, real: Path) -> Iterator[Path]:
    # What an installer compiles lies beside the packs that come with Podium, and is never run from there.
    passed_over = {_COMPILED} if is_shipped(real) else set()
    for parent, folders, names in os.walk(real):
        folders[:] = sorted(name for name in folders if name not in passed_over)
        for name in folders:
            if name in _REFUSED:
                inside = (Path(parent) / name).relative_to(real).as_posix()
                raise _invalid(folder, inside, _REFUSED[name])
        # A link to a folder is not walked into, so it is looked at like a file.
        linked = [name for name in folders if (Path(parent) / name).is_symlink()]
        for name in sorted((*names, *linked)):
            yield Path(parent) / name


def _invalid(folder: Path, name: str, problem: str) -> PackInvalid:
    return PackInvalid([PackProblem(str(folder / name), "", problem)])
