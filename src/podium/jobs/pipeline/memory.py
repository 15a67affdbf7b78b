"""Backlog and AGENT_MEMORY.md: append-only Markdown lists, and lessons ranked by relevance to a task."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from posixpath import basename, dirname

from podium.core.model import FrozenModel
from podium.jobs.pipeline.agent_text import blocks_of, harmless, key_of, lines_of, one_line
from podium.render.text import counted

_ADDED_BY = re.compile(r"\s\(([^()]{0,200}), (\d{4})-(\d\d)-(\d\d)\)$")
_TAIL = 260
"""Enough of an entry's end to hold who added it and when."""


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """An entry as it stands in the file, also one that a person wrote."""

    text: str
    source: str = ""
    day: date | None = None
    headings: tuple[str, ...] = ()


def entries_of(text: str) -> Iterator[MemoryEntry]:
    """All list items, and paragraphs under a heading of their own. Done or not, they are known."""
    for block in blocks_of(lines_of(text)):
        if block.is_item or any(heading.level > 1 for heading in block.headings):
            headings = tuple(heading.text for heading in block.headings if heading.level > 1)
            yield _entry(block.text, headings)


def _entry(text: str, headings: tuple[str, ...]) -> MemoryEntry:
    start = max(0, len(text) - _TAIL)
    match = _ADDED_BY.search(text, start)
    if match is None:
        return MemoryEntry(text, headings=headings)
    body = text[: match.start()].strip()
    try:
        day = date(int(match[2]), int(match[3]), int(match[4]))
    except ValueError:
        return MemoryEntry(body, source=match[1], headings=headings)
    return MemoryEntry(body, source=match[1], day=day, headings=headings)


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

_BACKLOG_HEAD = """\
# Backlog

Ideas for later, found while working on something else. Sort, edit or remove them as you like.

"""


def with_items(text: str | None, items: Sequence[str], *, source: str, day: date) -> str:
    """The backlog with these items, each once, also when it stands there in other punctuation.

    What is in it already stays as it is. None, with nothing to add, gives an empty text.
    """
    new = islice(new_entries(text, items, longest=MAX_ITEM), MAX_ITEMS)
    return appended(text, new, head=_BACKLOG_HEAD, source=source, day=day)


SAME_FILE, SAME_NAME, SAME_FOLDER = 6.0, 4.0, 2.0
HALF_AS_NEW_DAYS = 60
"""After so many days an entry's age counts half."""
RECENT_DAYS = 14
"""So long an entry is told although neither path nor word fits."""

