"""Required parts of a plan."""

from __future__ import annotations

import pytest

from podium.jobs.pipeline.plan_check import (
    CHECKLIST,
    DELIVERABLES,
    DOCUMENTATION,
    LOGIC,
    PARTS,
    REFERENCES,
    TESTS,
    missing_parts,
    part_of,
)
from tests.linear_cost import assert_linear_cost
from tests.soaking import in_soak

BODIES = {
    REFERENCES: "- docs/settings.md: how settings are kept",
    LOGIC: "The checkbox writes `theme` and the page reads it.",
    TESTS: "| Scenario | Expected |\n| --- | --- |\n| toggle on | `dark` |",
    DOCUMENTATION: "- README.md: name the setting",
    DELIVERABLES: "- src/settings.py",
    CHECKLIST: "- [ ] the toggle works",
}
HEADINGS = dict(zip(PARTS, (part.capitalize() for part in PARTS), strict=True))


def plan(
    headings: dict[str, str] | None = None, bodies: dict[str, str] | None = None, mark: str = "## "
) -> str:
    names, texts = HEADINGS | (headings or {}), BODIES | (bodies or {})
    return "# Plan: dark mode\n\n" + "\n\n".join(
        f"{mark}{names[part]}\n\n{texts[part]}" for part in PARTS
    )


def test_a_whole_plan_misses_nothing() -> None:
    assert missing_parts(plan()) == ()


@pytest.mark.parametrize(
    "text", ["", "   \n\n", "# Plan\n", "Just build it.", "# " + "\n# ".join(PARTS)]
)
def test_a_plan_without_content_misses_everything(text: str) -> None:
    assert missing_parts(text) == PARTS


@pytest.mark.parametrize(
    ("part", "heading"),
    [
        (REFERENCES, "List of Reference Documents"),
        (REFERENCES, "1. References"),
        (REFERENCES, "📚 Related Documents"),
        (REFERENCES, "Documents consulted"),
        (REFERENCES, "Sources & links"),
        (REFERENCES, "REFERENCE DOCS:"),
        (REFERENCES, "Background reading"),
        (LOGIC, "2) Detailed Logic"),
        (LOGIC, "Implementation details"),
        (LOGIC, "Technical Design"),
        (LOGIC, "Algorithm"),
        (LOGIC, "Proposed Changes"),
        (LOGIC, "How it works"),
        (LOGIC, "Approach"),
        (LOGIC, "Step-by-step implementation"),
        (TESTS, "Test Cases"),
        (TESTS, "Testing"),
        (TESTS, "Scenarios and expected values"),
        (TESTS, "Test plan (with expected results)"),
        (TESTS, "Verification scenarios"),
        (DOCUMENTATION, "Docs to be updated"),
        (DOCUMENTATION, "Documentation"),
        (DOCUMENTATION, "Documentation Changes"),
        (DOCUMENTATION, "List of documents to update"),
        (DOCUMENTATION, "README & docs impact"),
        (DELIVERABLES, "Deliverables"),
        (DELIVERABLES, "List of Expected Deliverables"),
        (DELIVERABLES, "Files to change"),
        (DELIVERABLES, "Expected outputs / artefacts"),
        (DELIVERABLES, "What will be delivered"),
        (CHECKLIST, "Checklist"),
        (CHECKLIST, "Definition of Done"),
        (CHECKLIST, "✅ Completion Check-list"),
        (CHECKLIST, "Acceptance criteria"),
        (CHECKLIST, "completion_checklist"),
        (CHECKLIST, "CompletionChecklist"),
    ],
)
def test_a_part_is_found_under_natural_headings(part: str, heading: str) -> None:
    assert missing_parts(plan({part: heading})) == ()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_left_out_is_named(part: str) -> None:
    assert missing_parts(plan({part: "Something else"})) == (part,)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "body",
    [
        "",
        "TBD",
        "- TBD",
        "- [ ] TODO",
        "**TBD**.",
        "To be determined",
        "…",
        "---",
        "<fill in>",
        "TODO: write this",
        "<!-- later -->",
        "| | |\n|---|---|",
    ],
)
def test_a_placeholder_is_no_part(part: str, body: str) -> None:
    assert missing_parts(plan(bodies={part: body})) == (part,)


@pytest.mark.parametrize("mark", ["# ", "### ", "###### "])
def test_the_level_of_headings_does_not_matter(mark: str) -> None:
    assert missing_parts(plan(mark=mark)) == ()


