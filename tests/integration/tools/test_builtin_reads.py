from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.core.processes import ProcessExit, ProcessSpec
from podium.sandbox import ProcessLauncher
from podium.tools import text_search
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness, parts_of_the_secret_in


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return make_harness(tmp_path)


async def test_a_file_is_read_by_lines_and_says_where_to_go_on(harness: Harness) -> None:
    (harness.root / "a.txt").write_text("one\ntwo\nthree\nfour\n")

    outcome = await harness.use("read_file", path="a.txt", offset=2, limit=2)

    assert outcome.ok
    assert outcome.result == {
        "path": "a.txt",
        "content": "two\nthree",
        "first_line": 2,
        "last_line": 3,
        "total_lines": 4,
        "next_offset": 4,
        "sha256": hashlib.sha256(b"one\ntwo\nthree\nfour\n").hexdigest(),
    }


async def test_the_rest_of_a_file_has_no_next_offset_and_an_empty_file_is_empty(
    harness: Harness,
) -> None:
    (harness.root / "a").write_text("one\ntwo")
    (harness.root / "empty").touch()

    rest = await harness.use("read_file", path="a", offset=2)
    empty = await harness.use("read_file", 1, path="empty")

    assert (rest.result["content"], rest.result["next_offset"]) == ("two", None)
    assert (empty.result["content"], empty.result["total_lines"]) == ("", 0)


async def test_a_long_file_comes_in_portions_that_lose_nothing(harness: Harness) -> None:
    text = "\n".join(f"line {number} é" for number in range(5000))
    (harness.root / "long").write_text(text)
    lines: list[str] = []
    offset: int | None = 1

    for index in range(100):
        outcome = await harness.use("read_file", index, path="long", offset=offset, limit=10_000)
        lines += outcome.result["content"].split("\n")
        offset = outcome.result["next_offset"]
        if offset is None:
            break

    assert "\n".join(lines) == text


async def test_a_line_too_long_to_show_is_cut_and_the_next_can_still_be_read(
    harness: Harness,
) -> None:
    (harness.root / "wide").write_text("x" * 100_000 + "\nend")

    outcome = await harness.use("read_file", path="wide")

    assert "[cut: this line has 100000 characters]" in outcome.result["content"]
    assert outcome.result["next_offset"] == 2


async def test_bytes_that_are_no_utf8_are_replaced(harness: Harness) -> None:
    (harness.root / "latin").write_bytes(b"caf\xe9")

    assert (await harness.use("read_file", path="latin")).result["content"] == "caf\ufffd"


@pytest.mark.parametrize(
    ("path", "offset", "words"),
    [
        ("binary", 1, "is a binary file (4 bytes)"),
        ("short", 9, "offset 9 is past the end of 'short', whose last line is 1"),
        ("folder", 1, "is a folder"),
        ("missing", 1, "No such file or directory ('missing')"),
        ("/etc/hostname", 1, "is outside the workspace"),
        ("link", 1, "is outside the workspace"),
    ],
)
async def test_what_cannot_be_read_is_a_failure_in_words(
    harness: Harness, path: str, offset: int, words: str
) -> None:
    (harness.root / "binary").write_bytes(b"a\0bc")
    (harness.root / "short").write_text("one")
    (harness.root / "folder").mkdir()
    (harness.root / "link").symlink_to("/etc/hostname")

    outcome = await harness.use("read_file", path=path, offset=offset)

    assert not outcome.ok
    assert words in outcome.error
    assert "Traceback" not in outcome.error


def _tree(root: Path) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt", ".git/e.py", ".podium/f.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"import {Path(name).stem}\n# needle here\n")
    (root / "linked").symlink_to("/etc")
    (root / "src/hosts").symlink_to("/etc/hosts")


async def test_the_git_file_of_a_worktree_is_not_shown(harness: Harness) -> None:
    (harness.root / ".git").write_text("gitdir: /home/ann/project/.git/worktrees/task\n")
    (harness.root / "a.py").write_text("gitdir = 1\n")
    listed = await harness.use("list_files")
    matches = await harness.use("search_text", pattern="gitdir")
    assert listed.result["files"] == ["a.py"]
    assert [match["path"] for match in matches.result["matches"]] == ["a.py"]


