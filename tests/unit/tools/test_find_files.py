from __future__ import annotations

from pathlib import Path

import pytest

from podium.tools import text_search
from tests.unit.tools.toolbox_harness import Harness, make_harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    made = make_harness(tmp_path)
    for path in (
        "b/test_x.py",
        "a/test_y.py",
        "a/README.md",
        "a/x.txt",
        ".git/test_z.py",
        "a/.env",
    ):
        (made.root / path).parent.mkdir(parents=True, exist_ok=True)
        (made.root / path).write_text("x")
    (made.root / "a/test_link.py").symlink_to("test_y.py")
    return made


async def test_files_that_fit_any_pattern_are_found_sorted(harness: Harness) -> None:
    outcome = await harness.use("find_files", patterns=["test_*.py", "a/*.md"])

    assert outcome.result == {
        "files": ["a/README.md", "a/test_y.py", "b/test_x.py"],
        "total": 3,
        "complete": True,
    }


async def test_only_the_named_folder_is_looked_in(harness: Harness) -> None:
    outcome = await harness.use("find_files", patterns=["*.py"], path="b")

    assert outcome.result["files"] == ["b/test_x.py"]


async def test_upper_and_lower_case_may_be_the_same(harness: Harness) -> None:
    exact = await harness.use("find_files", patterns=["readme*"])
    folded = await harness.use("find_files", patterns=["readme*"], case_sensitive=False)

    assert exact.result["files"] == []
    assert folded.result["files"] == ["a/README.md"]


async def test_what_walks_pass_over_is_not_found(harness: Harness) -> None:
    outcome = await harness.use("find_files", patterns=["**", ".env"])

    assert not [path for path in outcome.result["files"] if ".env" in path or ".git" in path]


async def test_it_says_when_there_are_more_than_it_shows(harness: Harness) -> None:
    outcome = await harness.use("find_files", patterns=["**"], limit=2)

    assert outcome.result["files"] == ["a/README.md", "a/test_y.py"]
    assert (outcome.result["total"], outcome.result["complete"]) == (4, False)
    assert outcome.result["cut"] == "2 more; use a closer pattern"


async def test_long_names_are_shown_whole_or_not_at_all(harness: Harness) -> None:
    for number in range(130):
        (harness.root / f"{number:03}{'n' * 240}").write_text("")

    outcome = await harness.use("find_files", patterns=["*n"], limit=2_000)

    assert outcome.result["total"] == 130
    assert 50 < len(outcome.result["files"]) < 130
    assert all(path.endswith("nnn") for path in outcome.result["files"])
    assert not outcome.result["complete"]


async def test_it_says_when_not_every_file_was_looked_at(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A hundred thousand files take too long to make.
    monkeypatch.setattr(text_search, "MAX_FILES", 2)

    outcome = await harness.use("find_files", patterns=["**"])

    assert outcome.result["cut"] == "only the first 2 files were looked at"
    assert not outcome.result["complete"]
