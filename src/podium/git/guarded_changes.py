"""Changes of guarded files in quarantined commits, directly or through links and includes, for the person who approves."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from podium.core.errors import ImportRefused
from podium.core.model import digest_of
from podium.core.protected_paths import (
    ExtraProtectedPaths,
    comparable_parts,
    drivers_changed,
    is_above_guarded,
    is_attributes,
    is_git_settings,
    is_guarded,
)
from podium.core.workspaces import GuardedChange, WorkspaceRecord
from podium.git.commit_changes import (
    GITLINK,
    INCLUDES,
    LINK,
    NO_FILE,
    CommitChange,
    CommitHistory,
    own_changes,
)
from podium.git.commit_trees import TreeEntry
from podium.git.git_command import Git

_MAX_HOPS = 40
"""No system opens a path that goes through more links."""
_MAX_CHARACTERS = 4_000_000
_MAX_INCLUDE = 10
"""As deep as git itself goes."""
_MAX_SETTINGS = 100
_MAX_LINKED_CONTENT_BYTES = 16_000_000


async def add_indirections(
    history: CommitHistory, commit: str, further: ExtraProtectedPaths, settings: Sequence[str]
) -> None:
    """Add what guarded paths lead to in a commit. `settings` are files that the user's git reads settings from.

    Raises `ImportRefused` for more than can be followed.
    """
    entries = await history.tree(commit)
    links = CommitLinks(await _targets(history, entries))
    waiting = [*settings, *(path for path in entries if is_git_settings(path))]
    for _ in range(_MAX_INCLUDE):
        waiting = await _included(history, entries, links, waiting)
        for path in waiting:
            further.add(path)
    await asyncio.to_thread(links.follow, further)


@dataclass
class _LinkNode:
    """A folder that holds links, at whatever depth, or a link itself."""

    inner: dict[tuple[str, ...], _LinkNode] = field(default_factory=dict)
    target: str | None = None


_NO_LINKS = _LinkNode()
_key = lru_cache(65_536)(comparable_parts)


class CommitLinks:
    """The links of one commit."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._paths = tuple(targets)
        self._root = _LinkNode()
        self._characters = 0
        for path, target in targets.items():
            folder = self._root
            for name in path.split("/"):
                key = _key(name)
                if key not in folder.inner:
                    folder.inner[key] = _LinkNode()
                folder = folder.inner[key]
            folder.target = target

    def follow(self, further: ExtraProtectedPaths) -> None:
        """Add where guarded paths and links above them lead."""
        for path in list(further):
            self._add_route(path, further)
        waiting = self._paths
        for _ in range(_MAX_HOPS):
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
            if hops > _MAX_HOPS or folder.target.startswith("/"):
                return
            ahead += folder.target.split("/")[::-1]
            yield posixpath.normpath("/".join([*done, *ahead[::-1]]))
        yield "/".join(done)

    def _add_route(self, path: str, further: ExtraProtectedPaths) -> None:
        for target in self.route(path):
            self._characters += len(target)
            if self._characters > _MAX_CHARACTERS:
                raise _too_many()
            if is_inside(target):
                further.add(target)


def _too_many() -> ImportRefused:
    return ImportRefused(
        "links of guarded files lead through too many other links; link to the files directly"
    )


def is_inside(path: str) -> bool:
    """Check that a path lies beneath the top of the repository."""
    return path not in ("", ".", "..") and not path.startswith(("/", "../"))


async def _targets(history: CommitHistory, entries: Mapping[str, TreeEntry]) -> dict[str, str]:
    blobs = {path: entry.blob for path, entry in entries.items() if entry.mode == LINK}
    contents = await _contents(history, blobs.values())
    return {path: contents[blob].decode(errors="surrogateescape") for path, blob in blobs.items()}


async def _included(
    history: CommitHistory,
    entries: Mapping[str, TreeEntry],
    links: CommitLinks,
    settings: Iterable[str],
) -> list[str]:
    """Files that these files of git settings include, as far as the commit may have them."""
    targets = {
        path: target
        for path in settings
        for target in links.route(path)
        if target in entries and entries[target].mode != GITLINK
    }
    contents = await _contents(history, {entries[target].blob for target in targets.values()})
    naming = {
        path: target
        for path, target in targets.items()
        if b"include" in contents[entries[target].blob].lower()
    }
    if len(naming) > _MAX_SETTINGS:
        raise ImportRefused(
            f"more than {_MAX_SETTINGS} git configuration files include others; use fewer includes"
        )
    included: dict[str, None] = {}
    for path, target in naming.items():
        for value in await history.included(entries[target].blob):
            for folder in {posixpath.dirname(path), posixpath.dirname(target)}:
                included[posixpath.normpath(posixpath.join(folder, value))] = None
    return [path for path in included if is_inside(path) and not path.startswith("~")]