@pytest.mark.parametrize(
    ("path", "glob", "files"),
    [
        (".", "**", ["a.py", "src/b.py", "src/d.txt", "src/deep/c.py"]),
        (".", "*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        (".", "src/*.py", ["src/b.py"]),
        (".", "src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        (".", "**/deep/**", ["src/deep/c.py"]),
        ("src", "*.txt", ["src/d.txt"]),
        (".", "nothing*", []),
    ],
)
async def test_files_are_listed_by_glob_without_git_and_links(
    harness: Harness, path: str, glob: str, files: list[str]
) -> None:
    _tree(harness.root)

    outcome = await harness.use("list_files", path=path, glob=glob)

    assert outcome.result == {"files": files, "total": len(files), "complete": True}


async def test_compiled_python_is_listed_only_where_the_glob_names_it(harness: Harness) -> None:
    for name in ("a.py", "__pycache__/a.cpython-311.pyc", "__pycache__/hidden.py"):
        (harness.root / name).parent.mkdir(exist_ok=True)
        (harness.root / name).touch()

    everything = await harness.use("list_files")
    compiled = await harness.use("list_files", 1, glob="*.pyc")

    assert everything.result["files"] == ["a.py", "__pycache__/hidden.py"]
    assert compiled.result["files"] == ["__pycache__/a.cpython-311.pyc"]


async def test_a_long_list_is_bounded_and_says_so(harness: Harness) -> None:
    for number in range(30):
        (harness.root / f"{number:02}").touch()

    outcome = await harness.use("list_files", limit=10)

    assert len(outcome.result["files"]) == 10
    assert (outcome.result["total"], outcome.result["complete"]) == (30, False)


async def test_a_file_name_that_is_no_text_does_not_break_the_list(harness: Harness) -> None:
    (harness.root / os.fsdecode(b"bad\xff")).touch()

    assert (await harness.use("list_files")).result["files"] == ["bad?"]


def test_a_glob_of_many_stars_is_matched_quickly() -> None:
    assert not text_search.matches("a" * 250, "a*" * 40 + "b")
    assert not text_search.matches("/".join("a" * 100), "**/a/" * 40 + "b")


async def test_text_is_found_with_its_place(harness: Harness) -> None:
    _tree(harness.root)

    outcome = await harness.use("search_text", pattern=r"^import [bd]$", glob="*.py")

    assert outcome.result == {
        "matches": [{"path": "src/b.py", "line": 1, "text": "import b"}],
        "files_searched": 3,
        "files_skipped": 0,
        "complete": True,
        "count": 1,
    }


async def test_a_search_is_bounded_and_skips_what_is_no_text(harness: Harness) -> None:
    (harness.root / "many").write_text("Needle\n" * 50)
    (harness.root / "zbinary").write_bytes(b"needle\0")

    outcome = await harness.use("search_text", pattern="needle", case_sensitive=False, limit=5)
    whole = await harness.use("search_text", 1, pattern="nothing")

    assert (outcome.result["count"], outcome.result["complete"]) == (5, False)
    assert (outcome.result["stopped_in_file"], outcome.result["files_total"]) == (1, 2)
    assert (whole.result["files_searched"], whole.result["files_skipped"]) == (1, 1)


async def test_a_pattern_that_is_none_is_refused_in_words(harness: Harness) -> None:
    outcome = await harness.use("search_text", pattern="(")

    assert "not a valid regular expression" in outcome.error


async def test_missing_folder_is_reported_without_a_traceback(harness: Harness) -> None:
    search = await harness.use("search_text", pattern="x", path="nowhere")
    listing = await harness.use("list_files", 1, path="nowhere")

    assert search.error == "'search_text' broke: No such file or directory ('nowhere')"
    assert listing.error == "'list_files' broke: No such file or directory ('nowhere')"


async def test_a_pattern_that_takes_for_ever_is_ended(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The limit is shortened so that the test need not wait for all of it.
    monkeypatch.setattr("podium.tools.builtin.file_lookup._SEARCH_SECONDS", 0.5)
    (harness.root / "evil").write_text("a" * 60 + "!")

    outcome = await harness.use("search_text", pattern=r"(a+)+$")

    assert "timed out after 0.5 seconds" in outcome.error


class BusyWorkspace(ProcessLauncher):
    """Something happens in the workspace between the walk and the search."""

    def __init__(self, happen: Callable[[], object]) -> None:
        super().__init__()
        self._happen = happen

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        self._happen()
        return await super().run(spawn)


async def test_a_file_that_appears_after_the_walk_is_not_searched(tmp_path: Path) -> None:
    root = tmp_path / "workspace"

    def appear() -> None:
        (root / "late.txt").write_text("needle\n")
        (root / "deep").mkdir()
        (root / "deep" / ".env").write_text("KEY=needle\n")

    harness = make_harness(tmp_path, launcher=BusyWorkspace(appear))
    (root / "early.txt").write_text("needle\n")

    found = await harness.use("search_text", pattern="needle")

    assert [match["path"] for match in found.result["matches"]] == ["early.txt"]
    assert (found.result["files_searched"], found.result["files_skipped"]) == (1, 0)


async def test_what_becomes_a_link_or_a_pipe_after_the_walk_is_not_searched(tmp_path: Path) -> None:
    root = tmp_path / "workspace"

    def change() -> None:
        for name in ("file", "pipe", "folder/inside"):
            (root / name).unlink()
        (root / "file").symlink_to(tmp_path / "outside" / "inside")
        os.mkfifo(root / "pipe")
        (root / "folder").rmdir()
        (root / "folder").symlink_to(tmp_path / "outside")

    harness = make_harness(tmp_path, launcher=BusyWorkspace(change))
    (tmp_path / "outside").mkdir()
    (root / "folder").mkdir()
    (tmp_path / "outside" / "inside").write_text("needle\n")
    for name in ("file", "folder/inside", "pipe", "still"):
        (root / name).write_text("needle\n")

    found = await harness.use("search_text", pattern="needle")

    assert [match["path"] for match in found.result["matches"]] == ["still"]
    assert (found.result["files_searched"], found.result["files_skipped"]) == (1, 3)


async def test_more_files_than_one_search_takes_are_left_out_and_it_says_so(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The limit is lowered so that the test need not make that many files.
    monkeypatch.setattr("podium.tools.builtin.file_lookup._MAX_LIST_BYTES", 20)
    for number in range(5):
        (harness.root / f"file{number}").write_text("needle\n")

    found = await harness.use("search_text", pattern="needle")

    assert (found.result["count"], found.result["complete"]) == (4, False)


async def test_a_walk_leaves_out_what_has_to_be_asked_for_by_name(harness: Harness) -> None:
    (harness.root / "app").mkdir()
    (harness.root / "app" / ".env").write_text("KEY=hunter2\n")
    (harness.root / "app" / "main.py").write_text("KEY = None\n")

    listed = await harness.use("list_files")
    found = await harness.use("search_text", 1, pattern="KEY")

    assert listed.result["files"] == ["app/main.py"]
    assert [match["path"] for match in found.result["matches"]] == ["app/main.py"]


@pytest.mark.parametrize("ahead", range(1, len(SECRET)))
async def test_no_part_of_a_secret_is_left_where_a_long_line_is_cut(
    harness: Harness, ahead: int
) -> None:
    (harness.root / "a").write_text("." * (6_000 - ahead) + SECRET + "." * 30_000)

    outcome = await harness.use("read_file", path="a")

    assert "[cut: " in outcome.result["content"]
    assert not parts_of_the_secret_in(outcome, await harness.events())


@pytest.mark.parametrize("cut", [400, 400 + 2 * len(SECRET)])
@pytest.mark.parametrize("ahead", [6, len(SECRET) - 1])
async def test_no_part_of_a_secret_is_left_where_a_found_line_is_cut(
    harness: Harness, cut: int, ahead: int
) -> None:
    # Secrets become shorter when they are hidden, so what lies behind them comes nearer.
    before = f"x{SECRET * 2}" + "." * (cut - 1 - 2 * len(SECRET) - ahead)
    (harness.root / "a").write_text(before + SECRET + "." * 1_000)

    outcome = await harness.use("search_text", pattern="x")

    assert outcome.result["count"] == 1
    assert not parts_of_the_secret_in(outcome, await harness.events())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_files", {"glob": "*.{py,rst}"}),
        ("search_text", {"pattern": "x", "glob": "src/**/*.{py,rst}"}),
        ("find_files", {"patterns": ["*.{py,rst}"]}),
    ],
)
async def test_a_glob_with_alternatives_is_refused_instead_of_finding_nothing(
    harness: Harness, tool: str, arguments: dict[str, Any]
) -> None:
    (harness.root / "a.py").write_text("x\n")
    outcome = await harness.use(tool, **arguments)
    assert not outcome.ok
    assert "globs do not support {a,b}; search once for each alternative" in outcome.error


async def test_read_gives_at_most_250_lines_and_10_kb_unless_more_is_requested(
    harness: Harness,
) -> None:
    (harness.root / "many").write_text("x\n" * 903)
    (harness.root / "wide").write_text(f"{'x' * 98}\n" * 903)

    many = (await harness.use("read_file", path="many")).result
    wide = (await harness.use("read_file", 1, path="wide")).result
    more = (await harness.use("read_file", 2, path="wide", limit=903)).result

    assert (many["last_line"], many["next_offset"]) == (250, 251)
    assert wide["last_line"] == 100
    assert 200 < more["last_line"] < 250
