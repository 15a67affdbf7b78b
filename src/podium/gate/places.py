"""Paths and zones: which named places a real path lies in, and whether it may be written."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from podium.domain.gating import Access, Zone

HARMLESS_PATHS = frozenset({"/dev/null"})


@dataclass(frozen=True, slots=True)
class Touch:
    """Something a call touches, under every path it may turn out to be."""

    given: str
    paths: tuple[str, ...]
    access: Access | None
    """None: a command names it, and what it does with it is not known."""
    whole: bool = False
    """Whatever lies beneath may come along."""

    @property
    def may_write(self) -> bool:
        return self.access is not Access.READ


class PlaceGlob:
    """Globs over paths. Each covers what it names and everything beneath it."""

    def __init__(self, globs: Iterable[str], *, ignore_case: bool = False) -> None:
        listed = [_tidy(glob) for glob in globs]
        flags = re.IGNORECASE | re.DOTALL if ignore_case else re.DOTALL
        self._relative = _joined((g for g in listed if not g.startswith("/")), flags)
        self._absolute = _joined((g for g in listed if g.startswith("/")), flags)
        self._ignore_case = ignore_case
        self._fixed = tuple(self._cased(_fixed_part(glob)) for glob in listed)

    def covers(self, path: str, root: str) -> bool:
        path = _composed(path)
        if self._absolute is not None and self._absolute.fullmatch(path):
            return True
        if self._relative is None:
            return False
        inner = relative_to(path, root)
        return inner is not None and self._relative.fullmatch(inner) is not None

    def lies_below(self, path: str, root: str) -> bool:
        """Whether moving or removing `path` would take the place along with it."""
        above = self._cased(_composed(path)).rstrip("/") + "/"
        root = self._cased(root)
        return any(
            (fixed if fixed.startswith("/") else f"{root}/{fixed}").startswith(above)
            for fixed in self._fixed
        )

    def _cased(self, path: str) -> str:
        return path.lower() if self._ignore_case else path


class CompiledZone:
    """A zone of one layer, ready to be asked."""

    __slots__ = ("kind", "name", "places", "read_tier", "write_tier")

    def __init__(self, zone: Zone) -> None:
        self.name = zone.name
        self.kind = zone.kind
        self.read_tier = zone.read_tier
        self.write_tier = zone.write_tier
        # Denying and raising is done as if letter case did not matter: on some file systems it
        # does not.
        self.places = PlaceGlob(zone.paths, ignore_case=zone.guards)

    def holds(self, touch: Touch, root: str) -> bool:
        return any(self.places.covers(path, root) for path in touch.paths)

    def lies_below(self, touch: Touch, root: str) -> bool:
        """A folder above the zone is copied or filled with all that lies in it."""
        return touch.whole and any(self.places.lies_below(path, root) for path in touch.paths)

    def would_move(self, touch: Touch, root: str) -> bool:
        """A folder above the zone is to be moved or removed."""
        return touch.access is Access.DELETE and any(
            self.places.lies_below(path, root) for path in touch.paths
        )


class WritablePlaces:
    """Where calls may write: the workspace, or the safe zones that layers declare.

    A layer that declares safe zones narrows writing to them. Only layers whose `opens` is True
    can name places outside the workspace.
    """

    def __init__(self, layers: Sequence[tuple[PlaceGlob, bool]]) -> None:
        self._layers = tuple(layers)

    def hold(self, path: str, root: str) -> bool:
        if path in HARMLESS_PATHS:
            return True
        if not all(places.covers(path, root) for places, _ in self._layers):
            return False
        return relative_to(path, root) is not None or any(opens for _, opens in self._layers)


@lru_cache(maxsize=4096)
def relative_to(path: str, root: str) -> str | None:
    """The path below the root ("" for the root itself), or None when it is outside."""
    if not root:
        return None
    if path == root:
        return ""
    return path[len(root) + 1 :] if path.startswith(root.rstrip("/") + "/") else None


def resolve(word: str, folder: str) -> str:
    """The path a word names, by its text alone: links are not followed."""
    path = posixpath.normpath(posixpath.join(folder or "/", word))
    return path[1:] if path.startswith("//") else path


def check_glob(glob: str) -> str:
    """The glob itself. Raises ValueError when it could never mean what it says."""
    tidy = _tidy(glob)
    if not tidy or "\0" in glob:
        raise ValueError("a path glob may not be empty")
    if ".." in tidy.split("/"):
        raise ValueError(f"{glob!r} has '..'; name the place itself")
    if tidy.startswith("~"):
        raise ValueError(f"{glob!r}: '~' is not expanded; write the absolute path")
    return glob


def _tidy(glob: str) -> str:
    glob = _composed(glob)
    while glob.startswith("./"):
        glob = glob[2:]
    return "/" if glob == "/" else glob.rstrip("/")


def _composed(path: str) -> str:
    """One spelling for accented letters: some file systems do not tell them apart."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def _joined(globs: Iterable[str], flags: int) -> re.Pattern[str] | None:
    regexes = [_regex(glob) for glob in globs]
    return re.compile("|".join(f"(?:{regex})" for regex in regexes), flags) if regexes else None


def _regex(glob: str) -> str:
    absolute = glob.startswith("/")
    segments = [segment for segment in glob.split("/") if segment and segment != "."]
    while segments and segments[-1] == "**":
        segments.pop()
    lead = "/" if absolute else ""
    if not segments:
        return lead + ".*"
    parts = [
        "(?:[^/]+/)*" if segment == "**" else _segment_regex(segment) + "/" for segment in segments
    ]
    return lead + "".join(parts)[:-1] + "(?:/.*)?"


def _segment_regex(segment: str) -> str:
    pieces = {"*": "[^/]*", "?": "[^/]"}
    return "".join(pieces.get(char) or re.escape(char) for char in segment)


def _fixed_part(glob: str) -> str:
    """The leading segments without wildcards."""
    kept: list[str] = []
    for segment in glob.split("/"):
        if "*" in segment or "?" in segment:
            break
        kept.append(segment)
    return "/".join(kept)
