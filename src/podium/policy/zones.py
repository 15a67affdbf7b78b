"""Zones that a real path lies in, whether it may be written, and what a confined process can reach."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import NamedTuple

from podium.core.decisions import Access, Zone
from podium.core.protected_paths import plain_spelling
from podium.policy.shell.simple_command import ANY

HARMLESS_PATHS = frozenset({"/dev/null"})
_MAX_DEPTH = 64
_INNER_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
"""Names beneath a folder, none of which is `.` or `..`."""


class TouchedPath(NamedTuple):
    """Something a call touches, under every path it may turn out to be."""

    text: str
    paths: tuple[str, ...]
    access: Access | None
    """None: a command names it, and what it does with it is not known."""
    whole: bool = False
    """All that lies beneath may come along."""

    @property
    def may_write(self) -> bool:
        return self.access is not Access.READ

    @property
    def changes(self) -> bool:
        return self.access in (Access.WRITE, Access.DELETE)


class PathGlobs:
    """Globs over paths. Each covers what it names and everything beneath it."""

    def __init__(
        self, globs: Iterable[str], *, ignore_case: bool = False, but_not: Sequence[str] = ()
    ) -> None:
        listed = self._listed = [_tidy(glob) for glob in globs]
        self._ignore_case = ignore_case
        self._fixed = tuple(self._cased(_fixed_part(glob)) for glob in listed)
        self._segments = {
            absolute: [tuple(g.split("/")) for g in listed if g.startswith("/") is absolute]
            for absolute in (True, False)
        }
        # To the letter, whatever the case of the others: what is let off must be meant.
        self._but_not = PathGlobs(but_not) if but_not else None

    # Compiled when a path is first compared: many zones are asked of no path at all.
    @cached_property
    def _relative(self) -> re.Pattern[str] | None:
        return self._joined(absolute=False)

    @cached_property
    def _absolute(self) -> re.Pattern[str] | None:
        return self._joined(absolute=True)

    def _joined(self, *, absolute: bool) -> re.Pattern[str] | None:
        flags = re.IGNORECASE | re.DOTALL if self._ignore_case else re.DOTALL
        regexes = [_regex(glob) for glob in self._listed if glob.startswith("/") is absolute]
        return re.compile("|".join(f"(?:{regex})" for regex in regexes), flags) if regexes else None

    def covers(self, path: str, root: str) -> bool:
        if not self._names(path, root):
            return False
        return self._but_not is None or not self._but_not.covers(path, root)

    def _names(self, path: str, root: str) -> bool:
        path = _composed(path)
        if self._absolute is not None and self._absolute.fullmatch(path):
            return True
        if self._relative is None:
            return False
        inner = relative_to(path, root)
        if inner is not None and self._ignore_case:
            inner = plain_spelling(inner)
        return inner is not None and self._relative.fullmatch(inner) is not None

    def meets(self, pattern: str, root: str, *, all_names: bool) -> bool:
        """Tell whether a path with wildcards (`ANY`) in it may turn out to be one of these places.

        `all_names`: a part that is nothing but a wildcard may be any of them.
        """
        inner = relative_to(pattern, root)
        return any(
            _segments_meet(tuple(path.split("/")), segments, all_names)
            for path, absolute in ((pattern, True), (inner, False))
            if path is not None
            for segments in self._segments[absolute]
        )

    def lies_below(self, path: str, root: str) -> bool:
        """Tell whether moving or removing `path` would take the place along with it."""
        above = self._cased(_composed(path)).rstrip("/") + "/"
        root = self._cased(root)
        return any(
            (fixed if fixed.startswith("/") else f"{root}/{fixed}").startswith(above)
            for fixed in self._fixed
        )

    def _cased(self, path: str) -> str:
        return path.lower() if self._ignore_case else path


def plain_path(glob: str) -> str:
    """The path that a glob of a zone stands for when it stands for one with all beneath; else nothing."""
    path = glob.removesuffix("/**").removesuffix("/*").removeprefix("./").rstrip("/")
    plain = path and not path.startswith(("/", "~")) and not any(char in path for char in "*?[]{}")
    return path if plain else ""


class CompiledZone:
    """A zone of one layer, ready to be asked."""

    __slots__ = ("_loose", "globs", "kind", "name", "path_globs", "read_tier", "write_tier")

    def __init__(self, zone: Zone) -> None:
        self.name = zone.name
        self.globs = zone.paths
        self.kind = zone.kind
        self.read_tier = zone.read_tier
        self.write_tier = zone.write_tier
        # Denying and raising is done as if letter case did not matter: on some file systems it
        # does not.
        self.path_globs = PathGlobs(zone.paths, ignore_case=zone.guards, but_not=zone.but_not)
        loose = [glob for glob in zone.paths if not plain_path(glob)]
        self._loose = PathGlobs(loose, ignore_case=zone.guards, but_not=zone.but_not)

    def holds(self, touch: TouchedPath, root: str) -> bool:
        return _holds(self.path_globs, touch, root)

    def closes(self, touch: TouchedPath, root: str, *, held: bool = False) -> bool:
        """Tell whether the zone denies it. `held`: the kernel keeps places with plain names from being written, so that a
        command that only names one, such as a test runner, may read it."""
        if self.kind == "forbidden":
            return self.holds(touch, root)
        if self.kind != "read-only" or not touch.may_write:
            return False
        return _holds(
            self._loose if held and touch.access is None else self.path_globs, touch, root
        )

    def lies_below(self, touch: TouchedPath, root: str) -> bool:
        """A folder above the zone is copied or filled with all that lies in it."""
        return touch.whole and any(self.path_globs.lies_below(path, root) for path in touch.paths)

    def would_move(self, touch: TouchedPath, root: str) -> bool:
        """A folder above the zone is to be moved or removed."""
        return touch.access is Access.DELETE and any(
            self.path_globs.lies_below(path, root) for path in touch.paths
        )


def _holds(globs: PathGlobs, touch: TouchedPath, root: str) -> bool:
    for path in touch.paths:
        if globs.covers(path, root):
            return True
        # Reading all names of a folder is no wish for those of a zone; walks leave them out too.
        if ANY in path and globs.meets(path, root, all_names=touch.changes):
            return True
    return False


class ZoneSet:
    """Zones that are asked together. Most paths lie in none of them, which one look tells."""

    def __init__(self, zones: Iterable[CompiledZone]) -> None:
        self._zones = tuple(zones)
        self._all = _in_any_case(tuple(g for zone in self._zones for g in zone.globs))

    def near(self, touch: TouchedPath, root: str) -> Sequence[CompiledZone]:
        """The zones that may have something against a touch."""
        if touch.whole or touch.access is Access.DELETE:
            return self._zones
        for path in touch.paths:
            if ANY in path or self._all.covers(path, root):
                return self._zones
        return ()


@lru_cache(maxsize=64)
def _in_any_case(globs: tuple[str, ...]) -> PathGlobs:
    """Compiled once: every gate of a process has the built-in policy's zones."""
    return PathGlobs(globs, ignore_case=True)


