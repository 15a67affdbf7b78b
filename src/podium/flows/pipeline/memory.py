"""AGENT_MEMORY.md: what agents learned about a project, for those that come after them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date

from podium.domain.model import Noun
from podium.flows.pipeline.ledger import appended, entries_of, new_entries
from podium.flows.pipeline.plain_text import harmless, key_of, one_line
from podium.flows.pipeline.ranking import Ranker

MOST_LESSONS = 20
"""That one step may add."""
LONGEST_LESSON = 600
CHARACTERS_A_TOKEN = 4
MAX_LESSONS_READ = 100
"""The newest ones; older ones stay in the file, and are told to nobody."""
MAX_LESSONS_SHOWN = 12

_HEAD = """\
# Agent memory

What agents learned while working here. It only grows; a person may correct or remove entries.

"""


class Refused(Noun):
    """A lesson that is not written down. Its words are not repeated: they may hold a secret."""

    number: int
    """Its place among the lessons, from 1."""
    why: str


class Remembered(Noun):
    """The memory after lessons were added to it."""

    text: str
    added: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()


class Chosen(Noun):
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
    refused: list[Refused] = []
    fit: list[str] = []
    for number, lesson in enumerate(lessons, start=1):
        if len(fit) >= MOST_LESSONS:
            refused.append(Refused(number=number, why=f"one step may add {MOST_LESSONS} lessons"))
        # Cleaning could also bring two halves of a secret together.
        elif why := looks_secret(lesson) or looks_secret(harmless(lesson, LONGEST_LESSON)):
            refused.append(Refused(number=number, why=one_line(why, 200)))
        else:
            fit.append(lesson)
    added = tuple(new_entries(text, fit, longest=LONGEST_LESSON))
    whole = appended(text, added, head=_HEAD, source=source, day=day)
    return Remembered(text=whole, added=added, refused=tuple(refused))


def relevant(
    text: str, *, task: str, paths: Collection[str], day: date, most_tokens: int
) -> tuple[Chosen, ...]:
    """Of the newest entries those that fit the task and its paths best, the best first, within so many tokens."""
    return tuple(_within(most_tokens, _ranked(text, task, paths, day)))[:MAX_LESSONS_SHOWN]


def _ranked(text: str, task: str, paths: Collection[str], day: date) -> list[Chosen]:
    # The last wording of the same lesson is the newest.
    newest = list(entries_of(text))[-MAX_LESSONS_READ:]
    entries = {key_of(entry.text): entry for entry in newest}
    entries.pop("", None)
    ranker = Ranker(entries.values(), task=task, paths=paths, day=day)
    chosen = [
        Chosen(lesson=one_line(entry.text, 2 * LONGEST_LESSON), why=rank.why, score=rank.score)
        for entry in entries.values()
        if (rank := ranker.rank(entry)) is not None
    ]
    return sorted(chosen, key=lambda each: (-each.score, each.lesson))


def _within(most_tokens: int, ranked: Sequence[Chosen]) -> Iterator[Chosen]:
    left = most_tokens
    for each in ranked:
        cost = 1 + -(-len(each.lesson) // CHARACTERS_A_TOKEN)
        if cost <= left:
            left -= cost
            yield each
