"""A task's words as a name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.jobs.pipeline.agent_text import slug_of


@pytest.mark.parametrize(
    ("task", "slug"),
    [
        ("Add a dark mode toggle", "add-a-dark-mode-toggle"),
        ("Fix: don't crash on `None`!", "fix-dont-crash-on-none"),
        ("Überprüfe die Größe in Łódź", "uberprufe-die-grosse-in-lodz"),
        ("Добавь тёмный режим", "dobav-temnyi-rezhim"),
        ("Σκοτεινή λειτουργία", "skoteini-leitoyrgia"),
        ("日本語", "task"),
        ("日本語 mode", "mode"),
        ("", "task"),
        ("🎉🎉", "task"),
        ("../../etc/passwd", "etc-passwd"),
        ("--help", "help"),
        ("ﬁle № 5", "file-no-5"),
    ],
)
def test_a_slug_reads_like_its_task(task: str, slug: str) -> None:
    assert slug_of(task) == slug


def test_a_long_task_is_cut_between_words() -> None:
    assert slug_of("Add a dark mode toggle to the settings page of the application") == (
        "add-a-dark-mode-toggle-to-the-settings"
    )
    assert slug_of("x" * 1_000_000) == "x" * 40


@given(st.text())
def test_a_slug_is_always_a_name_for_git_and_files(task: str) -> None:
    slug = slug_of(task)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
    assert len(slug) <= 40
    assert slug_of(slug) == slug
