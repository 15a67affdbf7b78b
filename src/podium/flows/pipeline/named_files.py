"""The source files that reports and a plan name: which of them matter, and which lines of long ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from podium.flows.pipeline.plan_parts import DELIVERABLES, DOCUMENTATION, REFERENCES, part_of

MARGIN_LINES = 10
"""Lines that are shown above and below those that a plan names."""

WHOLE_CHARACTERS = 6_000
"""A longer file of which the plan names lines is shown by these."""
_NEWS_LINES = (1, 20)
"""Of a change log, whose newest entry is its first."""
_CHANGE_LOG = re.compile(
    r"(?:.*/)?(?:CHANGELOG|CHANGES|HISTORY|NEWS)(?:\.\w{1,10})?", re.IGNORECASE
)
_FILE = re.compile(
    r"(?<![\w./-])(?:(?:[\w.-]{1,80}/){0,12}[\w.-]{0,80}\.\w{1,10}|CHANGELOG|CHANGES|VERSION)(?![\w/-])"
)
_NOT_CHANGED = re.compile(
    r"\b(?:nothing(?! (?:but|else|except))|unchanged|untouched|stays as (?:it is|is)|not (?:be )?(?:changed|touched)"
    r"|no (?:changes?|updates?|edits?|need)|(?:does|do|need|needs) not (?:to )?change|not (?:needed|necessary|required)"
    r"|(?:does|do) not (?:mention|describe|document|cover|list|show)|none)\b",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"[\s*_`-]*(?:none|nothing|no (?:documentation|document|change|update)s?)\b", re.IGNORECASE
)
_CLAUSE_END = re.compile(r";|(?<=[\w`)])\.\s")
_LINES = re.compile(
    r"\blines?\s+(?P<list>(?:\d{1,6}\s*(?:,|-|–|—|\band\b|\bto\b)?\s*)+)"
    r"|(?<=[\w`]):(?P<after>\d{1,6}(?:\s?[-–—]\s?\d{1,6})?)\b"
    r"|\bL(?P<short>\d{1,6}(?:\s?[-–—]\s?L?\d{1,6})?)\b"
)
_RANGE = re.compile(r"(\d{1,6})(?:\s*(?:[-–—]|\bto\b)\s*L?(\d{1,6}))?")
_MAX_RANGES = 20

LineRange = tuple[int, int]
"""First and last line, counted from 1."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a document names."""

    path: str
    ranges: tuple[LineRange, ...] = ()
    """Lines that the plan names of it."""

    @property
    def pathspecs(self) -> tuple[str, ...]:
        """What git finds it by. Plans speak of a CHANGELOG whose file has an ending."""
        literal = f":(literal){self.path}"
        return (literal,) if "." in self.path else (literal, f":(glob){self.path}.*")

    @property
    def whole_characters(self) -> int | float:
        """How long it may be to be shown whole."""
        return WHOLE_CHARACTERS if self.ranges else inf


def named_files(plan: str, reports: Sequence[str] = ()) -> list[NamedFile]:
    """The files in the order in which they matter: what the plan delivers, what else it changes, what it refers to.

    A file is left out when the plan says of it that it does not change, and names it nowhere else but among its
    references.
    """
    references = part_of(plan, REFERENCES)
    unchanged, changed = set[str](), set[str]()
    documentation = part_of(plan, DOCUMENTATION)
    if documentation and _NONE.match(documentation):
        # Behind a `None` stands why: what is named there does not change.
        unchanged.update(_FILE.findall(documentation))
        plan = plan.replace(documentation, "", 1)
    for clause in _clauses(plan.replace(references, "", 1) if references else plan):
        (unchanged if _NOT_CHANGED.search(clause) else changed).update(_FILE.findall(clause))
    texts = (part_of(plan, DELIVERABLES), plan.replace(references, "", 1), references, *reports)
    paths = dict.fromkeys(path for text in texts for path in _FILE.findall(text))
    ranges = _ranges(plan)
    return [
        NamedFile(path, tuple(ranges.get(path, ())) or _news_of(path))
        for path in paths
        if path in changed or path not in unchanged
    ]


def _news_of(path: str) -> tuple[LineRange, ...]:
    return (_NEWS_LINES,) if _CHANGE_LOG.fullmatch(path) else ()


def resolved(named: Sequence[NamedFile], tracked: Sequence[str]) -> list[NamedFile]:
    """Those of the files that are there, each once, under the names that git has for them."""
    there: dict[str, NamedFile] = {}
    for each in named:
        stem = each.path if "." not in each.path else ""
        for path in tracked:
            if path == each.path or (stem and path.startswith(f"{stem}.")):
                there.setdefault(path, replace(each, path=path))
    return list(there.values())


def excerpts(content: str, ranges: Sequence[LineRange], characters: int) -> list[tuple[int, str]]:
    """The lines of these ranges with a margin, as far as there is room: number of the first line, and text."""
    lines = content.splitlines(keepends=True)
    parts: list[tuple[int, str]] = []
    for first, last in _joined(ranges, len(lines)):
        text = ""
        for line in lines[first - 1 : last]:
            if len(line) > characters:
                break
            characters -= len(line)
            text += line
        else:
            parts.append((first, text))
            continue
        return [*parts, (first, text)] if text else parts
    return parts


def _clauses(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from _CLAUSE_END.split(line)


def _ranges(plan: str) -> dict[str, list[LineRange]]:
    """Path → lines that are named behind it, at the latest before the next heading."""
    ranges: dict[str, list[LineRange]] = {}
    path = ""
    for line in plan.splitlines():
        if line.startswith("#"):
            path = ""
        names = [(match.start(), match[0]) for match in _FILE.finditer(line)]
        for match in _LINES.finditer(line):
            before = [name for start, name in names if start < match.start()]
            owner = before[-1] if before else names[0][1] if names else path
            if owner and len(ranges.setdefault(owner, [])) < _MAX_RANGES:
                ranges[owner] += _numbers(match)
        path = names[-1][1] if names else path
    return ranges


def _numbers(match: re.Match[str]) -> list[LineRange]:
    text = match["list"] or match["after"] or match["short"]
    pairs = [(int(pair[1]), int(pair[2] or pair[1])) for pair in _RANGE.finditer(text)]
    return [(first, last) for first, last in pairs if 0 < first <= last]


def _joined(ranges: Sequence[LineRange], lines: int) -> list[LineRange]:
    """The ranges with their margins within the file, those that meet made one."""
    joined: list[LineRange] = []
    for start, end in sorted(ranges):
        first, last = max(1, start - MARGIN_LINES), min(lines, end + MARGIN_LINES)
        if first > last:
            continue
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined
