"""Playbooks: front matter, steps, what they include, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.core.errors import ConfigInvalid
from podium.jobs.playbook.loader import MAX_STEPS, load_playbook, read_playbook
from podium.jobs.playbook.page import MAX_DEPTH, MAX_PAGES
from tests.unit.playbook.files import PLAYBOOK, faults_of, write

HEAD = "---\nname: x\n---\n"


def steps(folder: Path, body: str, **others: str) -> list[tuple[str, str]]:
    page(folder, "main", body)
    for name, text in others.items():
        (folder / f"{name}.md").write_text(text)
    return [(step.title, step.text) for step in load_playbook(folder / "main.md").steps]


def page(folder: Path, name: str, body: str) -> Path:
    path = folder / f"{name}.md"
    path.write_text(HEAD + body)
    return path


def include(*names: str) -> str:
    return "```include\n" + "\n".join(names) + "\n```\n"


def test_a_playbook_is_its_front_matter_its_title_and_its_steps(tmp_path: Path) -> None:
    playbook = load_playbook(write(tmp_path))
    assert playbook.head.name == "bump-compatibility"
    assert playbook.head.limits.tool_calls == 60
    assert playbook.head.inputs["version"].is_required
    assert not playbook.head.inputs["notes"].is_required
    assert playbook.title == "Bump to {{ version }}"
    assert playbook.introduction == "Change nothing else."
    assert [(step.title, step.line) for step in playbook.steps] == [
        ("Find it", 17),
        ("Change it", 30),
    ]
    assert "### Where" in playbook.steps[0].text
    assert "# no heading" in playbook.steps[0].text


@pytest.mark.parametrize(
    ("body", "titles"),
    [
        ("# One\n# Two\n", ["One", "Two"]),
        ("# Title\n## One\n## Two\n", ["One", "Two"]),
        ("## One\n### Deeper\n## Two\n", ["One", "Two"]),
        ("# Only\n", ["Only"]),
        ("Title\n=====\n\nOne\n---\n\nTwo\n---\n", ["One", "Two"]),
        ("## One ##\n", ["One"]),
        ("## One\n    # code\n~~~\n# code\n~~~\n", ["One"]),
        ("## One\n- item\n---\nx\n", ["One"]),
        ("## One\n```\ncode\n\n```\n---\n", ["One"]),
        ("### One\n# Two\n", ["Two"]),
    ],
)
def test_the_highest_headings_are_steps_and_one_alone_above_them_is_the_title(
    tmp_path: Path, body: str, titles: list[str]
) -> None:
    assert [title for title, _ in steps(tmp_path, body)] == titles


def test_a_file_of_windows_reads_the_same(tmp_path: Path) -> None:
    plain = load_playbook(write(tmp_path))
    (tmp_path / "bump.md").write_bytes(b"\xef\xbb\xbf" + PLAYBOOK.replace("\n", "\r\n").encode())
    assert load_playbook(tmp_path / "bump.md").digest() == plain.digest()


def test_all_faults_of_front_matter_and_text_come_at_once(tmp_path: Path) -> None:
    text = """\
---
name: x
inputs:
  version: {type: integer, default: abc}
  Bad Name: {}
  both: {required: true, default: "a"}
limits: {turns: 0, usd: many}
success: ["echo {{ version }}"]
colour: red
---
# T {{ nope }}

## One {{
   {{ version | upper }} and {{version}} and {{ both.x }}
