"""A difference as git writes it, file by file and line by line, for pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from podium.telling.untrusted import shown_line, shown_text

MOST_LINES = 4000
"""That are shown of all files together."""
LONGEST_LINE = 500

Tone = Literal["added", "gone", "hunk", "same"]


@dataclass
class FileDiff:
    """What changes in one file."""

    name: str
    lines: list[tuple[Tone, str]] = field(default_factory=list)
    added: int = 0
    gone: int = 0


@dataclass(frozen=True)
class Diff:
    files: tuple[FileDiff, ...]
    cut: bool
    """Whether there is more than is shown."""


def read_diff(text: str, *, cut: bool = False) -> Diff:
    """The files of a difference, as far as they are shown."""
    files: list[FileDiff] = []
    in_hunk = False
    lines = text.split("\n")
    for line in lines[:MOST_LINES]:
        if line.startswith("diff --git "):
            files.append(FileDiff(_named(line)))
            in_hunk = False
        elif files:
            in_hunk = in_hunk or line.startswith("@@")
            _take(files[-1], line, in_hunk=in_hunk)
    return Diff(tuple(files), cut=cut or len(lines) > MOST_LINES)


def _take(file: FileDiff, line: str, *, in_hunk: bool) -> None:
    tone = _tone(line) if in_hunk else "same"
    if not in_hunk and line.startswith(("index ", "--- ", "+++ ")):
        return
    file.added += tone == "added"
    file.gone += tone == "gone"
    file.lines.append((tone, shown_text(line[:LONGEST_LINE]) + "…" * (len(line) > LONGEST_LINE)))


def _tone(line: str) -> Tone:
    tones: Iterable[tuple[str, Tone]] = (("+", "added"), ("-", "gone"), ("@@", "hunk"))
    return next((tone for mark, tone in tones if line.startswith(mark)), "same")


def _named(line: str) -> str:
    """The file's name of the line that begins its part: git writes it twice there."""
    both = line.removeprefix("diff --git ")
    half = both[: len(both) // 2]
    same = both[len(half) :].strip()
    if half.removeprefix('"').removeprefix("a/") == same.removeprefix('"').removeprefix("b/"):
        return shown_line(half.removeprefix("a/"), LONGEST_LINE)
    return shown_line(both, LONGEST_LINE)
