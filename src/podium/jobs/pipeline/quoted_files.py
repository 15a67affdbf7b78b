"""Files of the project that prompts quote: AGENTS.md, HUMAN_REVIEW.md, and sources that a plan names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import PurePosixPath

from podium.core.model import FrozenModel
from podium.jobs.pipeline.agent_text import (
    MarkdownLine,
    blocks_of,
    fenced,
    fingerprint,
    lines_of,
    shortened,
    whole,
)
from podium.jobs.pipeline.plan_check import DELIVERABLES, DOCUMENTATION, REFERENCES, part_of
from podium.ports import Workspace

NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "CONTRIBUTING.md")
MAX_CHARACTERS = 6_000
"""Of all of them in one prompt."""
_MAX_FILES = 40
_HEADING = (
    "Conventions of this repository, as written in its files. Follow them; where they contradict this assignment, "
    "follow the assignment."
)


async def conventions_of(workspace: Workspace) -> dict[str, str]:
    """Path → text, as they were before any agent came."""
    paths = await workspace.tracked(*(f":(glob)**/{name}" for name in NAMES))
    texts = {path: await workspace.read(path, 4 * MAX_CHARACTERS) for path in paths[:_MAX_FILES]}
    return {path: text for path, text in texts.items() if text and text.strip()}


def relevant_conventions(conventions: Mapping[str, str], changed: Collection[str]) -> Iterator[str]:
    """Those of the folders in which the work happens, the nearest first, in no more room than they may take."""
    folders = {str(parent) for path in changed for parent in PurePosixPath(path).parents} | {"."}
    near = [path for path in conventions if str(PurePosixPath(path).parent) in folders]
    near.sort(key=lambda path: (-path.count("/"), NAMES.index(PurePosixPath(path).name), path))
    parts, left, quoted = [], MAX_CHARACTERS, set[str]()
    for path in near:
        text = conventions[path].strip()
        # Projects keep one text under several names.
        if text in quoted or left < 200:
            continue
        quoted.add(text)
        excerpt = shortened(text, left)
        left -= len(excerpt)
        parts.append(f"{path}:\n{fenced(excerpt, 'markdown')}")
    if parts:
        yield "\n\n".join([_HEADING, *parts])


MAX_NOTES = 100
MAX_NOTE = 4_000

_ADDRESSEE = re.compile(r"(?:(?:for|to)\b:?\s+(?:the\s+)?@?|@)([\w -]{1,60}?)\s*:?", re.IGNORECASE)
_ADDRESS = re.compile(
    r"((?:@[\w-]{1,60}(?:\s*(?:,|&|and)\s*|\s+)?){1,10})\s*[:,]\s*", re.IGNORECASE
)
_NAME = re.compile(r"@([\w-]+)")
_EVERYBODY = frozenset(
    {"all", "everyone", "everybody", "anyone", "agents", "all_agents", "all_roles"}
)


class HumanNote(FrozenModel):
    """Something a person wrote down for agents."""

    role: str
    """Role it is for, such as `lead_analyst`. Empty: for all."""
    text: str
    fingerprint: str


def notes_of(text: str | None, *, roles: Collection[str] = ()) -> tuple[HumanNote, ...]:
    """The notes that are not checked off, in their order.

    With `roles`, what is addressed to none of them is for all, so that a slip of the pen loses nothing.
    """
    notes: dict[str, HumanNote] = {}
    for role, body in _addressed(text or ""):
        to = role if not roles or role in roles else ""
        key = fingerprint(to, " ".join(body.split()))
        notes.setdefault(key, HumanNote(role=to, text=body, fingerprint=key))
        if len(notes) >= MAX_NOTES:
            break
    return tuple(notes.values())


def role_of(address: str) -> str:
    """The role's name as the settings write it. Empty: the words mean everybody."""
    name = re.sub(r"[\s-]+", "_", address.strip().casefold())
    return "" if name in _EVERYBODY else name


def _addressed(text: str) -> Iterator[tuple[str, str]]:
    for block in blocks_of(lines_of(text)):
        if block.checked:
            continue
        body = whole(block.text).strip()
        address = _ADDRESS.match(body)
        if address:
            body = body[address.end() :].strip()
            roles = [role_of(name) for name in _NAME.findall(address[1])]
        else:
            roles = [_role_above(block.headings)]
        if any(character.isalnum() for character in body):
            yield from ((role, shortened(body, MAX_NOTE)) for role in roles)


def _role_above(headings: tuple[MarkdownLine, ...]) -> str:
    """Role named by the nearest heading that names one."""
    for heading in reversed(headings):
        if match := _ADDRESSEE.fullmatch(heading.text.strip()):
            return role_of(match[1])
    return ""


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
        """Pathspecs of the file. Plans speak of a CHANGELOG whose file has an extension."""
        literal = f":(literal){self.path}"
        return (literal,) if "." in self.path else (literal, f":(glob){self.path}.*")

    @property
    def whole_characters(self) -> int | float:
        """Longest file that is shown in full, in characters."""
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
    for file in named:
        stem = file.path if "." not in file.path else ""
        for path in tracked:
            if path == file.path or (stem and path.startswith(f"{stem}.")):
                there.setdefault(path, replace(file, path=path))
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
