"""The pages of a playbook: its own and those it includes, none of them from beyond the root."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path

from podium.domain.errors import ConfigFault, ConfigInvalid
from podium.flows.playbook.reading import Page, PageLine, read_page

LARGEST_FILE_BYTES = 200_000
LARGEST_WHOLE = 500_000
"""Characters of all pages together, each counted as often as it is included."""
MOST_PAGES = 50
DEEPEST = 5


class PlacedFault(ConfigFault):
    """A fault that knows its file: a playbook may be of several."""

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
class Gathered:
    """All pages of a playbook, in their places."""

    texts: dict[str, str] = field(default_factory=dict)
    """Name of the file → its text, in the order in which they were met."""
    pages: dict[str, Page] = field(default_factory=dict)
    lines: list[tuple[str, PageLine]] = field(default_factory=list)
    title: PageLine | None = None
    faults: list[ConfigFault] = field(default_factory=list)


class PageLoader:
    """Reads a page and those it includes."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._found = Gathered()
        self._pages = 0
        self._characters = 0

    def gather(self, path: Path) -> Gathered:
        """All of it. Raises `ConfigInvalid` when the playbook itself cannot be read at all."""
        text = read_text(path, str(path))
        self._found.lines = self._visit(path, str(path), text, ())
        self._found.title = self._found.pages[str(path)].title
        return self._found

    def _visit(
        self, path: Path, name: str, text: str, above: tuple[Path, ...]
    ) -> list[tuple[str, PageLine]]:
        page = self._page(name, text)
        self._characters += len(text)
        lines: list[tuple[str, PageLine]] = []
        ended = False
        for line in page.lines:
            if line.include:
                inner = self._included(path, name, line, (*above, path.resolve()))
                ended = ended or any(each.level for _, each in inner)
                lines += inner
                continue
            if ended and line.text.strip() and not line.level:
                self._fault(
                    name, line, "stands after the steps of an included page; put a heading above it"
                )
            ended = ended and not (line.level or line.text.strip())
            lines.append((name, line))
        return lines

    def _page(self, name: str, text: str) -> Page:
        if name not in self._found.pages:
            page = read_page(text)
            self._found.texts[name] = text
            self._found.pages[name] = page
            self._found.faults += [
                PlacedFault(name, each.problem, line=each.line, column=each.column)
                for each in page.faults
            ]
        return self._found.pages[name]

    def _included(
        self, path: Path, name: str, line: PageLine, above: tuple[Path, ...]
    ) -> list[tuple[str, PageLine]]:
        # By their words alone: what a name leads to must not depend on links among its folders.
        wanted = Path(os.path.normpath(path.parent / line.include))
        inner_name = os.path.normpath(Path(name).parent / line.include)
        if problem := self._refused(wanted, line.include, above):
            self._fault(name, line, problem)
            return []
        self._pages += 1
        try:
            text = read_text(wanted, inner_name)
        except ConfigInvalid as unreadable:
            why = "; ".join(each.problem for each in unreadable.faults)
            self._fault(name, line, f"{line.include!r} cannot be included: {why}")
            return []
        lines = self._visit(wanted, inner_name, text, above)
        while lines and lines[-1][1].text == "":
            lines.pop()
        return [
            *dropwhile(lambda each: each[1].text == "", lines),
            (name, replace(line, include="")),
        ]

    def _refused(self, wanted: Path, written: str, above: tuple[Path, ...]) -> str:
        """Why a page is not included; empty when it is."""
        if written.startswith(("/", "~")) or "\\" in written or "\0" in written:
            return "name the page by its path from this file on, with `/` between parts"
        if not written.endswith(".md"):
            return f"{written!r} is no page: their names end with `.md`"
        try:
            real = wanted.resolve()
        except (OSError, RuntimeError):
            return f"{written!r} leads nowhere"
        if not real.is_relative_to(self._root):
            return f"{written!r} lies outside the root; keep playbooks beneath it"
        if real in above:
            circle = " → ".join(each.name for each in (*above[above.index(real) :], real))
            return f"pages include each other in a circle: {circle}"
        if len(above) > DEEPEST:
            return f"pages include each other more than {DEEPEST} deep; flatten them"
        if self._pages >= MOST_PAGES:
            return f"more than {MOST_PAGES} pages are included; leave some out"
        if self._characters > LARGEST_WHOLE:
            return f"all pages together are longer than {LARGEST_WHOLE:,} characters; shorten them"
        return ""

    def _fault(self, name: str, line: PageLine, problem: str) -> None:
        self._found.faults.append(PlacedFault(name, problem, line=line.number, column=1))


def read_text(path: Path, name: str) -> str:
    """The text of a small file. Raises `ConfigInvalid`, also when it is missing, too big or no text."""
    try:
        # Opening a named pipe would wait for its other end.
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unusable(name, "is not a plain file")
            content = file.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        raise _unusable(name, "there is no such file") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise _unusable(name, f"cannot be read: {why}") from None
    if len(content) > LARGEST_FILE_BYTES:
        raise _unusable(name, f"is larger than {LARGEST_FILE_BYTES // 1000} kB; shorten it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _unusable(name, "is not UTF-8 text; save it as UTF-8", line) from None


def _unusable(name: str, problem: str, line: int | None = None) -> ConfigInvalid:
    return ConfigInvalid(name, [ConfigFault(problem, line=line)])


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
