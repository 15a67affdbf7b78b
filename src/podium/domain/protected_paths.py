"""Paths that no agent may create, change or remove: one list for the policy, the confinement and the import gate.

Names are compared as the most forgiving file system would: a commit made on one machine is checked out on others, where
`.Podium`, `PODIUM~1` or a name with invisible characters is the same folder.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

GIT_DIR = ".git"
STATE_DIR = ".podium"


class ProtectedName(NamedTuple):
    """A file or folder that is protected at any depth, with everything in it."""

    name: str
    zone: str
    """The policy's zone for it."""
    readable: bool
    what: str


PROTECTED_NAMES = (
    ProtectedName(GIT_DIR, "git-folder", True, "a git directory"),
    ProtectedName(STATE_DIR, "podium-state", False, "Podium's own state"),
)

_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Default-ignorable code points, which HFS+ and case-folding ext4 skip when they compare names."""
_SEPARATORS = re.compile(r"[/\\]")
_DOTTED_I = "i\u0307"
_SHORT_NAME = re.compile(r"([^.~]{1,6})~([0-9]{1,6})(?:\.([^.]{1,3}))?")
_DOS_NAME = re.compile(r"[^. +,;=\[\]]{1,8}(?:\.[^. +,;=\[\]]{1,3})?")
_NOT_IN_DOS_NAMES = re.compile(r"[+,;=\[\]]")


@lru_cache(maxsize=65_536)
def comparable(name: str) -> str:
    """The name as the most forgiving of file systems compares it, without NTFS streams and ignored endings."""
    folded = name.lower()
    if not name.isascii():
        folded = _IGNORABLE.sub("", unicodedata.normalize("NFKC", name)).upper().casefold()
        folded = unicodedata.normalize("NFKC", folded).replace(_DOTTED_I, "i")
    return folded.partition(":")[0].rstrip(". ") or folded


def comparable_parts(path: str) -> tuple[str, ...]:
    """The parts of a path, each comparable. A backslash separates them too, as on Windows."""
    if not path.isascii():
        path = unicodedata.normalize("NFKC", path)  # some characters become separators
    return tuple(comparable(part) for part in _SEPARATORS.split(path))


def is_spelling_of(name: str, protected: str) -> bool:
    """Tell whether some file system finds `protected` under this name."""
    return any(_same(part, comparable(protected)) for part in comparable_parts(name))


def protected_name(name: str) -> str:
    """The protected name that some file system takes this one for; empty when there is none."""
    return next((known.name for known in PROTECTED_NAMES if is_spelling_of(name, known.name)), "")


def protected_in(path: str) -> ProtectedName | None:
    """The first protected name among the parts of a path, at whatever depth."""
    if not _may_hold_protected(path):
        return None
    for part in comparable_parts(path):
        for known in PROTECTED_NAMES:
            if _same(part, known.name):
                return known
    return None


def plain_spelling(path: str) -> str:
    """The path with every spelling of a protected name replaced by the name itself; others stay as they are."""
    if protected_in(path) is None:
        return path
    if not path.isascii():
        path = unicodedata.normalize("NFKC", path)
    pieces = (
        protected_name(part) or part
        for piece in path.split("/")
        for part in (piece.split("\\") if protected_in(piece) else (piece,))
    )
    return "/".join(pieces)


def zone_holding(path: str, zones: Iterable[str]) -> str:
    """The zone that a path is, lies in, or would replace by standing above it; empty when there is none."""
    parts = comparable_parts(path)
    return next((zone for zone in zones if _meet(parts, comparable_parts(zone))), "")


def lies_in_zone(path: str, zones: Iterable[str]) -> bool:
    """Tell whether a path is one of the zones or lies in one."""
    parts = comparable_parts(path)
    inner = (zone for zone in map(comparable_parts, zones) if len(zone) <= len(parts))
    return any(_meet(parts, zone) for zone in inner)


def protection_of(path: str, zones: Iterable[str] = ()) -> str:
    """The protected name or forbidden zone that a path belongs to; empty when it is free."""
    known = protected_in(path)
    return known.name if known is not None else zone_holding(path, zones)


def _may_hold_protected(path: str) -> bool:
    """A quick look: most paths have neither the names nor anything that could hide them."""
    lower = path.lower()
    return not path.isascii() or "~" in path or ".git" in lower or ".podium" in lower


def _meet(parts: Sequence[str], zone: Sequence[str]) -> bool:
    return all(_same(part, other) for part, other in zip(parts, zone, strict=False))


def _same(part: str, protected: str) -> bool:
    return part == protected or ("~" in part and _is_short_name(part, protected))


@lru_cache(maxsize=4096)
def _is_short_name(part: str, protected: str) -> bool:
    """Tell whether NTFS may have made this 8.3 name for the protected one."""
    match = _SHORT_NAME.fullmatch(part)
    if match is None or not protected.isascii() or _DOS_NAME.fullmatch(protected):
        return False
    plain = _NOT_IN_DOS_NAMES.sub("_", protected.lstrip(".").replace(" ", ""))
    base, dot, extension = plain.rpartition(".")
    base = (base if dot else extension).replace(".", "")
    stem, number, ending = match.groups()
    if (ending or "") != (extension[:3] if dot else ""):
        return False
    width = 7 - len(number)
    return stem in (base[:6][:width], f"{base[:2]}{_short_name_hash(protected):04x}"[:width])


def _short_name_hash(name: str) -> int:
    """The checksum that NTFS puts into the short name once the first four are taken."""
    checksum = 0
    for char in name:
        checksum = (checksum * 0x25 + ord(char)) & 0xFFFF
    mixed = (checksum * 314159269) & 0xFFFFFFFF
    if mixed & 0x80000000:
        mixed = -mixed & 0xFFFFFFFF
    mixed -= ((mixed * 1152921497) >> 60) * 1000000007
    low = mixed & 0xFFFF
    return (low & 0xF000) >> 12 | (low & 0x0F00) >> 4 | (low & 0x00F0) << 4 | (low & 0x000F) << 12
