"""Pages of a playbook: front matter, steps and includes; no page outside the root is read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path

from podium.core.errors import ConfigInvalid, ConfigProblem
from podium.jobs.playbook.models import PlaybookStep
from podium.jobs.playbook.template import fence_after

INCLUDE = "include"
"""The language of a code block whose lines are other pages, to be put in its place."""
MAX_LINE = 10_000
MAX_FRONT_LINES = 2_000

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(r" {4}|\t|\s*(?:[-*+>|#]|\d{1,9}[.)])(?:\s|$)")


@dataclass(frozen=True)
class PageProblem:
    """Problem of a page, with line and column counted from 1."""

    line: int
    column: int
    problem: str


@dataclass(frozen=True)
class PageLine:
    """A line of a page's body."""

    number: int
    text: str
    """Without the markup of a heading."""
    level: int = 0
    """Level of a heading: 1 for a step, more within it. Else 0."""
    include: str = ""
    """Page included in place of this line."""
    code: bool = False
    before: int = 0
    """Number of characters before the text."""


@dataclass
class MarkdownPage:
    """One file of Markdown, read."""

    front: str = ""
    """The YAML between the marks, moved down so that its lines keep their numbers. Empty: none."""
    title: PageLine | None = None
    lines: list[PageLine] = field(default_factory=list)
    problems: list[PageProblem] = field(default_factory=list)


def read_page(text: str) -> MarkdownPage:
    """Parse a page. Its `problems` list all that is wrong with it."""
    page = MarkdownPage()
    lines = re.split(r"\r\n?|\n", text.removeprefix("\ufeff"))
    first = _take_front_matter(page, lines)
    body = _BodyParser(page)
    for number, line in enumerate(lines[first:], start=first + 1):
        if len(line) > MAX_LINE:
            page.problems.append(
                PageProblem(number, 1, f"the line is longer than {MAX_LINE} characters; wrap it")
            )
        body.take(number, line[:MAX_LINE])
    body.end()
    _set_levels(page)
    return page


def _take_front_matter(page: MarkdownPage, lines: list[str]) -> int:
    """Take the front matter. Returns its number of lines, delimiters included."""
    if lines[0].rstrip() != "---":
        return 0
    for number, line in enumerate(lines[1 : MAX_FRONT_LINES + 1], start=1):
        if line.rstrip() in ("---", "..."):
            page.front = "\n" + "\n".join(lines[1:number]) + "\n"
            return number + 1
    page.problems.append(
        PageProblem(1, 1, "the front matter is not closed; put `---` on a line after it")
    )
    return len(lines)


class _BodyParser:
    """Parses the body line by line, with code blocks and comments."""

    def __init__(self, page: MarkdownPage) -> None:
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
            self._report(
                self._fenced_at, 1, "the code block is not closed; close it with the same fence"
            )
        if self._comment_at:
            self._report(*self._comment_at, "the comment is not closed; close it with `-->`")

    def _prose(self, number: int, line: str) -> None:
        if atx := _ATX.match(line):
            title = _CLOSING_HASHES.sub("", line[atx.end() :]).strip()
            if not title:
                self._report(number, 1, "the heading is empty; name the step")
            self._add(PageLine(number, title, level=len(atx[1]), before=atx.end()))
        elif (underline := _UNDERLINE.match(line)) and self._can_be_heading():
            above = self._page.lines[-1]
            title = above.text.strip()
            self._page.lines[-1] = replace(
                above,
                text=title,
                level=1 if underline[1][0] == "=" else 2,
                before=above.text.index(title),
            )
        else:
            self._add(PageLine(number, line))

    def _can_be_heading(self) -> bool:
        """Check if the last line can be a heading: a single line of plain text."""
        lines = self._page.lines
        if not lines or not _is_prose(lines[-1]):
            return False
        return len(lines) < 2 or not _is_prose(lines[-2])

    def _without_comments(self, number: int, line: str) -> str:
        """Replace comments by blanks, so that the rest keeps its column."""
        visible = ""
        while len(visible) < len(line):
            at = len(visible)
            delimiter = "-->" if self._comment_at else "<!--"
            position = line.find(delimiter, at)
            end = len(line) if position < 0 else position + (3 if self._comment_at else 0)
            visible += " " * (end - at) if self._comment_at else line[at:end]
            if position < 0:
                break
            self._comment_at = None if self._comment_at else (number, position + 1)
        return visible

    def _add(self, line: PageLine) -> None:
        self._page.lines.append(line)

    def _report(self, line: int, column: int, problem: str) -> None:
        self._page.problems.append(PageProblem(line, column, problem))


def _is_prose(line: PageLine) -> bool:
    plain = not line.level and not line.code
    return plain and bool(line.text.strip()) and not _NO_PARAGRAPH.match(line.text)


def _set_levels(page: MarkdownPage) -> None:
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
    """Split lines, each with its file, into the introduction and the steps."""
    parts: list[tuple[str, PageLine, list[str]]] = []
    introduction: list[str] = []
    for file, line in lines:
        if line.level == 1:
            parts.append((file, line, []))
            continue
        hashes = "#" * min(6, line.level + 1)
        text = f"{hashes} {line.text}" if line.level else line.text
        (parts[-1][2] if parts else introduction).append(text)
    steps = (
        PlaybookStep(title=heading.text, text=_joined(texts), file=file, line=heading.number)
        for file, heading, texts in parts
    )
    return _joined(introduction), tuple(steps)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n")