async def _contents(history: CommitHistory, blobs: Iterable[str]) -> dict[str, bytes]:
    contents, complete = await history.contents(sorted(set(blobs)), _MAX_LINKED_CONTENT_BYTES)
    if not complete:
        raise ImportRefused(
            f"links and git configuration files are larger than {_MAX_LINKED_CONTENT_BYTES // 1_000_000} MB in all; use fewer of them"
        )
    return contents


MAX_DIFF_CHARACTERS = 40_000
_MAX_DIFF_BYTES = 1_000_000
_MAX_CONTENT_BYTES = 16_000_000
_MAX_PATHS = 500
_MAX_NAMED = 12
_MAX_PARENTS = 8
_DIFF = (
    "diff-tree", "--stdin", "--no-commit-id", "--root", "-r", "-m", "--patch", "--no-renames", "--no-color",
    # Whatever attributes and NUL bytes say: a shell runs a file with a NUL in it.
    "--text", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "--",
)  # fmt: skip

Parents = Mapping[str, Sequence[str]]
Guarded = Callable[[str], Sequence[str]]
"""Further guarded paths, by the checkout of the user's repository, from its top on."""


def none_more(_: str) -> Sequence[str]:
    return ()


class GuardedReview:
    """Looks for guarded files among what new commits change, intermediate ones too."""

    def __init__(
        self,
        history: CommitHistory,
        record: WorkspaceRecord,
        further: Iterable[str] = (),
        settings: Sequence[str] = (),
    ) -> None:
        """`further` are guarded paths beside the list: folders that git takes hooks from, and what the project adds.

        `settings` are files that the user's git takes settings from.
        """
        self._history = history
        self._record = record
        self._further = ExtraProtectedPaths((*further, *settings))
        self._settings = settings

    async def changes(self, tip: str, new: Parents) -> GuardedChange | None:
        """All of them as one question; None when there are none."""
        for commit in dict.fromkeys((self._record.base, tip)):
            await add_indirections(self._history, commit, self._further, self._settings)
        changes = await self._history.changes(list(new))
        made = own_changes(changes, new)
        rows = [row for row in made if self._is_guarded(row)]
        rows += await self._of_drivers([row for row in made if is_attributes(row.path)])
        rows += await self._dropped_by_merges(changes, made, new)
        if not rows:
            return None
        unique = dict.fromkeys(
            (ascii(row.path), row.old_mode, row.new_mode, row.old_blob, row.blob) for row in rows
        )
        paths = list(dict.fromkeys(row.path for row in rows))
        return GuardedChange(
            files=tuple(f"{_readable(path)} ({_what(path, rows)})" for path in paths),
            paths=tuple(map(_readable, paths)),
            diff=await self._diff(list(dict.fromkeys(row.commit for row in rows)), paths),
            digest=digest_of([list(change) for change in unique]),
        )

    def _is_guarded(self, row: CommitChange) -> bool:
        """Also a link above a guarded path, which puts another file there."""
        return is_guarded(row.path, self._further) or (
            row.about_links and (self._further.lie_below(row.path) or is_above_guarded(row.path))
        )

    async def _of_drivers(self, rows: Sequence[CommitChange]) -> list[CommitChange]:
        """Changes of attributes that are about programs. What is too large to be read counts as one."""
        blobs = sorted({blob for row in rows for blob in (row.old_blob, row.blob)})
        contents, _ = await self._history.contents(blobs, _MAX_CONTENT_BYTES)

        def text(blob: str, mode: str) -> str | None:
            content = b"" if mode == NO_FILE else contents.get(blob)
            return None if content is None or mode == LINK else content.decode(errors="replace")

        driver_changes = []
        for row in rows:
            old, new = text(row.old_blob, row.old_mode), text(row.blob, row.new_mode)
            if old is None or new is None or drivers_changed(old, new):
                driver_changes.append(row)
        return driver_changes

    async def _dropped_by_merges(
        self, changes: Sequence[CommitChange], made: Sequence[CommitChange], new: Parents
    ) -> list[CommitChange]:
        """Guarded files of which a merge drops what one side changed: it would undo that when it is merged back."""
        own = {(row.commit, row.path) for row in made}
        of_merges: dict[str, list[CommitChange]] = defaultdict(list)
        for row in changes:
            guarded = self._is_guarded(row) or is_attributes(row.path)
            if guarded and (row.commit, row.path) not in own:
                of_merges[row.commit].append(row)
        lost: list[CommitChange] = []
        for commit, rows in of_merges.items():
            if len(new[commit]) > _MAX_PARENTS:
                lost += rows
                continue
            dropped = await self._dropped(commit, new[commit])
            lost += [row for row in rows if row.path in dropped]
        return lost

    async def _dropped(self, commit: str, parents: Sequence[str]) -> set[str]:
        """Paths that a merge has otherwise than a parent which changed them since it parted from another."""
        dropped: set[str] = set()
        for one in parents:
            differing = set(await self._history.differing(one, commit))
            for other in parents:
                if one != other and differing - dropped:
                    base = await self._history.merge_base(one, other)
                    dropped |= differing.intersection(await self._history.differing(base, one))
        return dropped

    async def _diff(self, commits: Sequence[str], paths: Sequence[str]) -> str:
        literal = [f":(literal){path}" for path in paths[:_MAX_PATHS]]
        lines = "".join(f"{commit}\n" for commit in commits)
        ended = await self._history.output(*_DIFF, *literal, stdin=lines, max_bytes=_MAX_DIFF_BYTES)
        text = ended.stdout.decode(errors="replace")
        if len(text) > MAX_DIFF_CHARACTERS or ended.stdout_dropped_bytes or len(paths) > _MAX_PATHS:
            named = ", ".join(map(_readable, paths[:_MAX_NAMED]))
            raise ImportRefused(
                f"the changes of guarded files are too large to review ({named}): more than {MAX_DIFF_CHARACTERS} characters or "
                f"{_MAX_PATHS} files; change fewer of them at a time"
            )
        return text


