"""Which changes may come back: pure rules over paths, modes and links."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.domain.protected_paths import (
    comparable_parts,
    is_spelling_of,
    protected_in,
)

GITLINK = "160000"
LINK = "120000"
NO_FILE = "000000"
_MODULES = ".gitmodules"
_PLAIN = ("100644", "100755", "100664", LINK, NO_FILE)
_LONGEST_PATH_BYTES = 4000


@dataclass(frozen=True)
class Change:
    """One path that one commit changes."""

    commit: str
    path: str
    old_mode: str
    new_mode: str
    blob: str
    old_blob: str = ""
    """Of the parent that it is compared with."""

    @property
    def makes_link(self) -> bool:
        return self.new_mode == LINK

    @property
    def about_links(self) -> bool:
        return LINK in (self.old_mode, self.new_mode)


def own_changes(changes: Sequence[Change], parents: Mapping[str, Sequence[str]]) -> list[Change]:
    """What a commit has from none of its parents: for a merge, only what differs from all of them."""
    seen = Counter((change.commit, change.path) for change in changes)
    own: dict[tuple[str, str], Change] = {}
    for change in changes:
        if seen[change.commit, change.path] >= max(1, len(parents[change.commit])):
            own.setdefault((change.commit, change.path), change)
    return list(own.values())


def fault_of(change: Change) -> str:
    """Why the change may not come back, whatever the zones are; empty when it may."""
    parts = [part for piece in change.path.split("/") for part in piece.split("\\")]
    protected = protected_in(change.path)
    if GITLINK in (change.old_mode, change.new_mode):
        return f"{change.path!r} is a submodule, which may not be added, moved or removed"
    if protected is not None:
        return (
            f"{change.path!r} lies in {protected.name!r} on some system, which is {protected.what}"
        )
    if any(is_spelling_of(part, _MODULES) for part in parts):
        return f"{change.path!r} sets up submodules, which may not be changed"
    if ".." in parts or any(piece in ("", ".") for piece in change.path.split("/")):
        return f"{change.path!r} leads out of the repository on some system"
    if len(change.path.encode(errors="surrogateescape")) > _LONGEST_PATH_BYTES:
        return f"the path {change.path[:80]!r}… is too long"
    if change.new_mode not in _PLAIN:
        return f"{change.path!r} has the odd mode {change.new_mode}"
    return ""


def link_fault(path: str, target: str) -> str:
    """Why a link with this text may not come back. Names after `..` alone keep a link inside for sure."""
    if "\0" in target or not target:
        return f"the link {path!r} has no usable target"
    if target.startswith("/") or "\\" in target or target[1:2] == ":":
        return f"the link {path!r} leads to {target[:100]!r}, which is not inside the repository"
    parts = [part for part in target.split("/") if part not in ("", ".")]
    names = [index for index, part in enumerate(parts) if part != ".."]
    if names and ".." in parts[names[0] :]:
        return f"the link {path!r} goes up again after a name ({target[:100]!r}); write it shorter"
    landing = posixpath.normpath(posixpath.join(posixpath.dirname(path), *parts))
    if landing == ".." or landing.startswith("../"):
        return f"the link {path!r} leads out of the repository ({target[:100]!r})"
    if (protected := protected_in(landing) or protected_in(target)) is not None:
        return f"the link {path!r} leads into {protected.name!r}, which is {protected.what}"
    return ""


def hidden_by_link(links: Sequence[str], paths: Iterable[str]) -> str:
    """A path that a link would stand above where case does not count; empty when there is none."""
    plain = {comparable_parts(link): link for link in links}
    if not plain:
        return ""
    for path in paths:
        parts = comparable_parts(path)
        for count in range(1, len(parts) + 1):
            link = plain.get(parts[:count])
            if link is not None and link != path:
                return (
                    f"{path!r} and the link {link!r} are the same place where case does not count"
                )
    return ""
