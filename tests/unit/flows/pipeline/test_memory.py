"""Lessons that agents remember, and the choice of those that a task is given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

import pytest

from podium.jobs.pipeline.memory import (
    MAX_LESSONS,
    MAX_LESSONS_READ,
    MAX_RELEVANT_LESSONS,
    Remembered,
    relevant,
    with_lessons,
)
from tests.linear_cost import assert_linear_cost

DAY = date(2026, 11, 15)


def no_secret(_: str) -> str | None:
    return None


def keys_are_secret(text: str) -> str | None:
    return "it looks like an API key" if "sk-" in text else None


def remembered(lessons: Sequence[str], text: str | None = None) -> Remembered:
    return with_lessons(text, lessons, source="developer", day=DAY, looks_secret=keys_are_secret)


def memory(*entries: tuple[str, int]) -> str:
    lines = [f"- {text} (developer, {DAY - timedelta(days=age)})" for text, age in entries]
    return "# Agent memory\n\nIntroduction.\n\n" + "\n".join(lines) + "\n"


def chosen(text: str, task: str = "", paths: Sequence[str] = (), tokens: int = 800) -> list[str]:
    found = relevant(text, task=task, paths=paths, day=DAY, most_tokens=tokens)
    return [item.lesson for item in found]


def test_lessons_are_appended_and_existing_ones_stay() -> None:
    before = "# Ours\n\nKept   as it is\n"
    after = remembered(["The parser needs UTF-8"], before)
    assert after.text == before + "- The parser needs UTF-8 (developer, 2026-11-15)\n"
    assert after.added == ("The parser needs UTF-8",)


def test_a_lesson_is_remembered_once() -> None:
    first = remembered(["Use make test", "use `make test`!"])
    assert first.added == ("Use make test",)
    assert remembered(["USE MAKE TEST"], first.text) == Remembered(text=first.text)


def test_a_secret_is_refused_with_the_reason_and_never_repeated() -> None:
    after = remembered(["fine", "the key is sk-123456"])
    assert after.added == ("fine",)
    assert [(item.number, item.why) for item in after.refused] == [(2, "it looks like an API key")]
    assert "sk-123456" not in after.model_dump_json()


def test_a_secret_whose_halves_cleaning_would_join_is_refused() -> None:
    after = remembered(["the key is s\u200bk-123456"])
    assert after.added == ()
    assert len(after.refused) == 1


def test_one_step_adds_no_more_than_its_share() -> None:
    after = remembered([f"lesson number {number}" for number in range(50)])
    assert len(after.added) == MAX_LESSONS
    assert len(after.refused) == 50 - MAX_LESSONS


def test_a_lesson_about_a_changed_file_comes_first_and_says_why() -> None:
    text = memory(
        ("toggle widgets are slow", 90),
        ("src/settings.py keeps defaults in a tuple", 400),
        ("nothing to do with it", 300),
    )
    found = relevant(
        text, task="Add a dark mode toggle", paths=["src/settings.py"], day=DAY, most_tokens=800
    )
    assert [item.lesson for item in found] == [
        "src/settings.py keeps defaults in a tuple",
        "toggle widgets are slow",
    ]
    assert found[0].why.startswith("path src/settings.py")
    assert "toggle" in found[1].why
    assert found[0].score > found[1].score


def test_a_folder_counts_less_than_a_file() -> None:
    text = memory(("everything in src/ui is generated", 90), ("see toggle.py first", 90))
    assert chosen(text, paths=["src/ui/toggle.py"]) == [
        "see toggle.py first",
        "everything in src/ui is generated",
    ]


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    common = [(f"database note {number}", 100) for number in range(8)]
    text = memory(*common, ("the zebra cache", 100))
    assert chosen(text, task="database of zebra stripes")[0] == "the zebra cache"


def test_words_fit_in_singular_and_plural_and_inside_names() -> None:
    text = memory(("loadSettings is not thread-safe", 100), ("unrelated", 100))
    assert chosen(text, task="Setting up") == ["loadSettings is not thread-safe"]


def test_of_two_that_fit_alike_the_newer_comes_first() -> None:
    text = memory(("toggle one", 300), ("toggle two", 20))
    assert chosen(text, task="toggle") == ["toggle two", "toggle one"]


def test_fresh_lessons_are_given_and_old_unsuitable_ones_are_not() -> None:
    text = memory(("run the linter twice", 3), ("never trust the cache", 200))
    assert chosen(text, task="dark mode") == ["run the linter twice"]


def test_a_date_in_the_future_is_as_good_as_today() -> None:
    text = memory(("toggle", -4_000))
    found = relevant(text, task="toggle", paths=(), day=DAY, most_tokens=100)
    assert found[0].why == "words toggle; 0 days old"


def test_the_budget_of_tokens_is_kept() -> None:
    text = memory(*[(f"toggle {number} " + "word " * 20, number) for number in range(50)])
    output = chosen(text, task="toggle", tokens=200)
    assert output
    assert sum(len(item) for item in output) <= 200 * 4
    assert chosen(text, task="toggle", tokens=0) == []


def test_sections_that_a_person_wrote_are_entries_too() -> None:
    text = "# Memory\n\nIntro about toggles.\n\n## Toggle\n\nNever nest them.\n\n- No day (odd, 2026-99-99)\n"
    assert chosen(text, task="toggle") == ["Never nest them.", "No day"]


def test_a_huge_memory_and_many_paths_are_ranked() -> None:
    text = memory(*[(f"lesson {number} about src/m{number}.py", 100) for number in range(5_000)])
    paths = [f"src/m{number}.py" for number in range(3_000)]
    assert chosen(text, task="lesson " * 10_000, paths=paths, tokens=300)
    with_lessons(text, ["x"] * 1_000, source="a", day=DAY, looks_secret=no_secret)


@pytest.mark.parametrize("piece", ["a/b.", "../", "- a\n", "(", "/"])
def test_a_hostile_task_and_memory_are_ranked(piece: str) -> None:
    def rank(size: int) -> None:
        text = piece * (size // len(piece))
        paths = [text, "/", "//a", "/a/b", ""]
        entries = relevant(text, task=text, paths=paths, day=DAY, most_tokens=100)
        assert sum(len(entry.lesson) for entry in entries) <= 100 * 4

    assert_linear_cost(rank, 100_000)


def test_of_many_lessons_only_a_few_of_the_newest_are_given() -> None:
    lessons = [f"- Parser lesson number {number}. (run, 2026-05-01)" for number in range(150)]
    chosen = relevant(
        "# Agent memory\n\n" + "\n".join(lessons),
        task="the parser",
        paths=(),
        day=date(2026, 5, 2),
        most_tokens=10_000,
    )
    assert len(chosen) == MAX_RELEVANT_LESSONS
    numbers = [int(re.findall(r"number (\d+)", item.lesson)[0]) for item in chosen]
    assert min(numbers) >= 150 - MAX_LESSONS_READ