class NamedBySettings(NamedTuple):
    """Places of the checkout that the user's git settings name, from its top on."""

    hooks: list[str]
    """Folders that git takes hooks from."""
    settings: list[str]
    """Files of settings that are included."""


async def named_by_settings(git: Git, record: WorkspaceRecord) -> NamedBySettings:
    command = ("config", "--null", "--show-scope", "--show-origin", "--includes")
    patterns = ("--get-regexp", rf"^core\.hookspath$|{INCLUDES}")
    paths = "--type=path"
    ended = await git.run(
        *command, paths, *patterns, git_dir=record.git_dir, user_settings=True, accept=(0, 1, 128)
    )
    if ended.exit_code == 128:  # the home of some user in one of them is not known
        ended = await git.run(
            *command, *patterns, git_dir=record.git_dir, user_settings=True, accept=(0, 1)
        )
    fields = ended.stdout.decode(errors="surrogateescape").split("\0")
    hooks, settings = [], []
    for scope, origin, row in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        key, _, value = row.partition("\n")
        value = os.path.expanduser(value)  # noqa: PTH111, ASYNC240 — reads no file
        if key != "core.hookspath":
            # Relative ones count from the file that includes them.
            settings.append(posixpath.join(posixpath.dirname(origin.removeprefix("file:")), value))
        elif scope != "command":  # our own hardening
            hooks.append(value)
    inside = [
        [inner for value in values if (inner := _inside(value, record.repository))]
        for values in (hooks, settings)
    ]
    return NamedBySettings(*inside)


def _inside(path: str, repository: str) -> str:
    """A folder as it is from the top of the checkout on; empty when it is not in it."""
    inner = os.path.relpath(posixpath.join(repository, path), repository)
    return inner if is_inside(inner) else ""


def _what(path: str, rows: Sequence[CommitChange]) -> str:
    of_path = [row for row in rows if row.path == path]
    first, last = of_path[0], of_path[-1]
    if last.new_mode == NO_FILE:
        return "removed" if first.old_mode != NO_FILE else "added and removed again"
    if first.old_mode == NO_FILE:
        return "new link" if last.new_mode == LINK else "new"
    if LINK in (first.old_mode, last.new_mode):
        return "link changed"
    if first.old_blob == last.blob and first.old_mode == last.new_mode:
        return "changed and changed back"
    if first.old_mode != last.new_mode:
        return f"changed, mode {first.old_mode} to {last.new_mode}"
    return "changed"


def _readable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")
