"""Photos, videos and papers on disk, named by what is in them.

A file is kept once, as `media/aa/bb/SHA256.ext` in the pack's state, however many assets show it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podium.core.errors import ToolBroke

if TYPE_CHECKING:
    from podium.tools.packs import PackScope

MAX_BYTES = 50_000_000

_STORED_AS = re.compile(r"([0-9a-f]{2})/([0-9a-f]{2})/(\1\2[0-9a-f]{60}\.[a-z0-9]{1,5})")

_UNKNOWN = ("application/octet-stream", "bin")


@dataclass(frozen=True)
class StoredFile:
    """A file that is whole on the disk."""

    sha256: str
    bytes: int
    media_type: str
    """As its first bytes say, whatever the file was called."""
    stored_as: str
    """Its place below `media`."""


@dataclass(frozen=True)
class Verified:
    """Result of checking a stored file. `problem` is empty when it is as it was stored."""

    ok: bool
    sha256: str
    bytes: int
    problem: str = ""


async def store_file(
    scope: PackScope,
    *,
    path: str | None = None,
    content: str | bytes | None = None,
    sha256: str | None = None,
) -> StoredFile:
    """Keep a file given by its path or as content (bytes, or base64 text); on return it is durable.

    Raises `ToolBroke` when it is too large, is not what `sha256` says, or when the path names
    something else than a photo, a video or a PDF in a regular file. Once more is no harm.
    """
    if (path is None) == (content is None):
        raise ToolBroke("give either the path of a file or its content")
    return await asyncio.to_thread(_store, scope.state, path, content, sha256)


async def remove_file(scope: PackScope, stored_as: str) -> None:
    """Put the file aside, for `restore_file`. Only when no asset that is left shows it.

    Raises `ToolBroke` when it is neither in its place nor aside.
    """
    place = _place(scope.state, stored_as)
    await asyncio.to_thread(_move, place, _stderr(scope.state, stored_as))


async def restore_file(scope: PackScope, stored_as: str) -> None:
    """Put a file back that `remove_file` put aside. Raises `ToolBroke` when it is gone."""
    place = _place(scope.state, stored_as)
    await asyncio.to_thread(_move, _stderr(scope.state, stored_as), place)


async def verify_file(scope: PackScope, stored_as: str, sha256: str) -> Verified:
    """Read the file again and compare. What is wrong with it is told, not raised."""
    return await asyncio.to_thread(_verified, _place(scope.state, stored_as), sha256)


async def read_stored(scope: PackScope, stored_as: str) -> bytes:
    """The content of a stored file. Raises `ToolBroke` when it is not there."""
    return await asyncio.to_thread(_read_file, str(_place(scope.state, stored_as)))


def media_type_of(start: bytes) -> tuple[str, str]:
    """Media type and ending for a file that begins with these bytes (32 are enough)."""
    for offset, sign, kind, ending in _SIGNS:
        if start[offset : offset + len(sign)] == sign:
            return kind, ending
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp", "webp"
    if start[4:8] == b"ftyp":
        return _BRANDS.get(start[8:12], ("video/mp4", "mp4"))
    return _UNKNOWN


_SIGNS = (
    (0, b"\xff\xd8\xff", "image/jpeg", "jpg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png", "png"),
    (0, b"GIF87a", "image/gif", "gif"),
    (0, b"GIF89a", "image/gif", "gif"),
    (0, b"II*\0", "image/tiff", "tif"),
    (0, b"MM\0*", "image/tiff", "tif"),
    (0, b"%PDF-", "application/pdf", "pdf"),
)

_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"mif1", b"heim", b"heis"), ("image/heic", "heic")),
    **dict.fromkeys((b"avif", b"avis"), ("image/avif", "avif")),
    b"qt  ": ("video/quicktime", "mov"),
}
"""What phones write: the brand of an ISO media file."""


def _store(
    state: Path, path: str | None, content: str | bytes | None, expected: str | None
) -> StoredFile:
    data = _read_file(path) if path is not None else _decoded(content or b"")
    if not data:
        raise ToolBroke("the file is empty; give another one")
    digest = hashlib.sha256(data).hexdigest()
    if expected is not None and expected.strip().lower() != digest:
        raise ToolBroke(f"the file does not match the expected hash: its SHA-256 is {digest}")
    kind, ending = media_type_of(data[:32])
    # Whoever may name a path could otherwise have any readable file copied, keys included.
    if path is not None and (kind, ending) == _UNKNOWN:
        raise ToolBroke(f"{path!r} is not a photo, video or PDF; give the path of one")
    stored_as = f"{digest[:2]}/{digest[2:4]}/{digest}.{ending}"
    _write(_place(state, stored_as), data)
    return StoredFile(digest, len(data), kind, stored_as)


def _decoded(content: str | bytes) -> bytes:
    if isinstance(content, str):
        if len(content) > MAX_BYTES * 4 // 3 + 4:
            raise _too_large()
        try:
            content = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            raise ToolBroke("the content is not base64; encode it, or give a path") from None
    if len(content) > MAX_BYTES:
        raise _too_large()
    return content


def _read_file(path: str) -> bytes:
    # A link could be turned elsewhere after somebody looked; a pipe would wait for ever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ToolBroke(f"{path!r} cannot be read: {reason}; give the path of a file") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ToolBroke(f"{path!r} is not a regular file; give the path of one")
        if found.st_size > MAX_BYTES:
            raise _too_large()
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES)
    finally:
        os.close(descriptor)


def _write(place: Path, data: bytes) -> None:
    """The whole file or none of it, whenever the machine stops."""
    if place.exists() and place.stat().st_size == len(data) and _digest(place) == place.stem:
        return
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        unfinished.replace(place)
        _sync_folder(place.parent)
    except OSError as error:
        raise ToolBroke(f"the file cannot be stored: {error.strerror}; check the disk") from None
    finally:
        unfinished.unlink(missing_ok=True)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        source.replace(target)
    except FileNotFoundError:
        if not target.exists():
            raise ToolBroke(
                f"the file {source.name} is missing; restore it from a backup"
            ) from None
        return
    _sync_folder(target.parent)
    _sync_folder(source.parent)


def _verified(place: Path, sha256: str) -> Verified:
    try:
        found = _digest(place)
        size = place.stat().st_size
    except FileNotFoundError:
        return Verified(False, "", 0, "the file is missing")
    except OSError as error:
        return Verified(False, "", 0, f"the file cannot be read: {error.strerror}")
    if found != sha256:
        return Verified(False, found, size, "the file has changed since it was stored")
    return Verified(True, found, size)


def _digest(place: Path) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _place(state: Path, stored_as: str) -> Path:
    """Raises `ToolBroke` for anything that is not a place of ours: it came out of a database."""
    if not _STORED_AS.fullmatch(stored_as):
        raise ToolBroke(f"{stored_as!r:.100} is not a stored file")
    return state / "media" / stored_as


def _stderr(state: Path, stored_as: str) -> Path:
    return state / "media" / "removed" / Path(stored_as).name


def _too_large() -> ToolBroke:
    return ToolBroke(f"the file is larger than {MAX_BYTES // 1_000_000} MB; give a smaller one")
