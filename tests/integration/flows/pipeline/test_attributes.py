"""Parallel tasks append to the same lists, and real git merges them without a conflict."""

from __future__ import annotations

import os
import subprocess
from datetime import date
from pathlib import Path

import pytest

from podium.jobs.pipeline.branch_documents import with_union
from podium.jobs.pipeline.memory import with_items, with_lessons

DAY = date(2026, 11, 15)
BACKLOG, MEMORY = "docs/dev_docs/backlog.md", "AGENT_MEMORY.md"


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("README.md", "hello\n")
        self.commit("start")

    def git(self, *words: str) -> str:
        who = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Ann"), ("EMAIL", "ann@example.org"))
        }
        env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/", **who}
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"git {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def read(self, path: str) -> str | None:
        file = self.folder / path
        return file.read_text() if file.exists() else None

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def append(self, *words: str) -> None:
        """Append to the files as a step of the pipeline does, and commit."""
        items = with_items(self.read(BACKLOG), words, source="developer", day=DAY)
        lessons = with_lessons(
            self.read(MEMORY), words, source="developer", day=DAY, looks_secret=lambda _: None
        )
        self.write(BACKLOG, items)
        self.write(MEMORY, lessons.text)
        self.write(".gitattributes", with_union(self.read(".gitattributes"), [BACKLOG, MEMORY]))
        self.commit("append")

    def task(self, name: str, *words: str, start: str = "main") -> None:
        self.git("switch", "--quiet", "--create", name, start)
        for word in words:
            self.append(word)

    def entries(self, path: str) -> list[str]:
        text = self.read(path) or ""
        return [line.split(" (")[0] for line in text.splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("before", [(), ("old idea",)], ids=["new files", "files that exist"])
def test_appends_of_parallel_tasks_merge_without_conflict(
    tmp_path: Path, before: tuple[str, ...]
) -> None:
    repository = Repository(tmp_path)
    if before:
        repository.append(*before)
    start = repository.git("rev-parse", "HEAD")
    repository.task("one", "first idea", "second idea", start=start)
    repository.task("two", "third idea", "first idea!", start=start)
    repository.git("merge", "--quiet", "--no-edit", "one")
    for path in (BACKLOG, MEMORY):
        text = repository.read(path) or ""
        assert "<<<<" not in text
        wanted = {f"- {item}" for item in (*before, "first idea", "second idea", "third idea")}
        assert {entry.rstrip("!") for entry in repository.entries(path)} == wanted
        assert text.count("# ") == 1


def test_a_path_with_odd_characters_is_matched_by_git(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    odd = ["a b.md", "c[1].md", 'q"uote.md', "#hash.md", "!bang.md", "back\\slash.md", "ü.md"]
    text = with_union(None, odd)
    repository.write(".gitattributes", text)
    for path in odd:
        found = repository.git(
            "-c", "core.quotePath=false", "check-attr", "-z", "merge", "--", path
        )
        assert found.split("\0")[2] == "union", path
    assert repository.git("check-attr", "merge", "--", "sub/a b.md").endswith("unspecified")
    assert with_union(text, odd) == text


def test_what_the_file_says_stays() -> None:
    text = "*.md text\n/AGENT_MEMORY.md -merge\ndocs/dev_docs/backlog.md  diff\tmerge=ours"
    assert with_union(text, [BACKLOG, MEMORY]) == text
    assert with_union("*.md text", [MEMORY]) == "*.md text\n/AGENT_MEMORY.md merge=union\n"
    assert (
        with_union("a text\r\n", [MEMORY, MEMORY]) == "a text\r\n/AGENT_MEMORY.md merge=union\r\n"
    )
