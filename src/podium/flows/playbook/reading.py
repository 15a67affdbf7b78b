"""The text of a playbook's page → its front matter, steps, and what it includes. Nothing is opened here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from podium.domain.playbooks import PlaybookStep
from podium.flows.playbook.templating import fence_after

INCLUDE = "include"
"""The language of a code block whose lines are other pages, to be put in its place."""
LONGEST_LINE = 10_000
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
    code: bool = False
    before: int = 0
    """How many characters of the line stand before the text."""


@dataclass
class Page:
    """One file of Markdown, read."""

    front: str = ""
    """The YAML between the marks, moved down so that its lines keep their numbers. Empty: none."""
    title: PageLine | None = None
    lines: list[PageLine] = field(default_factory=list)
    faults: list[PageFault] = field(default_factory=list)


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
            self._includes = line.strip().lstrip("`~").strip() == INCLUDE
            self._fenced_at = number
        if not self._includes:
            self._add(PageLine(number, line.rstrip(), code=True))
        elif before and self._fence and line.strip():
            self._add(PageLine(number, "", include=line.strip()))

    def end(self) -> None:
        if self._fence:
            self._fault(
                self._fenced_at, 1, "the code block never ends; close it with its own fence"
            )
        if self._comment_at:
            self._fault(*self._comment_at, "the comment never ends; close it with `-->`")

    def _prose(self, number: int, line: str) -> None:
        if atx := _ATX.match(line):
            words = _CLOSING_MARKS.sub("", line[atx.end() :]).strip()
            if not words:
                self._fault(number, 1, "the heading says nothing; write what the step is")
            self._add(PageLine(number, words, level=len(atx[1]), before=atx.end()))
        elif (mark := _UNDERLINE.match(line)) and self._can_be_heading():
            above = self._page.lines[-1]
            words = above.text.strip()
            self._page.lines[-1] = replace(
                above,
                text=words,
                level=1 if mark[1][0] == "=" else 2,
                before=above.text.index(words),
            )
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
    plain = not line.level and not line.code
    return plain and bool(line.text.strip()) and not _NO_PARAGRAPH.match(line.text)


def _set_levels(page: Page) -> None:
    """Make the highest headings steps. One that stands alone above all others is the page's title."""
    headings = [line for line in page.lines if line.level]
    highest = min((line.level for line in headings), default=0)
    alone = [line for line in headings if line.level == highest] == headings[:1]
    others = len(headings) > 1 or any(line.include for line in page.lines)
    if headings and alone and others:
        page.title = headings[0]
        page.lines.remove(headings[0])
        highest = min((line.level for line in headings[1:]), default=0)
    page.lines = [
        replace(line, level=line.level - highest + 1) if line.level else line for line in page.lines
    ]


def steps_of(lines: Iterable[tuple[str, PageLine]]) -> tuple[str, tuple[PlaybookStep, ...]]:
    """What stands before the first step, and the steps, of lines that each come with their file."""
    parts: list[tuple[str, PageLine, list[str]]] = []
    introduction: list[str] = []
    for file, line in lines:
        if line.level == 1:
            parts.append((file, line, []))
            continue
        marks = "#" * min(6, line.level + 1)
        text = f"{marks} {line.text}" if line.level else line.text
        (parts[-1][2] if parts else introduction).append(text)
    steps = (
        PlaybookStep(title=heading.text, text=_joined(texts), file=file, line=heading.number)
        for file, heading, texts in parts
    )
    return _joined(introduction), tuple(steps)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n")