"""
    problems = faults_of(write(tmp_path, playbook=text))
    assert [line.partition(": ")[0] for line in problems] == [
        "bump.md:4:28",
        "bump.md:5:3",
        "bump.md:6:3",
        "bump.md:7:10",
        "bump.md:7:20",
        "bump.md:8:11",
        "bump.md:9:1",
        "bump.md:11:5",
        "bump.md:13:8",
        "bump.md:14:4",
        "bump.md:14:46",
    ]
    assert "there is no input 'nope'; inputs: Bad Name, both, version" in problems[7]


@pytest.mark.parametrize(
    ("text", "output_text"),
    [
        ("", "bump.md:1: has no front matter"),
        ("## One\n", "bump.md:1: has no front matter"),
        ("---\nname: x\n## One\n", "bump.md:1:1: the front matter is not closed"),
        (HEAD + "words\n", "bump.md: has no steps"),
        ("---\n---\n## One\n", "bump.md:1:1: name: is missing"),
        ("---\nname: [\n---\n## One\n", "bump.md:3:1: not valid YAML"),
        (HEAD + "## One\n```sh\n## Two\n", "bump.md:5:1: the code block is not closed"),
        (HEAD + "## One\nx <!-- y\n## Two\n", "bump.md:5:3: the comment is not closed"),
        (HEAD + "##\nx\n", "bump.md:4:1: the heading is empty"),
        (HEAD + "## One\n" + "x" * 10_001, "bump.md:5:1: the line is longer"),
        (
            HEAD + "## One\nab\u202ecd\n",
            r"bump.md:5:3: contains an invisible character, \u202e",
        ),
        (HEAD + "## One\nab\u2028cd\n", r"bump.md:5:3: contains an invisible character"),
        (HEAD + "## One\nghp_" + "a1B2" * 9, "bump.md:5: contains what looks like a secret"),
        (HEAD + "## s\n" * (MAX_STEPS + 1), f"bump.md: has {MAX_STEPS + 1} steps"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_its_place(
    tmp_path: Path, text: str, output_text: str
) -> None:
    faults = faults_of(write(tmp_path, playbook=text))
    assert len(faults) == 1
    assert faults[0].startswith(output_text)


def test_ten_thousand_faults_are_reported_in_two_hundred_lines(tmp_path: Path) -> None:
    problems = faults_of(page(tmp_path, "main", "## One\n" + "{{ x }}\n" * 10_000))
    assert len(problems) == 201
    assert problems[-1].endswith("and 9800 more problems")


def test_included_pages_stand_as_steps_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "end.md").write_text("# Ending\n\nCalmly.\n\n## Look\n\n### Well\n")
    found = steps(
        tmp_path,
        "# T\n## One\na\n\n" + include("words.md", "shared/end.md") + "\n## Two\n",
        words="only words\n",
    )
    assert found == [("One", "a\n\nonly words\n\nCalmly."), ("Look", "### Well"), ("Two", "")]
    loaded = read_playbook(tmp_path / "main.md")
    assert [Path(file).name for file in loaded.files] == ["main.md", "words.md", "end.md"]


def test_an_included_playbook_brings_its_inputs_and_nothing_else(tmp_path: Path) -> None:
    inner = "---\nname: inner\nallowed_tools: [run_command]\ninputs: {day: {default: now}}\n---\n"
    (tmp_path / "inner.md").write_text(inner + "## Inner {{ day }}\n")
    playbook = load_playbook(page(tmp_path, "main", "# T\n" + include("inner.md")))
    assert [*playbook.head.inputs] == ["day"]
    assert playbook.head.allowed_tools is None
    assert playbook.head.name == "x"


def test_the_including_playbook_has_the_word_on_an_input_of_both(tmp_path: Path) -> None:
    (tmp_path / "inner.md").write_text(
        "---\nname: inner\ninputs: {day: {default: now}}\n---\n## Inner {{ day }}\n"
    )
    main = tmp_path / "main.md"
    main.write_text(
        "---\nname: x\ninputs: {day: {default: later}}\n---\n# T\n" + include("inner.md")
    )
    assert load_playbook(main).head.inputs["day"].default == "later"


def test_faults_of_an_included_page_name_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "inner.md").write_text("## Inner\n\n{{ day }}\n")
    problems = faults_of(page(tmp_path, "main", "# T\n" + include("inner.md")))
    assert problems == ["inner.md:3:1: there is no input 'day'; inputs: none"]


def test_mutually_including_pages_are_a_fault_and_no_loop(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("## A\n" + include("b.md"))
    (tmp_path / "b.md").write_text("## B\n" + include("./a.md"))
    (problems,) = faults_of(page(tmp_path, "main", include("a.md")))
    assert problems == "b.md:3:1: pages include each other in a circle: a.md → b.md → a.md"
    (problems,) = faults_of(page(tmp_path, "self", "## S\n" + include("self.md")))
    assert "circle: self.md → self.md" in problems


def test_nothing_beyond_the_root_is_included(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "out.md").write_text("## Out\n")
    (root / "link.md").symlink_to(tmp_path / "out.md")
    (root / "up").symlink_to(tmp_path)
    outside = ("../out.md", "link.md", "up/out.md", f"{tmp_path}/out.md", "~/out.md", "..\\out.md")
    problems = faults_of(page(root, "main", "## One\n" + include(*outside)))
    assert len(problems) == len(outside)
    assert all("outside the root" in line or "relative to this file" in line for line in problems)


def test_a_wider_root_lets_pages_beside_the_folder_in(tmp_path: Path) -> None:
    (tmp_path / "shared.md").write_text("## Shared\n")
    (tmp_path / "books").mkdir()
    main = page(tmp_path / "books", "main", "# T\n" + include("../shared.md"))
    assert [step.title for step in load_playbook(main, tmp_path).steps] == ["Shared"]
    with pytest.raises(ConfigInvalid, match="outside the root"):
        load_playbook(main)


def test_what_is_no_page_is_not_included(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "loop.md").symlink_to("loop.md")
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe")
    names = ("pipe.md", "folder.md", "loop.md", "bytes.md", "none.md", "plugin.yaml")
    problems = faults_of(page(tmp_path, "main", "## One\n" + include(*names)))
    assert [line.partition(": ")[0] for line in problems] == [
        f"main.md:{6 + n}:1" for n in range(6)
    ]


def test_depth_and_number_of_pages_have_an_end(tmp_path: Path) -> None:
    for number in range(MAX_DEPTH + 2):
        (tmp_path / f"p{number}.md").write_text(f"## {number}\n" + include(f"p{number + 1}.md"))
    (problems,) = faults_of(page(tmp_path, "deep", include("p0.md")))
    assert f"more than {MAX_DEPTH} levels deep" in problems
    (tmp_path / "leaf.md").write_text("words\n")
    (tmp_path / "ten.md").write_text(include(*["leaf.md"] * 10))
    all_output = faults_of(page(tmp_path, "wide", "## One\n" + include(*["ten.md"] * 10)))
    assert all_output
    assert f"more than {MAX_PAGES} pages" in all_output[0]


def test_all_pages_together_have_a_largest_size(tmp_path: Path) -> None:
    (tmp_path / "big.md").write_text(("x" * 999 + "\n") * 190)
    (problems, *_) = faults_of(page(tmp_path, "main", "## One\n" + include(*["big.md"] * 9)))
    assert "all pages together are longer" in problems


def test_words_after_included_steps_would_belong_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "inner.md").write_text("## Inner\n")
    (problems,) = faults_of(page(tmp_path, "main", "## One\n" + include("inner.md") + "\nMore.\n"))
    assert problems.startswith("main.md:9:1: this text follows the steps of an included page")
