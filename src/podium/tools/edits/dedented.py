"""A line quoted without its indentation, and several lines in its place.

`find` has no line end and `replace` has: what stands around the match stays, so the first line is
indented by what is there already. Of the others it must be told whether they were written as they
shall stand, or without the indentation that the first one lacks too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.tools.edits.indents import indent_of
from podium.tools.edits.layout import Layout
from podium.tools.edits.matches import Match
from podium.tools.edits.nouns import Candidate, EditRefused, Reason

_OPENS = re.compile(r"(?:[:{(\[]|=>|->|\b(?:then|do))\s*$")
_FIRST_WORD = re.compile(r"[)\]}@<]|#?\w+")
_CLOSES = frozenset([")", "]", "}", "end", "fi", "done", "esac"])
_LEAVES = frozenset(["return", "raise", "throw", "break", "continue", "pass", "}"])
"""Behind these a block is over, so what follows at the margin is meant to stand there."""
_DECLARES = frozenset(
    [
        "def",
        "async",
        "class",
        "@",
        "func",
        "fn",
        "function",
        "export",
        "import",
        "from",
        "public",
        "private",
        "pub",
        "impl",
        "struct",
        "enum",
        "type",
        "interface",
        "#include",
        "module",
        "package",
        "<",
    ]
)


def indented_as_its_line(layout: Layout, match: Match, find: str, replace: str) -> str:
    """What to put there. Raises `EditRefused` when it cannot be told how it shall be indented."""
    if "\n" in find or "\n" not in replace:
        return replace
    line = layout.line_at(match.start)
    before = layout.text[layout.starts[line] : match.start]
    lines = replace.split("\n")
    later = [each for each in lines[1:] if each.strip()]
    if not before or before.strip() or not later or indent_of(lines[0]):
        return replace
    if _stands_as_written(before, lines[0], lines[1:]):
        return replace
    if _lacks_the_same(before, lines[0], lines[1:]):
        return "\n".join(
            [lines[0], *(before + each if each.strip() else each for each in lines[1:])]
        )
    raise EditRefused(
        Reason.DOUBTFUL,
        "`find` leaves out the indentation of its line, and how the further lines of `replace` are to "
        "be indented cannot be told; quote the whole line with its indentation in both",
        [Candidate(line + 1, layout.lines[line])],
    )


def _stands_as_written(own: str, first: str, rest: Sequence[str]) -> bool:
    """Whether the later lines are indented as in the file already."""
    later = [each for each in rest if each.strip()]
    indent = indent_of(later[0])
    if _opens(first):
        # A block that is opened is deeper than the line that opens it.
        return indent.startswith(own) and len(indent) > len(own)
    if indent:
        return True
    leaves = _first_word(first) in _LEAVES and not rest[0].strip()
    return leaves and _first_word(later[0]) in _DECLARES


def _lacks_the_same(own: str, first: str, rest: Sequence[str]) -> bool:
    """Whether they are surely written from the margin on, as the first one is."""
    later = [each for each in rest if each.strip()]
    indent = indent_of(later[0])
    if _opens(first):
        return bool(indent) and ("\t" in indent) == ("\t" in own)
    if indent or not rest[0].strip():
        return False
    at_margin = {_first_word(each) for each in later if not indent_of(each)}
    return not at_margin & (_CLOSES | _DECLARES)


def _opens(line: str) -> bool:
    return _OPENS.search(line) is not None


def _first_word(line: str) -> str:
    found = _FIRST_WORD.match(line)
    return found[0] if found else ""
