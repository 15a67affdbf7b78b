"""Markdown by agents and people: its lines and blocks, and content told from placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

BOLD = 7
"""Level of a line that is bold from end to end: people use it as a heading below all others."""

_MAX_HEADING = 300
_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^`]*)$")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_BOLD = re.compile(r" {0,3}(?:\d{1,3}[.)][ \t]+)?(?:\*\*|__)([^*_]+)(?:\*\*|__)[ \t]*:?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,9}[.)])[ \t]+(?:\[([ xX])\](?:[ \t]+|$))?")
_NOT_A_PARAGRAPH = re.compile(r"\s*(?:$|[-*+>|#]|\d{1,9}[.)]\s)")
_BREAK = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without comments and, of a heading, without its marks."""

    text: str
    level: int = 0
    """Of a heading: 1 to 7. 0: it is none."""
    code: bool = False


_BLANK = Line("")


@dataclass(slots=True)
class Block:
    """A list item or a paragraph, with all that belongs to it."""

    lines: list[str] = field(default_factory=list)
    is_item: bool = False
    checked: bool = False
    headings: tuple[Line, ...] = ()
    """Those it stands under, the outermost first."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def lines_of(text: str) -> list[Line]:
    """The document's lines. Fence marks and comments are left out, code is marked as such."""
    lines: list[Line] = []
    fence, in_comment = "", False
    for raw in _without_front_matter(text.splitlines()):
        if fence:
            if _closes(raw, fence):
                fence = ""
            else:
                lines.append(Line(raw, code=True))
            continue
        if not raw.strip():
            # One says as much as many.
            if lines and lines[-1] is not _BLANK:
                lines.append(_BLANK)
            continue
        visible, in_comment = _without_comments(raw, in_comment)
        if opened := _FENCE.match(visible[:_MAX_HEADING]):
            fence = opened[1]
        elif visible.strip():
            _add(lines, visible)
    return lines


def _without_front_matter(lines: list[str]) -> list[str]:
    if not lines or lines[0].rstrip() != "---":
        return lines
    for number, line in enumerate(lines[1:200], start=1):
        if line.rstrip() == "---":
            return lines[number + 1 :]
    return lines


def _closes(line: str, fence: str) -> bool:
    marker = line.strip()
    return len(marker) >= len(fence) and marker == fence[0] * len(marker)


def _without_comments(line: str, in_comment: bool) -> tuple[str, bool]:
    """Text of the line outside of comments, and whether a comment continues after it."""
    parts: list[str] = []
    at = 0
    while True:
        if in_comment:
            end = line.find("-->", at)
            if end < 0:
                return "".join(parts), True
            at, in_comment = end + 3, False
        start = line.find("<!--", at)
        if start < 0:
            return "".join([*parts, line[at:]]), False
        parts.append(line[at:start])
        at, in_comment = start + 4, True


def _add(lines: list[Line], line: str) -> None:
    if len(line) <= _MAX_HEADING:
        if atx := _ATX.match(line):
            heading = line[atx.end() :].rstrip().rstrip("#").rstrip()
            lines.append(Line(heading, level=len(atx[1])))
            return
        if bold := _BOLD.match(line):
            lines.append(Line(bold[1].strip(), level=BOLD))
            return
        if (underline := _UNDERLINE.match(line)) and _can_be_heading(lines):
            lines[-1] = Line(lines[-1].text.strip(), level=1 if underline[1][0] == "=" else 2)
            return
    lines.append(Line(line))


def _can_be_heading(lines: list[Line]) -> bool:
    if not lines:
        return False
    last = lines[-1]
    free = not last.code and last.level in (0, BOLD) and len(last.text) <= _MAX_HEADING
    alone = len(lines) < 2 or not lines[-2].text.strip() or lines[-2].level > 0
    return free and alone and not _NOT_A_PARAGRAPH.match(last.text)


def blocks_of(lines: Iterable[Line]) -> Iterator[Block]:
    """List items and paragraphs, each under its headings.

    Items within items belong to the outer one; what is checked off inside is left out.
    """
    reader = _BlockReader()
    for line in lines:
        if done := reader.take(line):
            yield done
    if reader.block.text:
        yield reader.block


class _BlockReader:
    def __init__(self) -> None:
        self.block = Block()
        self._headings: tuple[Line, ...] = ()
        self._indent = 0
        self._blank = False
        self._skipped_indent: int | None = None

    def take(self, line: Line) -> Block | None:
        """The block that ended before this line."""
        if line.level:
            outer = tuple(heading for heading in self._headings if heading.level < line.level)
            self._headings = (*outer, line)
            return self._begin()
        if line.code:
            self.block.lines.append(line.text)
            return None
        if not line.text.strip():
            self._blank = True
            return None
        return self._text(line.text)

    def _text(self, text: str) -> Block | None:
        after_blank, self._blank = self._blank, False
        indent = len(text) - len(text.lstrip())
        item = _ITEM.match(text)
        if item and not _BREAK.match(text[:_MAX_HEADING]):
            return self._item(text, item, indent)
        if self._skipped_indent is not None and indent > self._skipped_indent:
            return None
        self._skipped_indent = None
        belongs = self.block.lines and (
            not after_blank or (self.block.is_item and indent > self._indent)
        )
        done = None if belongs else self._begin()
        if not _BREAK.match(text[:_MAX_HEADING]):
            self.block.lines.append(text.strip())
        return done

    def _item(self, text: str, item: re.Match[str], indent: int) -> Block | None:
        checked = (item[2] or "").strip() != ""
        content = text[item.end() :].strip()
        if self.block.is_item and indent > self._indent:
            if self._skipped_indent is not None and indent > self._skipped_indent:
                return None
            self._skipped_indent = indent if checked else None
            if not checked:
                self.block.lines.append(content)
            return None
        self._skipped_indent = None
        done = self._begin(is_item=True, checked=checked)
        self._indent = indent
        self.block.lines.append(content)
        return done

    def _begin(self, *, is_item: bool = False, checked: bool = False) -> Block | None:
        done, self._blank = self.block, False
        self.block = Block(is_item=is_item, checked=checked, headings=self._headings)
        return done if done.text else None


LOOKED_AT = 2_000
"""Characters of a line that are looked at."""

_DECORATION = re.compile(r"^(?:\s*(?:[-*+•>|☐☑]|\d{1,9}[.)]|\[[ xX]?\])(?=\s|$|\|))+|[*_`~]+")
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
    return _DECORATION.sub("", text[:LOOKED_AT]).strip().casefold()


def says_something(text: str) -> bool:
    """True when the line has text other than a placeholder or `none`."""
    content = bare(text)
    if not any(character.isalnum() for character in content):
        return False
    if _NONE.fullmatch(content.rstrip(".! ")):
        return False
    # `<list the files>` is what a template leaves to be filled in; a link or a tuple is not.
    in_brackets = content[0] in "<{" and _IN_BRACKETS.fullmatch(content) and "://" not in content
    return not (_PLACEHOLDER.match(content) or in_brackets)


def says_none(text: str) -> bool:
    """True when the line says `none`, `n/a` or the like."""
    return _NONE.match(bare(text)) is not None


def cells_of(row: str) -> list[str]:
    """The cells of a table's row."""
    return [cell.strip() for cell in row[:LOOKED_AT].strip().strip("|").split("|")]


def is_delimiter(text: str) -> bool:
    """True for the delimiter row below a table's head."""
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