def test_underlined_bold_and_inline_headings_count() -> None:
    underlined = plan(mark="").replace("\n\n", "\n-----\n\n", 1)
    for part in PARTS:
        name = HEADINGS[part]
        underlined = underlined.replace(f"\n{name}\n", f"\n{name}\n{'-' * len(name)}\n")
    assert missing_parts(underlined) == ()
    bold = "\n\n".join(f"**{HEADINGS[part]}**\n{BODIES[part]}" for part in PARTS)
    assert missing_parts(bold) == ()
    inline = plan({REFERENCES: "Other"}) + "\n\n**References:** docs/a.md, docs/b.md\n"
    assert missing_parts(inline) == ()


def test_one_heading_may_name_two_parts() -> None:
    text = plan({REFERENCES: "Other"}).replace(
        "## " + HEADINGS[DOCUMENTATION], "## Reference documents and documentation to update"
    )
    assert missing_parts(text) == ()


def test_subsections_belong_to_their_part() -> None:
    body = "### Parsing\n\nRead the file.\n\n### Writing\n\nWrite it."
    assert missing_parts(plan(bodies={LOGIC: body})) == ()


def test_headings_alone_are_no_content() -> None:
    body = "### Parsing\n\n### Writing"
    assert missing_parts(plan(bodies={LOGIC: body})) == (LOGIC,)


def test_reference_documents_are_no_documentation_to_update() -> None:
    assert missing_parts(plan({DOCUMENTATION: "More reference documents"})) == (DOCUMENTATION,)


def test_a_title_is_no_part() -> None:
    text = "# Plan: update the test documentation checklist\n\n## Notes\n\n- expected: 5\n"
    assert missing_parts(text) == PARTS


def test_headings_in_code_are_none() -> None:
    assert missing_parts(f"```markdown\n{plan()}\n```\n") == PARTS


def test_that_there_is_nothing_to_update_is_an_answer() -> None:
    assert missing_parts(plan(bodies={DOCUMENTATION: "None: nothing mentions it."})) == ()
    assert missing_parts(plan(bodies={REFERENCES: "None."})) == ()
    assert missing_parts(plan(bodies={DELIVERABLES: "None."})) == (DELIVERABLES,)


@pytest.mark.parametrize(
    "body",
    [
        "- toggle on → dark",
        "- `parse('')` returns `None`",
        "- f(2) == 4",
        "- Empty name: expected exit code 2",
        "1. Toggle on.\n   Expected: the page is dark.",
        "### Empty\n\nInput: nothing\n\n**Expected:**\n\n```\n[]\n```",
        "Given a user\nWhen they click\nThen the page is dark",
        "- the counter should be 3",
        "- raises ValueError on `-1`",
        "| Input | Result |\n|:--|--:|\n| 1 | 2 |",
        "Input | Value\n--- | ---\n1 | 2",
        "- `x => y`",
        "```python\nassert f(2) == 4\n```",
    ],
)
def test_scenarios_with_values_count(body: str) -> None:
    assert missing_parts(plan(bodies={TESTS: body})) == ()


@pytest.mark.parametrize(
    "body",
    [
        "We will write unit tests.",
        "- test the toggle\n- test the settings",
        "- toggle on. Expected: TBD",
        "| Scenario | Expected |\n| --- | --- |\n| toggle on | TBD |",
        "| Scenario | Expected |\n| --- | --- |",
    ],
)
def test_scenarios_without_values_do_not(body: str) -> None:
    assert missing_parts(plan(bodies={TESTS: body})) == (TESTS,)


def test_a_checklist_needs_items() -> None:
    assert missing_parts(plan(bodies={CHECKLIST: "All shall be well."})) == (CHECKLIST,)
    assert missing_parts(plan(bodies={CHECKLIST: "1. All is well."})) == ()


@pytest.mark.parametrize(
    "piece",
    [
        "<!--",
        "```\n",
        "# test\n",
        "| a |\n|---|\n",
        "`a",
        "- [ ] ",
        *map(in_soak, ["**a** ", "expected ", "a\n---\n", "\n", "'", "(", "_*"]),
    ],
)
@pytest.mark.parametrize("size", [50_000, in_soak(1_000_000)])
def test_a_hostile_plan_is_read(piece: str, size: int) -> None:
    def read(size: int) -> None:
        for start in ("", "## Tests\n", "## Checklist\n"):
            assert missing_parts(start + piece * (size // len(piece)))

    assert_linear_cost(read, size)


def test_part_is_given_verbatim_below_its_heading() -> None:
    whole = plan(bodies={LOGIC: "The sum is wrong.\n\n### Where\n\n`calc.py`"})
    assert part_of(whole, LOGIC).startswith("The sum is wrong.")
    assert "`calc.py`" in part_of(whole, LOGIC)
    assert "toggle on" not in part_of(whole, LOGIC)
    assert part_of("# Plan\n\nNothing.\n", LOGIC) == ""
