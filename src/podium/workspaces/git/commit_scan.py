"""The scan of commits in quarantine: every line, every name of a file, all of the commit itself.

A commit's own text is read as git stores it and its lines as git shows them, never both in one text: whatever
an agent writes into a message cannot be taken for git's output. Of a merge, the lines that no parent has.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from podium.domain.workspaces import LookedThrough, Sighting
from podium.workspaces.git.history import History
from podium.workspaces.git.judging import NO_FILE, Change, own_changes

MAX_BYTES = 64_000_000
_MAX_SIGHTINGS = 1_000
_MAX_ALIKE = 10
"""More lines of one file with the same in them tell nothing new."""
_COMMIT = "\0commit "
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PATCH = (
    "--patch", "--unified=0", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv",
    # Whatever attributes and NUL bytes say: both are the agent's.
    "--text", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules",
)  # fmt: skip
_PATCHES = ("diff-tree", "--stdin", "--root", "--format=%x00commit %H", *_PATCH)
_IDS = ("tree ", "parent ")

Find = Callable[[str], Sequence[str]]
"""Names what a text holds; empty when it holds nothing."""


@dataclass
class _Piece:
    """Added lines that follow each other, or a part of the commit itself."""

    path: str
    line: int
    lines: list[str] = field(default_factory=list)

    def numbered(self) -> Iterator[tuple[int, str]]:
        """The head of a commit has no lines that anybody counts."""
        for number, line in enumerate(self.lines, self.line):
            yield (number if self.line else 0), line


@dataclass
class _Seen:
    """What one commit adds. The first piece is its head, with the names of new files."""

    commit: str
    pieces: list[_Piece]


async def scan_commits(
    history: History,
    new: Mapping[str, Sequence[str]],
    changes: Sequence[Change],
    find: Find,
    since: str = "",
) -> LookedThrough:
    """Ask `find` of everything that the new commits add. Of more than `MAX_BYTES`, the beginning is scanned.

    Of several without a merge, what they add together `since` that commit is scanned too: the halves of a secret
    may come in different ones.
    """
    merges = {commit for commit, parents in new.items() if len(parents) > 1}
    texts, complete = await history.texts(list(new), MAX_BYTES)
    if not complete:
        return LookedThrough(whole=False)
    plain = [f"{commit}\n" for commit in new if commit not in merges]
    patches = await history.output(*_PATCHES, stdin="".join(plain), max_bytes=MAX_BYTES)
    made = own_changes(changes, new)
    merged = _by_place(changes, [each for each in made if each.commit in merges])
    blobs = {blob for rows in merged.values() for row in rows for blob in (row.old_blob, row.blob)}
    contents, complete = await history.contents(sorted(blobs), MAX_BYTES)
    cut = not complete or bool(patches.stdout_dropped_bytes)

    def scan() -> list[Sighting]:
        commits = {each.commit: each for each in _commits(texts)}
        _add_names(commits, made)
        _add_lines(commits, patches.stdout.decode(errors="replace").split("\n"))
        for (commit, path), rows in merged.items():
            commits[commit].pieces.extend(_in_no_parent(path, rows, contents))
        wide = _with_wide(find)
        return list(islice(_without_more_alike(_sightings(commits, wide)), _MAX_SIGHTINGS + 1))

    found = await asyncio.to_thread(scan)
    if not found and since and len(new) > 1 and not merges:
        together = await history.output(
            "diff-tree", "-r", *_PATCH, since, _tip(new), stdin="", max_bytes=MAX_BYTES
        )
        cut = cut or bool(together.stdout_dropped_bytes)
        found = await asyncio.to_thread(_scan_together, _tip(new), together.stdout, find)
    return LookedThrough(
        found=tuple(found[:_MAX_SIGHTINGS]), whole=not cut and len(found) <= _MAX_SIGHTINGS
    )


def _tip(new: Mapping[str, Sequence[str]]) -> str:
    """The new commit that no other one has for a parent."""
    parents = {parent for each in new.values() for parent in each}
    return next(commit for commit in new if commit not in parents)


def _scan_together(tip: str, patch: bytes, find: Find) -> list[Sighting]:
    seen = {tip: _Seen(tip, [])}
    _add_lines(seen, [f"{_COMMIT}{tip}", *patch.decode(errors="replace").split("\n")])
    return list(islice(_sightings(seen, _with_wide(find)), _MAX_SIGHTINGS + 1))


def _by_place(
    changes: Sequence[Change], made: Sequence[Change]
) -> dict[tuple[str, str], list[Change]]:
    """What merges changed themselves, one row for each parent."""
    wanted = {(each.commit, each.path) for each in made}
    rows: dict[tuple[str, str], list[Change]] = defaultdict(list)
    for change in changes:
        if (change.commit, change.path) in wanted and change.new_mode != NO_FILE:
            rows[change.commit, change.path].append(change)
    return rows


def _in_no_parent(
    path: str, rows: Sequence[Change], contents: Mapping[str, bytes]
) -> Iterator[_Piece]:
    """Lines of a merged file that somebody wrote to solve it."""
    old = {line for row in rows for line in _lines(contents.get(row.old_blob, b""))}
    piece: _Piece | None = None
    for number, line in enumerate(_lines(contents.get(rows[0].blob, b"")), 1):
        if line in old:
            piece = None
            continue
        if piece is None:
            piece = _Piece(_readable(path), number)
            yield piece
        piece.lines.append(line)


def _lines(content: bytes) -> list[str]:
    return content.decode(errors="replace").split("\n")


def _readable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _with_wide(find: Find) -> Find:
    """Find also what has a NUL beside each letter, as UTF-16 and UTF-32 write it."""

    def both(text: str) -> Sequence[str]:
        if "\0" not in text:
            return find(text)
        return tuple(dict.fromkeys([*find(text), *find(text.replace("\0", ""))]))

    return both


def _without_more_alike(sightings: Iterator[Sighting]) -> Iterator[Sighting]:
    times: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for each in sightings:
        times[each.path, each.what] += 1
        if times[each.path, each.what] <= _MAX_ALIKE:
            yield each


def _sightings(commits: Mapping[str, _Seen], find: Find) -> Iterator[Sighting]:
    for seen in commits.values():
        # One look at all of it: there is seldom anything.
        what = find("\n".join(line for piece in seen.pieces for line in piece.lines))
        if not what:
            continue
        pieces = [each for piece in seen.pieces for each in _in_piece(seen.commit, piece, find)]
        # Put together from several places, it is still there.
        yield from pieces or [Sighting(commit=seen.commit, path="", line=0, what=tuple(what))]


def _in_piece(commit: str, piece: _Piece, find: Find) -> Iterator[Sighting]:
    what = tuple(find("\n".join(piece.lines)))
    if not what:
        return
    lines = [(number, tuple(find(line))) for number, line in piece.numbered()]
    # Some take several lines, of which none tells anything by itself.
    for number, told in [each for each in lines if each[1]] or [(piece.line, what)]:
        yield Sighting(commit=commit, path=piece.path, line=number, what=told)


def _commits(texts: Mapping[str, bytes]) -> Iterator[_Seen]:
    """Head and message of each commit. git says how many bytes one has: nothing in it can end it sooner."""
    for name, text in texts.items():
        head, _, message = text.decode(errors="replace").partition("\n\n")
        # Ids are nobody's words, and patterns may well fit them.
        told = [line for line in head.split("\n") if not line.startswith(_IDS)]
        yield _Seen(name, [_Piece("", 0, told), _Piece("", 1, message.split("\n"))])


def _add_names(commits: Mapping[str, _Seen], made: Sequence[Change]) -> None:
    """The names of files that were not there before, as git stores them."""
    for change in made:
        if change.old_mode == NO_FILE and change.commit in commits:
            commits[change.commit].pieces[0].lines.append(_readable(change.path))


def _add_lines(commits: Mapping[str, _Seen], lines: Sequence[str]) -> None:
    """Within a hunk lines are counted: what an agent wrote can never be taken for git's own words."""
    pieces: list[_Piece] = []
    path, removed, added = "", 0, 0
    for line in lines:
        if removed and line.startswith("-"):
            removed -= 1
        elif added and line.startswith("+"):
            removed, added = 0, added - 1
            pieces[-1].lines.append(line[1:])
        elif line.startswith(_COMMIT):
            pieces = commits[line.removeprefix(_COMMIT)].pieces
        elif hunk := _HUNK.match(line):
            removed, added = _count(hunk[1]), _count(hunk[3])
            pieces.append(_Piece(path, int(hunk[2])))
        elif line.startswith("+++ "):
            # Behind a name with a space git puts a tab.
            path = line.removeprefix("+++ ").rstrip("\t").strip('"').removeprefix("b/")


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)
