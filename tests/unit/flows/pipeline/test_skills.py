"""Skills in the Agent Skills format."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podium.core.errors import BadInput
from podium.jobs.pipeline.skills import MAX_DESCRIPTION, skill_candidate, skill_name


def skill(**changes: Any) -> str:
    facts: dict[str, Any] = {
        "name": "join-changelogs",
        "description": "Joins two changelogs.",
        "when": "Both branches added an entry",
        "steps": ["Keep both entries", "Order them by date"],
        "source": "run_1 integrate",
    }
    return skill_candidate(**facts | changes)


def front_matter(text: str) -> dict[str, Any]:
    _, head, _ = text.split("---\n", 2)
    loaded = yaml.safe_load(head)
    assert isinstance(loaded, dict)
    return loaded


def test_a_skill_has_front_matter_and_numbered_steps() -> None:
    text = skill()
    assert front_matter(text) == {
        "name": "join-changelogs",
        "description": "Joins two changelogs. Use when both branches added an entry",
        "metadata": {"source": "run_1 integrate"},
    }
    assert text.endswith("## Steps\n\n1. Keep both entries\n2. Order them by date\n")


@pytest.mark.parametrize(
    "name", ["", "Big", "a b", "-a", "a-", "a--b", "a_b", "ä", "a/b", "../a", "a" * 65, "a\n"]
)
def test_a_name_outside_the_format_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="not a valid skill name"):
        skill(name=name)


@pytest.mark.parametrize("empty", [{"steps": []}, {"steps": [" ", "#"]}, {"description": "\n"}])
def test_a_skill_that_says_nothing_is_refused(empty: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="needs a description"):
        skill(**empty)


@given(st.text(min_size=1), st.text(), st.text(min_size=1))
def test_whatever_it_says_the_front_matter_stays_sound(what: str, when: str, step: str) -> None:
    try:
        text = skill(description=what, when=when, steps=[step])
    except BadInput:
        return
    found = front_matter(text)
    assert found["name"] == "join-changelogs"
    assert 1 <= len(found["description"]) <= MAX_DESCRIPTION


def test_steps_cannot_become_headings_or_front_matter() -> None:
    text = skill(steps=["---\nname: evil\n---", "# Title", "<b>x</b>"])
    assert len(re.findall(r"^---$", text, re.MULTILINE)) == 2
    assert "\n# Title" not in text
    assert "<b>" not in text


@given(st.text())
def test_a_name_can_be_made_of_any_text(text: str) -> None:
    name = skill_name(text)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) <= 64


def test_a_name_reads_like_its_text() -> None:
    assert skill_name("Join the Changelogs!") == "join-the-changelogs"
    assert skill_name("日本") == "skill"
