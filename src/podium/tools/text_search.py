"""Walk of a workspace, globs and text search without following symlinks; also a program (`python -IS`), standard library alone.

Also a program of its own: `python -IS text_search.py` reads one search as JSON from standard input
and prints what it found. A regular expression can take for ever and cannot be interrupted inside
a process, so searches run in a child that the launcher ends. For that this file stands on the
standard library alone.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

IGNORED = frozenset({".git", ".podium"})
"""Names that a walk passes over. In a worktree `.git` is a file."""

MAX_FILES = 100_000
"""A walk ends after so many files."""
MAX_SEARCHED_BYTES = 4_000_000
MAX_LINE = 200
"""Characters of a line that are shown."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def walk(root: str, start: str = ".") -> Iterator[tuple[int, str, str]]:
    """Plain files beneath `start`, in name order: folder handle, name, path relative to `root`.

    A handle is good until the next item. `start` has no symlinks in it; one that appears there
    later is an `OSError`.
    """
    top = _open_folder(root, start)
    prefix = "" if start == "." else f"{start}/"
    try:
        yield from _files(top, prefix)
    finally:
        os.close(top)


def _files(top: int, prefix: str) -> Iterator[tuple[int, str, str]]:
    count = 0
    for folder, folders, files, handle in os.fwalk(".", dir_fd=top, follow_symlinks=False):
        folders[:] = sorted(name for name in folders if name not in IGNORED)
        inner = prefix + ("" if folder == "." else f"{folder[2:]}/")
        for name in sorted(files):
            if name not in IGNORED and _is_plain(handle, name):
                count += 1
                if count > MAX_FILES:
                    return
                yield handle, name, inner + name


def matches(path: str, glob: str) -> bool:
    """Check that a glob matches a relative path. `**` stands for any folders; `*` stays within a name.

    A glob without a slash is held against the file's name alone.
    """
    if "/" not in glob:
        return fnmatch.fnmatchcase(path.rsplit("/", 1)[-1], glob)
    return _fits(path.split("/"), glob.strip("/").split("/"))


def search(request: dict[str, Any]) -> dict[str, Any]:
    """Lines that a regular expression finds in the listed files, up to `limit`, with their places.

    Of a search that stopped at its limit, `stopped_in_file` is the number of the file that it was in.
    """
    pattern = re.compile(request["pattern"], 0 if request["case_sensitive"] else re.IGNORECASE)
    hits: list[dict[str, Any]] = []
    searched = skipped = 0
    for path, text in _texts(request["root"], request["files"]):
        if text is None:
            skipped += 1
            continue
        searched += 1
        for number, line in enumerate(text.split("\n"), 1):
            if not pattern.search(line):
                continue
            if len(hits) == request["limit"]:
                answer = _answer(hits, searched, skipped, complete=False)
                total = len(request["files"]) if request["whole"] else None
                return {**answer, "stopped_in_file": searched + skipped, "files_total": total}
            excerpt = line[: request["longest_line"]]
            whole = len(excerpt) == len(line)
            hits.append({"path": path, "line": number, "text": excerpt, "whole": whole})
    return _answer(hits, searched, skipped, complete=request["whole"])


def _answer(
    hits: list[dict[str, Any]], searched: int, skipped: int, *, complete: bool
) -> dict[str, Any]:
    return {
        "matches": hits,
        "files_searched": searched,
        "files_skipped": skipped,
        "complete": complete,
    }


def _texts(root: str, files: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each file with its text. Folders are opened one by one from the root, never by a symlink."""
    for folder, paths in groupby(files, key=os.path.dirname):
        try:
            handle = _open_folder(root, folder or ".")
        except OSError:
            yield from ((path, None) for path in paths)
            continue
        try:
            for path in paths:
                yield path, _text_of(handle, path.rpartition("/")[2])
        finally:
            os.close(handle)


def _open_folder(root: str, start: str) -> int:
    handle = os.open(root, _FOLDER)
    for part in [] if start == "." else start.split("/"):
        try:
            deeper = os.open(part, _FOLDER, dir_fd=handle)
        finally:
            os.close(handle)
        handle = deeper
    return handle


def _is_plain(folder: int, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _text_of(folder: int, name: str) -> str | None:
    """The file's text; None when it is too large, not text, no plain file, or cannot be read."""
    try:
        handle = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return None
    with open(handle, "rb") as file:  # noqa: PTH123 - a handle, not a path
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        content = file.read(MAX_SEARCHED_BYTES + 1)
    if len(content) > MAX_SEARCHED_BYTES or b"\0" in content[:8192]:
        return None
    return content.decode(errors="replace")


def _fits(parts: Sequence[str], globs: Sequence[str]) -> bool:
    """Keeps the set of path lengths that the globs so far can stand for: no backtracking."""
    reached = {0}
    for glob in globs:
        if glob == "**":
            shortest = min(reached, default=len(parts) + 1)
            reached = set(range(shortest, len(parts) + 1))
        else:
            reached = {
                length + 1
                for length in reached
                if length < len(parts) and fnmatch.fnmatchcase(parts[length], glob)
            }
    return len(parts) in reached


def main() -> None:
    try:
        result = search(json.loads(sys.stdin.buffer.read()))
    except OSError as error:
        sys.exit(f"{error.strerror}: {error.filename!r}")
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
