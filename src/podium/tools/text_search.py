"""Walk of a workspace, globs and text search without following symlinks.

Also a program of its own, see `search_command`: it reads one search as JSON from standard input and prints
the matches. A regular expression can take for ever and cannot be interrupted inside a process, so searches
run in a child that the launcher ends. For a quick start this file needs the standard library and
`podium.platform` alone.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

from podium.platform.safe_open import open_folder, read_start, status_at

IGNORED = frozenset({".git", ".podium"})
"""Names that a walk passes over. In a worktree `.git` is a file."""

MAX_FILES = 100_000
"""A walk ends after so many files."""
MAX_SEARCHED_BYTES = 4_000_000
MAX_LINE = 200
"""Characters of a line that are shown."""

_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from podium.tools.text_search import main; main()"
)


def search_command() -> tuple[str, ...]:
    """Return the command of the search program. Nothing around it, such as variables, changes what it imports."""
    return sys.executable, "-IS", "-c", _PROGRAM, str(Path(__file__).parents[2])


def walk(root: str, start: str = ".") -> Iterator[tuple[int, str, str]]:
    """Plain files beneath `start`, in name order: folder handle, name, path relative to `root`.

    A handle is good until the next item. `start` has no symlinks in it; one that appears there
    later is an `OSError`.
    """
    prefix = "" if start == "." else f"{start}/"
    with open_folder(root, start) as top:
        yield from _files(top, prefix)


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
        with ExitStack() as stack:
            try:
                handle = stack.enter_context(open_folder(root, folder))
            except OSError:
                yield from ((path, None) for path in paths)
                continue
            for path in paths:
                yield path, _text_of(handle, path.rpartition("/")[2])


def _is_plain(folder: int, name: str) -> bool:
    status = status_at(folder, name)
    return status is not None and stat.S_ISREG(status.st_mode)


def _text_of(folder: int, name: str) -> str | None:
    """The file's text; None when it is too large, not text, no plain file, or cannot be read."""
    try:
        content = read_start(name, MAX_SEARCHED_BYTES + 1, folder)
    except OSError:
        return None
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
