"""Looking through the lines that commits add, before they come back: commit by commit, as git shows them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from podium.domain.launching import Ended
from podium.domain.workspaces import LookedThrough, Sighting
from podium.workspaces.git.desk import Desk

MOST_BYTES = 64_000_000
_MOST_FOUND = 50
_COMMIT = "\0commit "
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_SHOWN = (
    "log", "--reverse", "--topo-order", "--format=%x00commit %H%n%B", "--patch", "--unified=0",
    "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv",
    # Whatever attributes and NUL bytes say: both are the agent's.
    "--text", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules", "--stdin",
)  # fmt: skip
_AS_SOLVED, _BY_PARENT = "--diff-merges=remerge", "-m"
"""Of a merge: what somebody wrote to solve it. A git before 2.35 shows all that it brings, the user's lines too."""

Find = Callable[[str], Sequence[str]]


@dataclass
class _Piece:
    """Added lines that follow each other, or a commit's message."""

    path: str
    line: int
    lines: list[str] = field(default_factory=list)


@dataclass
class _Seen:
    """What one commit adds."""

    commit: str
    pieces: list[_Piece]


async def look_through(desk: Desk, tip: str, known: Sequence[str], find: Find) -> LookedThrough:
    """Of very much, the beginning."""
    ended = await _shown(desk, tip, known, _AS_SOLVED, accept=(0, 128, 129))
    if ended.exit_code != 0:
        ended = await _shown(desk, tip, known, _BY_PARENT)
    text = ended.stdout.decode(errors="replace")
    found = await asyncio.to_thread(lambda: list(_sightings(text, find)))
    whole = not ended.stdout_dropped_bytes and len(found) <= _MOST_FOUND
    return LookedThrough(found=tuple(found[:_MOST_FOUND]), whole=whole)


async def _shown(
    desk: Desk, tip: str, known: Sequence[str], merges: str, accept: Sequence[int] = (0,)
) -> Ended:
    wanted = "".join([f"{tip}\n", *(f"^{each}\n" for each in known)])
    return await desk.run(
        *_SHOWN, merges, stdin=wanted.encode(), settings=("core.quotePath=false",),
        output_bytes=MOST_BYTES, cut=True, accept=accept,
    )  # fmt: skip


def _sightings(text: str, find: Find) -> Iterator[Sighting]:
    for seen in _commits(text.split("\n")):
        # One look at all of it: there is seldom anything.
        if find("\n".join(line for piece in seen.pieces for line in piece.lines)):
            for piece in seen.pieces:
                yield from _in_piece(seen.commit, piece, find)


def _in_piece(commit: str, piece: _Piece, find: Find) -> Iterator[Sighting]:
    what = tuple(find("\n".join(piece.lines)))
    if not what:
        return
    lines = [(number, tuple(find(line))) for number, line in enumerate(piece.lines, piece.line)]
    # Some take several lines, of which none tells anything by itself.
    for number, told in [each for each in lines if each[1]] or [(piece.line, what)]:
        yield Sighting(commit=commit, path=piece.path, line=number, what=told)


def _commits(lines: Sequence[str]) -> Iterator[_Seen]:
    """Within a hunk lines are counted: what an agent wrote can never be taken for git's own words."""
    seen, path, removed, added = None, "", 0, 0
    for line in lines:
        if removed and line.startswith("-"):
            removed -= 1
        elif added and line.startswith("+") and seen is not None:
            removed, added = 0, added - 1
            seen.pieces[-1].lines.append(line[1:])
        elif line.startswith(_COMMIT):
            if seen is not None:
                yield seen
            seen, path = _Seen(line.removeprefix(_COMMIT), [_Piece("", 1)]), ""
        elif seen is not None and (hunk := _HUNK.match(line)) and path:
            removed, added = _count(hunk[1]), _count(hunk[3])
            seen.pieces.append(_Piece(path, int(hunk[2])))
        elif line.startswith("+++ "):
            # Behind a name with a space git puts a tab.
            path = line.removeprefix("+++ ").rstrip("\t").strip('"').removeprefix("b/")
        elif seen is not None and not path:
            seen.pieces[0].lines.append(line)
    if seen is not None:
        yield seen


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)