MAX_FILE_BYTES = 200_000
MAX_WHOLE = 500_000
"""Characters of all pages together, each counted as often as it is included."""
MAX_PAGES = 50
MAX_DEPTH = 5


class LocatedProblem(ConfigProblem):
    """A problem with its file: a playbook may have several."""

    def __init__(
        self,
        file: str,
        problem: str,
        *,
        line: int | None = None,
        column: int | None = None,
        key: str = "",
    ) -> None:
        super().__init__(problem, line=line, column=column, key=key)
        self.file = file

    def sentence(self, file: str) -> str:
        return super().sentence(self.file)


@dataclass
class GatheredPages:
    """All pages of a playbook, in order."""

    texts: dict[str, str] = field(default_factory=dict)
    """Name of the file → its text, in the order of inclusion."""
    pages: dict[str, MarkdownPage] = field(default_factory=dict)
    lines: list[tuple[str, PageLine]] = field(default_factory=list)
    title: PageLine | None = None
    problems: list[ConfigProblem] = field(default_factory=list)


class PageLoader:
    """Reads a page and those it includes."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._gathered = GatheredPages()
        self._pages = 0
        self._characters = 0

    def gather(self, path: Path) -> GatheredPages:
        """Gather the page and its includes. Raises `ConfigInvalid` when the playbook itself cannot be read."""
        text = read_text(path, str(path))
        self._gathered.lines = self._gather_page(path, str(path), text, ())
        self._gathered.title = self._gathered.pages[str(path)].title
        return self._gathered

    def _gather_page(
        self, path: Path, name: str, text: str, above: tuple[Path, ...]
    ) -> list[tuple[str, PageLine]]:
        page = self._page(name, text)
        self._characters += len(text)
        lines: list[tuple[str, PageLine]] = []
        ended = False
        for line in page.lines:
            if line.include:
                inner = self._included(path, name, line, (*above, path.resolve()))
                ended = ended or any(included.level for _, included in inner)
                lines += inner
                continue
            if ended and line.text.strip() and not line.level:
                self._report(
                    name,
                    line,
                    "this text follows the steps of an included page; put a heading above it",
                )
            ended = ended and not (line.level or line.text.strip())
            lines.append((name, line))
        return lines

    def _page(self, name: str, text: str) -> MarkdownPage:
        if name not in self._gathered.pages:
            page = read_page(text)
            self._gathered.texts[name] = text
            self._gathered.pages[name] = page
            self._gathered.problems += [
                LocatedProblem(name, problem.problem, line=problem.line, column=problem.column)
                for problem in page.problems
            ]
        return self._gathered.pages[name]

    def _included(
        self, path: Path, name: str, line: PageLine, above: tuple[Path, ...]
    ) -> list[tuple[str, PageLine]]:
        # Lexically: the target must not depend on links among its folders.
        target = Path(os.path.normpath(path.parent / line.include))
        inner_name = os.path.normpath(Path(name).parent / line.include)
        if problem := self._refused(target, line.include, above):
            self._report(name, line, problem)
            return []
        self._pages += 1
        try:
            text = read_text(target, inner_name)
        except ConfigInvalid as unreadable:
            why = "; ".join(problem.problem for problem in unreadable.problems)
            self._report(name, line, f"{line.include!r} cannot be included: {why}")
            return []
        lines = self._gather_page(target, inner_name, text, above)
        while lines and lines[-1][1].text == "":
            lines.pop()
        return [
            *dropwhile(lambda entry: entry[1].text == "", lines),
            (name, replace(line, include="")),
        ]

    def _refused(self, target: Path, written: str, above: tuple[Path, ...]) -> str:
        """Return why a page is not included; empty when it is."""
        if written.startswith(("/", "~")) or "\\" in written or "\0" in written:
            return "use a path relative to this file, with `/` between parts"
        if not written.endswith(".md"):
            return f"{written!r} is not a page; names of pages end with `.md`"
        try:
            real = target.resolve()
        except (OSError, RuntimeError):
            return f"{written!r} cannot be resolved"
        if not real.is_relative_to(self._root):
            return f"{written!r} is outside the root; keep playbooks inside it"
        if real in above:
            circle = " → ".join(page.name for page in (*above[above.index(real) :], real))
            return f"pages include each other in a circle: {circle}"
        if len(above) > MAX_DEPTH:
            return f"includes are nested more than {MAX_DEPTH} levels deep; flatten them"
        if self._pages >= MAX_PAGES:
            return f"more than {MAX_PAGES} pages are included; remove some"
        if self._characters > MAX_WHOLE:
            return f"all pages together are longer than {MAX_WHOLE:,} characters; shorten them"
        return ""

    def _report(self, name: str, line: PageLine, problem: str) -> None:
        self._gathered.problems.append(LocatedProblem(name, problem, line=line.number, column=1))


def read_text(path: Path, name: str) -> str:
    """Read a small text file. Raises `ConfigInvalid`, also when it is missing, too large or not text."""
    try:
        # Opening a named pipe would wait for its other end.
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unusable(name, "is not a regular file")
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise _unusable(name, "no such file") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise _unusable(name, f"cannot be read: {why}") from None
    if len(content) > MAX_FILE_BYTES:
        raise _unusable(name, f"is larger than {MAX_FILE_BYTES // 1000} kB; shorten it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _unusable(name, "is not valid UTF-8; save it as UTF-8", line) from None


def _unusable(name: str, problem: str, line: int | None = None) -> ConfigInvalid:
    return ConfigInvalid(name, [ConfigProblem(problem, line=line)])


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