class WritablePaths:
    """The paths that calls may write: the workspace, or the safe zones that layers declare.

    A layer that declares safe zones narrows writing to them. Only layers whose `opens` is True
    can name places outside the workspace.
    """

    def __init__(self, layers: Sequence[tuple[PathGlobs, bool]]) -> None:
        self._layers = tuple(layers)

    def hold(self, path: str, root: str) -> bool:
        if path in HARMLESS_PATHS:
            return True
        if not all(globs.covers(path, root) for globs, _ in self._layers):
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


def resolve(token: str, folder: str) -> str:
    """The path a word names, by its text alone: links are not followed."""
    if len(folder) > 1 and _INNER_PATH.fullmatch(token):
        return f"{folder}/{token}"
    path = posixpath.normpath(posixpath.join(folder or "/", token))
    return path[1:] if path.startswith("//") else path


def check_glob(glob: str) -> str:
    """The glob itself. Raises ValueError when it could never mean what it says."""
    tidy = _tidy(glob)
    if not tidy or "\0" in glob:
        raise ValueError("a path glob must not be empty")
    if ".." in tidy.split("/"):
        raise ValueError(f"{glob!r} contains '..'; write the resolved path")
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


@lru_cache(maxsize=1024)
def _segments_meet(path: tuple[str, ...], zone: tuple[str, ...], all_names: bool) -> bool:
    """Tell whether a path with wildcards can lie at or beneath what a zone's glob names."""
    if not zone or zone == ("**",) or len(path) > _MAX_DEPTH:
        return True
    if not path:
        return False
    if zone[0] == "**":
        return _segments_meet(path, zone[1:], all_names) or _segments_meet(
            path[1:], zone, all_names
        )
    if not all_names and ANY in path[0] and not path[0].strip(f"{ANY}."):
        return False
    return _names_meet(path[0].lower(), zone[0].lower()) and _segments_meet(
        path[1:], zone[1:], all_names
    )


@lru_cache(maxsize=4096)
def _names_meet(pattern: str, zone: str) -> bool:
    """Tell whether wildcards (`ANY`) may stand for a name such as a zone's glob means.

    Held against examples of such names: `*.py` and `id_rsa*` do have names in common, which nobody
    means. A shell's wildcard does not stand for the dot that a hidden name begins with.
    """
    examples = {zone.replace("*", stand_in).replace("?", "x") for stand_in in ("", "x")}
    glob = re.sub(r"[*?\[\]]", "?", pattern).replace(ANY, "*")
    return any(
        fnmatchcase(name, glob) and not (name.startswith(".") and not glob.startswith("."))
        for name in examples
    )


def _fixed_part(glob: str) -> str:
    """The leading segments without wildcards."""
    segments: list[str] = []
    for segment in glob.split("/"):
        if "*" in segment or "?" in segment:
            break
        segments.append(segment)
    return "/".join(segments)


_PRIVATE = ("/tmp", "/var/tmp", "/dev/shm", "/~")  # noqa: S108 - a confined process has its own
"""Fresh for each run and gone after it. `/~` is how the gate writes the home folder."""
_SYSTEM = (
    *("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/sys", "/dev"),
    *("/nix", "/run", "/var/lib", "/var/cache", "/snap"),
)
"""There to be read, as far as it is there at all."""
_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/fd", "/dev/tty", "/dev/null")


def is_private(path: str) -> bool:
    """Tell whether it lies in a place that a confined run may fill as it likes."""
    return _lies_below(path, _PRIVATE) or _lies_below(path, _STREAMS)


def may_be_visible(path: str) -> bool:
    """Tell whether a confined run finds something there although it is outside the workspace."""
    return path == "/" or is_private(path) or _lies_below(path, _SYSTEM)


def _lies_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
