"""Telling what stands in a section from what only keeps its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from podium.flows.pipeline.markdown import Line

LOOKED_AT = 2_000
"""Characters of a line that are looked at."""

_MARKS = re.compile(r"^(?:\s*(?:[-*+•>|☐☑]|\d{1,9}[.)]|\[[ xX]?\])(?=\s|$|\|))+|[*_`~]+")
_PLACEHOLDER = re.compile(
    r"""(?: tb[adc]\b | to[- ]?do\b(?!\s+list) | fixme\b | wip\b | x{3,}\b | placeholder\b
        | to\s+be\s+(?:determined|decided|defined|done|added|written|filled|completed|confirmed|specified)\b
        | (?:to\s+)?fill\s+(?:this\s+|me\s+)?in\b | coming\s+soon\b | not\s+yet\s+(?:written|defined|known)\b
        | lorem\s+ipsum\b | (?:will|shall)\s+be\s+(?:added|written|defined|determined)\b )""",
    re.VERBOSE,
)
_IN_BRACKETS = re.compile(r"[<\[{(][^<>\[\]{}()]{0,200}[>\]})]\s*[.:]?$")
_NONE = re.compile(
    r"(?:none|n/?a|not applicable|nothing|no(?:ne)? (?:\w+ ){0,4}(?:needed|required))\b"
)
_DELIMITER_ROW = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?\s*$")


def bare(text: str) -> str:
    """The line's words without list marks and emphasis, in lower case."""
    return _MARKS.sub("", text[:LOOKED_AT]).strip().casefold()


def says_something(text: str) -> bool:
    """Whether the line holds words that are no placeholder and not just `none`."""
    words = bare(text)
    if not any(letter.isalnum() for letter in words):
        return False
    if _NONE.fullmatch(words.rstrip(".! ")):
        return False
    # `<list the files>` is what a template leaves to be filled in; a link or a tuple is not.
    in_brackets = words[0] in "<{" and _IN_BRACKETS.fullmatch(words) and "://" not in words
    return not (_PLACEHOLDER.match(words) or in_brackets)


def says_none(text: str) -> bool:
    """Whether the line says that there is nothing to say."""
    return _NONE.match(bare(text)) is not None


def cells_of(row: str) -> list[str]:
    """The cells of a table's row."""
    return [cell.strip() for cell in row[:LOOKED_AT].strip().strip("|").split("|")]


def is_delimiter(text: str) -> bool:
    """Whether this is the row that makes the one above it a table's head."""
    return "|" in text and "-" in text and _DELIMITER_ROW.match(text[:LOOKED_AT]) is not None


def solid(body: Sequence[Line]) -> Iterator[Line]:
    """Lines that can hold something: no headings, and of tables no heads."""
    for number, line in enumerate(body):
        if line.level:
            continue
        follows = body[number + 1].text if number + 1 < len(body) else ""
        if (
            not line.code
            and "|" in line.text
            and (is_delimiter(line.text) or is_delimiter(follows))
        ):
            continue
        if "|" in line.text and line.text.lstrip().startswith("|"):
            yield Line(" ".join(cell for cell in cells_of(line.text) if says_something(cell)))
        else:
            yield line
