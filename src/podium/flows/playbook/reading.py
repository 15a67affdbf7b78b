"""The text of a playbook's page → its front matter, steps, and what it includes. Nothing is opened here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from podium.domain.playbooks import LONGEST_TEXT
from podium.flows.playbook.templating import FENCE, fence_after

INCLUDE = "include"
"""The language of a code block whose lines are other pages, to be put in its place."""
LONGEST_LINE = 10_000
LARGEST_PAGE_BYTES = 2 * LONGEST_TEXT
MOST_FRONT_LINES = 2_000

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_CLOSING_MARKS = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(r" {4}|\t|\s*(?:[-*+>|#]|\d{1,9}[.)])(?:\s|$)")


@dataclass(frozen=True)
class PageFault:
    """What is wrong with a page, and where, counted from 1."""

    line: int
    column: int
    problem: str


@dataclass(frozen=True)
class PageLine:
    """A line of a page's body."""

    number: int
    text: str
    """Of a heading its words alone."""
    level: int = 0
    """Of a heading: 1 for a step, more for what is within it. Else 0."""
    include: str = ""
    """The page that stands in this line's place."""


@dataclass
class Page:
    """One file of Markdown, read."""

    front: str = ""
    """The YAML between the marks, moved down so that its lines keep their numbers. Empty: none."""
    title: str = ""
    lines: list[PageLine] = field(default_factory=list)
    faults: list[PageFault] = field(default_factory=list)

    @property
    def has_steps(self) -> bool:
        return any(line.level or line.include for line in self.lines)


def read_page(text: str) -> Page:
    """Read a page. What is wrong with it is in its `faults`, all at once."""
    page = Page()
    lines = re.split(r"\r\n?|\n", text.removeprefix("\ufeff"))
    first = _take_front_matter(page, lines)
    body = _Body(page)
    for number, line in enumerate(lines[first:], start=first + 1):
        if len(line) > LONGEST_LINE:
            page.faults.append(
                PageFault(number, 1, f"the line is longer than {LONGEST_LINE} characters; fold it")
            )
        body.take(number, line[:LONGEST_LINE])
    body.end()
    _set_levels(page)
    return page


def _take_front_matter(page: Page, lines: list[str]) -> int:
    """How many lines the front matter takes, its marks included."""
    if lines[0].rstrip() != "---":
        return 0
    for number, line in enumerate(lines[1 : MOST_FRONT_LINES + 1], start=1):
        if line.rstrip() in ("---", "..."):
            page.front = "\n" + "\n".join(lines[1:number]) + "\n"
            return number + 1
    page.faults.append(PageFault(1, 1, "the front matter never ends; put `---` on a line after it"))
    return len(lines)


class _Body:
    """Goes through the lines, knowing what is code and what a comment."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._fence = ""
        self._fenced_at = 0
        self._includes = False
        self._comment_at: tuple[int, int] | None = None

    def take(self, number: int, line: str) -> None:
        if not self._fence:
            line = self._without_comments(number, line)
        before, self._fence = self._fence, fence_after(line, self._fence)
        if not before and not self._fence:
            self._prose(number, line.rstrip())
            return
        if not before:
            opened = FENCE.match(line)
            self._includes = bool(opened) and line.strip().lstrip("`~").strip() == INCLUDE
            self._fenced_at = number
        if not self._includes:
            self._add(PageLine(number, line.rstrip()))
        elif before and self._fence and line.strip():
            self._add(PageLine(number, "", include=line.strip()))

    def end(self) -> None:
        if self._fence:
            self._fault(self._fenced_at, 1, "the code block never ends; close it with its own fence")
        if self._comment_at:
            self._fault(*self._comment_at, "the comment never ends; close it with `-->`")

    def _prose(self, number: int, line: str) -> None:
        if atx := _ATX.match(line):
            words = _CLOSING_MARKS.sub("", line[atx.end() :]).strip()
            if not words:
                self._fault(number, 1, "the heading says nothing; write what the step is")
            self._add(PageLine(number, words, level=len(atx[1])))
        elif (mark := _UNDERLINE.match(line)) and self._can_be_heading():
            above = self._page.lines[-1]
            level = 1 if mark[1][0] == "=" else 2
            self._page.lines[-1] = PageLine(above.number, above.text.strip(), level=level)
        else:
            self._add(PageLine(number, line))

    def _can_be_heading(self) -> bool:
        """Only one line of plain words, alone, is made a heading by the marks beneath it."""
        lines = self._page.lines
        if not lines or not _is_words(lines[-1]):
            return False
        return len(lines) < 2 or not _is_words(lines[-2])

    def _without_comments(self, number: int, line: str) -> str:
        """The line with blanks for comments, so that the rest stays in its column."""
        kept = ""
        while len(kept) < len(line):
            at = len(kept)
            mark = "-->" if self._comment_at else "<!--"
            found = line.find(mark, at)
            end = len(line) if found < 0 else found + (3 if self._comment_at else 0)
            kept += " " * (end - at) if self._comment_at else line[at:end]
            if found < 0:
                break
            self._comment_at = None if self._comment_at else (number, found + 1)
        return kept

    def _add(self, line: PageLine) -> None:
        self._page.lines.append(line)

    def _fault(self, line: int, column: int, problem: str) -> None:
        self._page.faults.append(PageFault(line, column, problem))


def _is_words(line: PageLine) -> bool:
    return bool(line.text.strip()) and not line.level and not _NO_PARAGRAPH.match(line.text)


def _set_levels(page: Page) -> None:
    """Make the highest headings steps. One that stands alone above all others is the page's title."""
    headings = [line for line in page.lines if line.level]
    highest = min((line.level for line in headings), default=0)
    alone = [line for line in headings if line.level == highest] == headings[:1]
    others = len(headings) > 1 or any(line.include for line in page.lines)
    if headings and alone and others:
        page.title = headings[0].text
        page.lines.remove(headings[0])
        highest = min((line.level for line in headings[1:]), default=0)
    page.lines = [_relative(line, highest) for line in page.lines]


def _relative(line: PageLine, highest: int) -> PageLine:
    return PageLine(
        line.number,
        line.text,
        level=line.level - highest + 1 if line.level else 0,
        include=line.include,
    )


def stray_lines(page: Page) -> Iterator[PageLine]:
    """Lines that stand after an included page and before the next heading: they would belong to its last step."""
    after = False
    for line in page.lines:
        if line.level:
            after = False
        elif line.include:
            after = True
        elif after and line.text.strip():
            yield line
            after = False
