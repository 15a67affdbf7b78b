"""Notes of the project's owner, by whom they are for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.jobs.pipeline.quoted_files import MAX_NOTE, MAX_NOTES, notes_of
from tests.linear_cost import assert_linear_cost

FILE = """\
# Human review

<!-- Write notes below. `## For the developer` addresses a role. -->

Keep changes small.

- @auditor: look at the licence headers
- @architect, @plan-reviewer: no new dependencies
- [x] done already
  - with its details
- [ ] use tabs

## For the developer

- Use `pathlib`:

  ```python
  # @auditor: this is code
  Path("x")
  ```
- Never touch `legacy/`
  - [x] but for a.py
  - nor `old/`

### In tests

Prefer fakes.

## For the Lead Analyst

Ask for evidence.

## Later

Dark mode comes next.
"""


def pairs(text: str | None) -> list[tuple[str, str]]:
    return [(item.role, item.text) for item in notes_of(text)]


def test_notes_go_to_whom_they_address_and_the_rest_to_all() -> None:
    assert pairs(FILE) == [
        ("", "Keep changes small."),
        ("auditor", "look at the licence headers"),
        ("architect", "no new dependencies"),
        ("plan_reviewer", "no new dependencies"),
        ("", "use tabs"),
        ("developer", 'Use `pathlib`:\n  # @auditor: this is code\n  Path("x")'),
        ("developer", "Never touch `legacy/`\nnor `old/`"),
        ("developer", "Prefer fakes."),
        ("lead_analyst", "Ask for evidence."),
        ("", "Dark mode comes next."),
    ]


@pytest.mark.parametrize(
    ("heading", "role"),
    [
        ("## For the developer", "developer"),
        ("## for developer:", "developer"),
        ("### To the Integration Specialist", "integration_specialist"),
        ("## @auditor", "auditor"),
        ("## For: auditor", "auditor"),
        ("**For the auditor**", "auditor"),
        ("## For all", ""),
        ("## For everyone", ""),
        ("## Foreword", ""),
        ("## Developer experience", ""),
    ],
)
def test_a_heading_addresses(heading: str, role: str) -> None:
    assert pairs(f"{heading}\n\n- a note\n") == [(role, "a note")]


def test_a_note_for_a_role_that_does_not_exist_is_for_all() -> None:
    text = "## For the record\n\nIt was late.\n\n## For the developer\n\nHello.\n"
    found = notes_of(text, roles=["developer"])
    assert [item.role for item in found] == ["", "developer"]


@pytest.mark.parametrize(
    "text", [None, "", "# Title\n", "<!-- note", "- [x] done", "---\n", "- \n", "```\n"]
)
def test_there_may_be_no_notes(text: str | None) -> None:
    assert notes_of(text) == ()


def test_a_comment_over_lines_is_no_note_and_what_follows_is() -> None:
    assert pairs("a<!-- b\nc\n- d --> e\n") == [("", "a\ne")]


def test_a_fingerprint_stays_until_the_words_change() -> None:
    first, moved = notes_of("- Use   tabs")[0], notes_of("# New title\n\n* Use\n  tabs\n")[0]
    assert first.fingerprint == moved.fingerprint
    assert first.fingerprint != notes_of("- Use spaces")[0].fingerprint
    assert first.fingerprint != notes_of("- @developer: Use tabs")[0].fingerprint


def test_notes_are_bounded_and_reported_once() -> None:
    assert len(notes_of("".join(f"- note {number}\n" for number in range(1_000)))) == MAX_NOTES
    assert len(notes_of("- same\n- same\n")) == 1
    assert len(notes_of("- " + "x" * 1_000_000)[0].text) <= MAX_NOTE


@given(st.text(alphabet="@a:, -[x]#\n<!->`", max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert all(item.text and item.fingerprint for item in notes_of(text))


@pytest.mark.sample(2)
@pytest.mark.parametrize("piece", ["@a ", "@a, ", "<!--", "- @", "@a and ", "> "])
def test_a_hostile_file_is_read(piece: str) -> None:
    def read(size: int) -> None:
        notes = notes_of(piece * size)
        assert len(notes) <= MAX_NOTES
        assert all(len(note.text) <= MAX_NOTE for note in notes)

    assert_linear_cost(read, 200_000)
