"""The backlog grows by each idea once."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.jobs.pipeline.agent_text import lines_of
from podium.jobs.pipeline.memory import MAX_ITEM, MAX_ITEMS, with_items

DAY = date(2026, 11, 15)


def added(*items: str, text: str | None = None, source: str = "auditor") -> str:
    return with_items(text, items, source=source, day=DAY)


def items_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("- ")]


def test_an_item_is_a_line_with_source_and_date() -> None:
    text = added("Split the settings module")
    assert text.startswith("# Backlog\n")
    assert text.endswith("\n- Split the settings module (auditor, 2026-11-15)\n")


def test_an_item_is_added_once_whatever_its_punctuation() -> None:
    text = added("Split the settings module", "split  the SETTINGS-module.")
    again = added("“Split the settings module”!", text=text, source="developer")
    assert again == text
    assert len(items_in(text)) == 1


def test_what_a_person_wrote_or_checked_off_is_known() -> None:
    text = "# Ideas\n\n## Soon\n* [x] Split the settings module\n1. Dark mode\n\nno newline"
    assert added("dark mode", "Split the settings module", text=text) == text
    assert added("Light mode", text=text) == f"{text}\n- Light mode (auditor, 2026-11-15)\n"


def test_names_that_differ_in_signs_alone_are_kept_apart() -> None:
    assert len(items_in(added("Support C", "Support C++", "Support C#"))) == 3


def test_with_nothing_to_add_nothing_changes() -> None:
    assert added() == ""
    assert added("", " \n", "***", "#") == ""
    assert added(text="kept") == "kept"


def test_line_ends_of_the_file_are_kept() -> None:
    assert added("New", text="- Old\r\n") == "- Old\r\n- New (auditor, 2026-11-15)\r\n"


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ("# Shout", "- Shout"),
        ("\x1b[31mred\x1b[0m", "- [31mred[0m"),
        ("two\nlines\r\n# three", "- two lines # three"),
        ("<script>alert(1)</script>", "- &lt;script>alert(1)&lt;/script>"),
        ("<!-- hidden", "- &lt;!-- hidden"),
        ("> - 1. ## deep", "- deep"),
        ("```sh", "- `sh"),
        ("![pixel](http://x/y.png)", "- [pixel](http://x/y.png)"),
        ("a < b and `List[int]`", "- a < b and `List[int]`"),
        ("turned \u202eback", "- turned back"),
        ("- [ ] a box", "- a box"),
    ],
)
def test_an_item_is_words_and_nothing_else(item: str, line: str) -> None:
    assert items_in(added(item)) == [f"{line} (auditor, 2026-11-15)"]


def test_a_source_cannot_break_the_line() -> None:
    text = added("Idea", source="a) \n# b (c")
    assert items_in(text) == ["- Idea (a] # b [c, 2026-11-15)"]
    assert added("idea", text=text) == text


def test_items_are_bounded_in_length_and_number() -> None:
    text = added(*[f"idea {number} " + "x" * 5_000 for number in range(100)])
    assert len(items_in(text)) == MAX_ITEMS
    assert all(len(line) < MAX_ITEM + 60 for line in items_in(text))


@given(st.lists(st.text(max_size=80), max_size=5))
def test_whatever_the_items_are_the_second_time_adds_nothing(items: list[str]) -> None:
    text = added(*items, text="# Backlog\n")
    assert added(*items, text=text) == text
    assert [line.level for line in lines_of(text)].count(0) == len(lines_of(text)) - 1
