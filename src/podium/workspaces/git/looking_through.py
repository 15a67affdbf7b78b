"""Looking through what commits add, before they come back: every line, every name of a file, all of the commit itself.

A commit's own words are read as git stores them and its lines as git shows them, never both in one text: whatever
an agent writes into a message cannot be taken for git's words.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from podium.domain.launching import Ended
from podium.domain.workspaces import LookedThrough, Sighting
from podium.workspaces.git.desk import Desk

MOST_BYTES = 64_000_000
_MOST_FOUND = 1_000
_MOST_ALIKE = 10
"""More lines of one file with the same in them tell nothing new."""
_COMMIT = "\0commit "
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_LISTED = ("rev-list", "--reverse", "--topo-order", "--parents", "--stdin")
_SHOWN = (
    "--format=%x00commit %H", "--patch", "--unified=0",
    "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv",
    # Whatever attributes and NUL bytes say: both are the agent's.
    "--text", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules", "--stdin",
)  # fmt: skip
_WALKED = ("log", "--reverse", "--topo-order", *_SHOWN)
_ONE_BY_ONE = ("log", "--no-walk=unsorted", *_SHOWN)
_AS_SOLVED, _BY_PARENT = "--diff-merges=remerge", "-m"
"""Of a merge: what somebody wrote to solve it. A git before 2.35 shows all that it brings, the user's lines too."""
_NAMED_ANEW = ("rename to ", "copy to ")
_IDS = ("tree ", "parent ")

Find = Callable[[str], Sequence[str]]


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


async def look_through(desk: Desk, tip: str, known: Sequence[str], find: Find) -> LookedThrough:
    """Of very much, the beginning: what was not looked at may be anything."""
    wanted = [tip, *(f"^{each}" for each in known)]
    listed = await _git(desk, _LISTED, wanted)
    rows = [row.split() for row in listed.stdout.decode().splitlines()]
    if listed.stdout_dropped_bytes:
        return LookedThrough(whole=False)
    raw = await _git(desk, ("cat-file", "--batch"), [row[0] for row in rows])
    shown = await _shown(desk, wanted, [row[0] for row in rows if len(row) > 3])
    texts = [each.stdout for each in shown]
    found = await asyncio.to_thread(lambda: _found(raw.stdout, texts, _with_wide(find)))
    cut = any(each.stdout_dropped_bytes for each in (raw, *shown))
    return LookedThrough(
        found=tuple(found[:_MOST_FOUND]), whole=not cut and len(found) <= _MOST_FOUND
    )


async def _shown(desk: Desk, wanted: Sequence[str], many: Sequence[str]) -> list[Ended]:
    """The lines of all commits. git solves no merge of more than two again, and shows nothing of `many`."""
    solved = await _git(desk, (*_WALKED, _AS_SOLVED), wanted, accept=(0, 128, 129))
    if solved.exit_code != 0:
        return [await _git(desk, (*_WALKED, _BY_PARENT), wanted)]
    return [solved, *([await _git(desk, (*_ONE_BY_ONE, _BY_PARENT), many)] if many else [])]


async def _git(
    desk: Desk, words: Sequence[str], asked: Sequence[str], accept: Sequence[int] = (0,)
) -> Ended:
    return await desk.run(
        *words, stdin="".join(f"{each}\n" for each in asked).encode(),
        # A commit graph lies beside the objects, and may say anything of what commits hold.
        settings=("core.quotePath=false", "core.commitGraph=false"),
        output_bytes=MOST_BYTES, cut=True, accept=accept,
    )  # fmt: skip


def _with_wide(find: Find) -> Find:
    """Find also what has a NUL beside each letter, as UTF-16 and UTF-32 write it."""

    def both(text: str) -> Sequence[str]:
        if "\0" not in text:
            return find(text)
        return tuple(dict.fromkeys([*find(text), *find(text.replace("\0", ""))]))

    return both


def _found(raw: bytes, shown: Sequence[bytes], find: Find) -> list[Sighting]:
    """At most one more than are told."""
    commits = {each.commit: each for each in _commits(raw)}
    for text in shown:
        _add_lines(commits, text.decode(errors="replace").split("\n"))
    return list(islice(_without_more_alike(_sightings(commits, find)), _MOST_FOUND + 1))


def _without_more_alike(sightings: Iterator[Sighting]) -> Iterator[Sighting]:
    times: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for each in sightings:
        times[each.path, each.what] += 1
        if times[each.path, each.what] <= _MOST_ALIKE:
            yield each


def _sightings(commits: Mapping[str, _Seen], find: Find) -> Iterator[Sighting]:
    for seen in commits.values():
        # One look at all of it: there is seldom anything.
        if find("\n".join(line for piece in seen.pieces for line in piece.lines)):
            for piece in seen.pieces:
                yield from _in_piece(seen.commit, piece, find)


def _in_piece(commit: str, piece: _Piece, find: Find) -> Iterator[Sighting]:
    what = tuple(find("\n".join(piece.lines)))
    if not what:
        return
    lines = [(number, tuple(find(line))) for number, line in piece.numbered()]
    # Some take several lines, of which none tells anything by itself.
    for number, told in [each for each in lines if each[1]] or [(piece.line, what)]:
        yield Sighting(commit=commit, path=piece.path, line=number, what=told)


def _commits(raw: bytes) -> Iterator[_Seen]:
    """Head and message of each commit. git says how many bytes one has: nothing in it can end it sooner."""
    at = 0
    while (end := raw.find(b"\n", at)) >= 0:
        name, _, size = raw[at:end].decode().split(" ")
        at = end + 1 + int(size) + 1
        head, _, message = raw[end + 1 : at - 1].decode(errors="replace").partition("\n\n")
        # Ids are nobody's words, and patterns may well fit them.
        told = [line for line in head.split("\n") if not line.startswith(_IDS)]
        yield _Seen(name, [_Piece("", 0, told), _Piece("", 1, message.split("\n"))])


def _add_lines(commits: Mapping[str, _Seen], lines: Sequence[str]) -> None:
    """Within a hunk lines are counted: what an agent wrote can never be taken for git's own words."""
    pieces: list[_Piece] = []
    path, header, removed, added = "", "", 0, 0
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
        elif line.startswith("diff --git "):
            header = line
        elif line.startswith("new file mode "):
            pieces[0].lines.append(header)
        elif line.startswith(_NAMED_ANEW):
            pieces[0].lines.append(line)


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)
