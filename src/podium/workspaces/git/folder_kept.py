"""What is kept of a folder at a moment, and what is different between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from podium.workspaces.git.folder_walking import Seen

LINK = "120000"


@dataclass(frozen=True)
class Kept:
    """A folder's content: a git tree, and what git does not keep of it."""

    root: str
    tree: str
    entries: dict[str, str]
    """Mode and id of each file and link, as the tree has them."""
    files: dict[str, int]
    """Permission bits."""
    folders: dict[str, int]
    passed_over: frozenset[str]
    """Paths that are not in it, and are left alone."""
    left_out: tuple[str, ...]
    """What is not in it, in words."""

    def manifest(self) -> bytes:
        """All of it but the content of files."""
        told = {
            "root": self.root,
            "tree": self.tree,
            "entries": self.entries,
            "files": self.files,
            "folders": self.folders,
            "passed_over": sorted(self.passed_over),
            "left_out": self.left_out,
        }
        return json.dumps(told).encode()

    def is_link(self, path: str) -> bool:
        return self.entries[path].startswith(LINK)


def kept_of(root: str, tree: str, listing: bytes, seen: Seen) -> Kept:
    """Of what was just seen, with the tree that holds it."""
    entries = _entries(listing)
    return Kept(
        root=root,
        tree=tree,
        entries=entries,
        files={path: mode for path, mode in seen.files.items() if path in entries},
        folders=seen.folders,
        passed_over=frozenset(seen.passed_over),
        left_out=tuple(seen.left_out),
    )


def kept_again(manifest: bytes) -> Kept:
    """As it was written down."""
    told = json.loads(manifest)
    return Kept(
        root=told["root"],
        tree=told["tree"],
        entries=told["entries"],
        files=told["files"],
        folders=told["folders"],
        passed_over=frozenset(told["passed_over"]),
        left_out=tuple(told["left_out"]),
    )


@dataclass(frozen=True)
class Difference:
    """What has to be done to a folder so that it is again as it was."""

    write: tuple[str, ...] = ()
    """Files and links that are gone, or other ones."""
    set_rights: tuple[str, ...] = ()
    """Files whose permission bits alone are others, and folders."""
    remove: tuple[str, ...] = ()
    make_folders: tuple[str, ...] = ()
    """Outer ones first."""
    remove_folders: tuple[str, ...] = ()
    """Inner ones first."""

    @property
    def files(self) -> set[str]:
        return {*self.write, *self.remove, *self.set_rights}

    @property
    def paths(self) -> list[str]:
        """All that a person would see: a folder is told, with `/`, where no file of it is."""
        told = self.files
        folders = [*self.make_folders, *self.remove_folders]
        above = set(_all_above([*told, *folders]))
        bare = [f"{folder}/" for folder in folders if folder not in above]
        return sorted([*told, *bare])


def difference(then: Kept, now: Kept) -> Difference:
    """From now back to then. What was passed over then is left alone, whatever is there now."""
    alone = then.passed_over
    added = [path for path in now.entries if path not in then.entries]
    new_folders = [path for path in now.folders if path not in then.folders]
    same = [path for path, entry in then.entries.items() if now.entries.get(path) == entry]
    rights = [path for path in same if then.files.get(path) != now.files.get(path)]
    rights += [p for p, mode in then.folders.items() if now.folders.get(p, mode) != mode]
    return Difference(
        write=tuple(path for path in then.entries if now.entries.get(path) != then.entries[path]),
        set_rights=tuple(rights),
        remove=tuple(path for path in added if not _beneath(path, alone)),
        make_folders=tuple(sorted(path for path in then.folders if path not in now.folders)),
        remove_folders=tuple(
            sorted((path for path in new_folders if not _beneath(path, alone)), reverse=True)
        ),
    )


def in_the_way(now: Kept, off: Difference) -> list[str]:
    """What nobody looked into and would have to go for it, such as a repository in place of a file."""
    places = {*off.write, *off.make_folders}
    within = {path for path in now.passed_over if places.intersection(_with_above(path))}
    above = {path for place in places for path in _with_above(place) if path in now.passed_over}
    return sorted(within | above)


def _beneath(path: str, places: frozenset[str]) -> bool:
    return any(each in places for each in _with_above(path))


def _all_above(paths: list[str]) -> Iterator[str]:
    for path in paths:
        for each in _with_above(path):
            if each != path:
                yield each


def _with_above(path: str) -> Iterator[str]:
    """The path, and each folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _entries(listing: bytes) -> dict[str, str]:
    """From what `ls-tree -r -z` prints."""
    found = {}
    for row in listing.split(b"\0"):
        about, _, path = row.partition(b"\t")
        if path:
            mode, _, name = about.split(b" ")
            found[path.decode(errors="surrogateescape")] = f"{mode.decode()} {name.decode()}"
    return found
