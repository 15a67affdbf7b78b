"""What guarded files of a commit lead to: through links, and through git settings that include others."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from podium.domain.errors import ImportRefused
from podium.domain.guarded_files import FurtherPaths, is_above_guarded, is_git_settings, is_guarded
from podium.domain.protected_paths import comparable_parts
from podium.workspaces.git.history import History
from podium.workspaces.git.judging import GITLINK, LINK
from podium.workspaces.git.tree_size import Entry

_MOST_HOPS = 40
"""No system opens a path that goes through more links."""
_MOST_CHARACTERS = 4_000_000
_DEEPEST_INCLUDE = 10
"""As deep as git itself goes."""
_MOST_SETTINGS = 100
_MAX_CONTENT_BYTES = 16_000_000


async def add_indirections(
    history: History, commit: str, further: FurtherPaths, settings: Sequence[str]
) -> None:
    """Add what guarded paths lead to in a commit. `settings` are files that the user's git reads settings from.

    Raises `ImportRefused` for more than can be followed.
    """
    entries = await history.tree(commit)
    links = Links(await _targets(history, entries))
    waiting = [*settings, *(path for path in entries if is_git_settings(path))]
    for _ in range(_DEEPEST_INCLUDE):
        waiting = await _included(history, entries, links, waiting)
        for path in waiting:
            further.add(path)
    await asyncio.to_thread(links.follow, further)


@dataclass
class _Folder:
    """A folder that holds links, at whatever depth, or a link itself."""

    inner: dict[tuple[str, ...], _Folder] = field(default_factory=dict)
    target: str | None = None


_NO_LINKS = _Folder()
_key = lru_cache(65_536)(comparable_parts)


class Links:
    """The links of one commit."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._paths = tuple(targets)
        self._root = _Folder()
        self._characters = 0
        for path, target in targets.items():
            folder = self._root
            for name in path.split("/"):
                key = _key(name)
                if key not in folder.inner:
                    folder.inner[key] = _Folder()
                folder = folder.inner[key]
            folder.target = target

    def follow(self, further: FurtherPaths) -> None:
        """Add where guarded paths and links above them lead."""
        for path in list(further):
            self._add_route(path, further)
        waiting = self._paths
        for _ in range(_MOST_HOPS):
            reached = {
                path for path in waiting if is_guarded(path, further) or is_above_guarded(path)
            }
            if not reached:
                return
            waiting = tuple(path for path in waiting if path not in reached)
            for path in reached:
                self._add_route(path, further)
        raise _too_many()

    def route(self, path: str) -> Iterator[str]:
        """The path as it is after each link on its way, and in the end without any. Ends at the repository's."""
        done: list[str] = []
        folders = [self._root]
        ahead = path.split("/")[::-1]
        hops = 0
        while ahead:
            name = ahead.pop()
            if name == ".." and not done:
                return
            if name == "..":
                done.pop()
                folders.pop()
                continue
            if name in ("", "."):
                continue
            folder = folders[-1].inner.get(_key(name), _NO_LINKS)
            if folder.target is None:
                done.append(name)
                folders.append(folder)
                continue
            hops += 1
            if hops > _MOST_HOPS or folder.target.startswith("/"):
                return
            ahead += folder.target.split("/")[::-1]
            yield posixpath.normpath("/".join([*done, *ahead[::-1]]))
        yield "/".join(done)

    def _add_route(self, path: str, further: FurtherPaths) -> None:
        for place in self.route(path):
            self._characters += len(place)
            if self._characters > _MOST_CHARACTERS:
                raise _too_many()
            if is_inside(place):
                further.add(place)


def _too_many() -> ImportRefused:
    return ImportRefused(
        "links of guarded files lead on through too many others; link to the files themselves"
    )


def is_inside(path: str) -> bool:
    """Whether it is a path beneath the top of the repository."""
    return path not in ("", ".", "..") and not path.startswith(("/", "../"))


async def _targets(history: History, entries: Mapping[str, Entry]) -> dict[str, str]:
    blobs = {path: entry.blob for path, entry in entries.items() if entry.mode == LINK}
    contents = await _contents(history, blobs.values())
    return {path: contents[blob].decode(errors="surrogateescape") for path, blob in blobs.items()}


async def _included(
    history: History, entries: Mapping[str, Entry], links: Links, settings: Iterable[str]
) -> list[str]:
    """Files that these files of git settings include, as far as the commit may have them."""
    places = {
        path: place
        for path in settings
        for place in links.route(path)
        if place in entries and entries[place].mode != GITLINK
    }
    contents = await _contents(history, {entries[place].blob for place in places.values()})
    naming = {
        path: place
        for path, place in places.items()
        if b"include" in contents[entries[place].blob].lower()
    }
    if len(naming) > _MOST_SETTINGS:
        raise ImportRefused(
            f"more than {_MOST_SETTINGS} files of git settings include others; include them in fewer"
        )
    found: dict[str, None] = {}
    for path, place in naming.items():
        for value in await history.included(entries[place].blob):
            for folder in {posixpath.dirname(path), posixpath.dirname(place)}:
                found[posixpath.normpath(posixpath.join(folder, value))] = None
    return [path for path in found if is_inside(path) and not path.startswith("~")]


async def _contents(history: History, blobs: Iterable[str]) -> dict[str, bytes]:
    contents, complete = await history.contents(sorted(set(blobs)), _MAX_CONTENT_BYTES)
    if not complete:
        raise ImportRefused(
            f"links and git settings have more than {_MAX_CONTENT_BYTES // 1_000_000} MB; have fewer of them"
        )
    return contents
