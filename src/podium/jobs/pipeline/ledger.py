"""Append-only Markdown lists with author and date, and the backlog as one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice

from podium.jobs.pipeline.markdown import blocks_of, lines_of
from podium.jobs.pipeline.plain_text import harmless, key_of

_ADDED_BY = re.compile(r"\s\(([^()]{0,200}), (\d{4})-(\d\d)-(\d\d)\)$")
_TAIL = 260
"""Enough of an entry's end to hold who added it and when."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as it stands in the file, also one that a person wrote."""

    text: str
    source: str = ""
    day: date | None = None
    headings: tuple[str, ...] = ()


def entries_of(text: str) -> Iterator[Entry]:
    """All list items, and paragraphs under a heading of their own. Done or not, they are known."""
    for block in blocks_of(lines_of(text)):
        if block.is_item or any(heading.level > 1 for heading in block.headings):
            headings = tuple(heading.text for heading in block.headings if heading.level > 1)
            yield _entry(block.text, headings)


def _entry(text: str, headings: tuple[str, ...]) -> Entry:
    start = max(0, len(text) - _TAIL)
    match = _ADDED_BY.search(text, start)
    if match is None:
        return Entry(text, headings=headings)
    body = text[: match.start()].strip()
    try:
        day = date(int(match[2]), int(match[3]), int(match[4]))
    except ValueError:
        return Entry(body, source=match[1], headings=headings)
    return Entry(body, source=match[1], day=day, headings=headings)


def new_entries(text: str | None, items: Iterable[str], *, longest: int) -> Iterator[str]:
    """The items that the file does not hold in any wording, each made harmless."""
    keys = {key_of(entry.text) for entry in entries_of(text or "")} | {""}
    for item in items:
        line = harmless(item, longest)
        key = key_of(line)
        if key not in keys:
            keys.add(key)
            yield line


def appended(text: str | None, entries: Iterable[str], *, head: str, source: str, day: date) -> str:
    """The file with the entries at its end. Without any it is what it was, and none stays empty."""
    who = harmless(source, 120).translate(str.maketrans("()", "[]")) or "unknown"
    lines = [f"- {entry} ({who}, {day:%Y-%m-%d})" for entry in entries]
    if not lines:
        return text or ""
    before = text if text and text.strip() else head
    end = "\r\n" if "\r\n" in before else "\n"
    gap = "" if before.endswith("\n") else end
    return before + gap + "".join(line + end for line in lines)


MAX_ITEMS = 20
"""That one step may add."""
MAX_ITEM = 1_000

_HEAD = """\
# Backlog

Ideas for later, found while working on something else. Sort, edit or remove them as you like.

"""


def with_items(text: str | None, items: Sequence[str], *, source: str, day: date) -> str:
    """The backlog with these items, each once, also when it stands there in other punctuation.

    What is in it already stays as it is. None, with nothing to add, gives an empty text.
    """
    new = islice(new_entries(text, items, longest=MAX_ITEM), MAX_ITEMS)
    return appended(text, new, head=_HEAD, source=source, day=day)