_PATH = re.compile(r"[\w.\-/]+")
_WORD = re.compile(r"[^\W\d_]{2,}|\d{2,}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COMMON_WORDS = (
    "a about add after all also always an and any are as at be because been before but by can do does"
    " each every for from get had has have how if in into is it its make more must need never new no"
    " not of on one only or other our out over run set should so some such than that the their them"
    " then there these they this to up use used uses using very was we were what when where which"
    " while who will with without you your"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_MAX_READ = 20_000
"""Characters of a task."""
_MAX_PATH = 300


@dataclass(frozen=True, slots=True)
class Rank:
    score: float
    why: str


class Ranker:
    """Knows the task, the paths and how rare each word is among all entries."""

    def __init__(
        self, entries: Iterable[MemoryEntry], *, task: str, paths: Collection[str], day: date
    ) -> None:
        self._words = {
            entry: words_of(" ".join([*entry.headings, entry.text])) for entry in entries
        }
        self._rarity = Counter(word for words in self._words.values() for word in words)
        self._task = words_of(task[:_MAX_READ])
        changed = {path.removeprefix("./").strip("/") for path in paths if len(path) <= _MAX_PATH}
        self._paths = changed | set(_paths_in(task[:_MAX_READ]))
        self._names = {basename(path) for path in self._paths}
        self._folders = {folder for path in self._paths for folder in _folders_of(path)}
        self._day = day

    def rank(self, entry: MemoryEntry) -> Rank | None:
        """Rate the entry's relevance. None: it has none."""
        by_path, path = self._by_path(entry.text)
        by_words, shared = self._by_words(entry)
        age = None if entry.day is None else max(0, (self._day - entry.day).days)
        freshness = 0.0 if age is None else 0.5 ** (age / HALF_AS_NEW_DAYS)
        if not (by_path or by_words) and (age is None or age > RECENT_DAYS):
            return None
        why = [path] if path else []
        why += [f"words {', '.join(shared)}"] if shared else []
        why += [f"{counted(age, 'day')} old"] if age is not None else []
        return Rank(round(by_path + by_words + freshness, 3), "; ".join(why))

    def _by_path(self, text: str) -> tuple[float, str]:
        best, why = 0.0, ""
        for named in _paths_in(text):
            for score, fits in (
                (SAME_FILE, named in self._paths),
                (SAME_NAME, basename(named) in self._names and "." in basename(named)),
                (SAME_FOLDER, named in self._folders or dirname(named) in self._folders),
            ):
                if fits and score > best:
                    best, why = score, f"path {named}"
        return best, why

    def _by_words(self, entry: MemoryEntry) -> tuple[float, list[str]]:
        shared = self._words[entry] & self._task
        worth = {word: self._worth(word) for word in shared}
        named = sorted(worth, key=lambda word: (-worth[word], word))[:5]
        return sum(worth.values()), named

    def _worth(self, word: str) -> float:
        """A word that every entry holds says little, one that a single entry holds says much."""
        return math.log(1 + len(self._words) / self._rarity[word])


def words_of(text: str) -> set[str]:
    """Words that carry meaning, in one form for singular and plural, with names taken apart."""
    stems = (_stem(word.casefold()) for word in _WORD.findall(_CAMEL.sub(" ", text)))
    return {word for word in stems if word not in _COMMON}


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 5:
        word = word.removesuffix("ies") + "y"
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word.removesuffix("s")
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def _paths_in(text: str) -> Iterable[str]:
    for match in _PATH.finditer(text):
        path = match[0].removeprefix("./").strip("/").rstrip(".-")
        if len(path) <= _MAX_PATH and ("/" in path or "." in path):
            yield path


def _folders_of(path: str) -> Iterable[str]:
    folder = dirname(path)
    while folder:
        yield folder
        folder = dirname(folder)


MAX_LESSONS = 20
"""That one step may add."""
MAX_LESSON = 600
CHARACTERS_A_TOKEN = 4
MAX_LESSONS_READ = 100
"""The newest ones; older ones stay in the file, and are told to nobody."""
MAX_RELEVANT_LESSONS = 12

_MEMORY_HEAD = """\
# Agent memory

What agents learned while working here. Podium only adds entries; you may correct or remove them.

"""


class RefusedMemory(FrozenModel):
    """A lesson that is not written down. Its words are not repeated: they may hold a secret."""

    number: int
    """Its place among the lessons, from 1."""
    why: str


class Remembered(FrozenModel):
    """The memory after lessons were added to it."""

    text: str
    added: tuple[str, ...] = ()
    refused: tuple[RefusedMemory, ...] = ()


class Chosen(FrozenModel):
    """An entry that is worth telling, and why."""

    lesson: str
    why: str
    score: float


def with_lessons(
    text: str | None,
    lessons: Sequence[str],
    *,
    source: str,
    day: date,
    looks_secret: Callable[[str], str | None],
) -> Remembered:
    """The memory with these lessons, each once. What stands in it is never changed.

    `looks_secret` says why a text looks like a secret, without repeating it, or None.
    """
    refused: list[RefusedMemory] = []
    fit: list[str] = []
    for number, lesson in enumerate(lessons, start=1):
        if len(fit) >= MAX_LESSONS:
            refused.append(
                RefusedMemory(number=number, why=f"a step may add at most {MAX_LESSONS} lessons")
            )
        # Cleaning could also bring two halves of a secret together.
        elif why := looks_secret(lesson) or looks_secret(harmless(lesson, MAX_LESSON)):
            refused.append(RefusedMemory(number=number, why=one_line(why, 200)))
        else:
            fit.append(lesson)
    added = tuple(new_entries(text, fit, longest=MAX_LESSON))
    whole = appended(text, added, head=_MEMORY_HEAD, source=source, day=day)
    return Remembered(text=whole, added=added, refused=tuple(refused))


def relevant(
    text: str, *, task: str, paths: Collection[str], day: date, most_tokens: int
) -> tuple[Chosen, ...]:
    """Of the newest entries those that fit the task and its paths best, the best first, within so many tokens."""
    return tuple(_within(most_tokens, _ranked(text, task, paths, day)))[:MAX_RELEVANT_LESSONS]


def _ranked(text: str, task: str, paths: Collection[str], day: date) -> list[Chosen]:
    # The last wording of the same lesson is the newest.
    newest = list(entries_of(text))[-MAX_LESSONS_READ:]
    entries = {key_of(entry.text): entry for entry in newest}
    entries.pop("", None)
    ranker = Ranker(entries.values(), task=task, paths=paths, day=day)
    chosen = [
        Chosen(lesson=one_line(entry.text, 2 * MAX_LESSON), why=rank.why, score=rank.score)
        for entry in entries.values()
        if (rank := ranker.rank(entry)) is not None
    ]
    return sorted(chosen, key=lambda entry: (-entry.score, entry.lesson))


def _within(most_tokens: int, ranked: Sequence[Chosen]) -> Iterator[Chosen]:
    left = most_tokens
    for entry in ranked:
        cost = 1 + -(-len(entry.lesson) // CHARACTERS_A_TOKEN)
        if cost <= left:
            left -= cost
            yield entry
