"""Sources as podium.yaml names them, behind the fence that a loop puts around what it starts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from podium.jobs.sense.composition import sense_options, sources_of
from podium.jobs.sense.models import Sensed
from tests.integration.sense.root import Root
from tests.integration.workspaces.workspace_harness import needs_bwrap
from tests.unit.bridge.sources_harness import only


def git(folder: Path, *words: str) -> None:
    me = ("-c", "user.name=Uma", "-c", "user.email=uma@example.org")
    subprocess.run(("git", *me, *words), cwd=folder, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """A root that is a git repository, with one commit and one change."""
    root = Root(tmp_path)
    (root.path / "notes.txt").write_text("one\n")
    git(root.path, "init", "-q", "-b", "main")
    git(root.path, "add", "notes.txt")
    git(root.path, "commit", "-q", "-m", "first")
    (root.path / "notes.txt").write_text("two\n")
    return root


def add_source(root: Root, **options: Any) -> None:
    root.configure({"planner": "rules", "sources": [{"name": "added", **options}]}, sandbox="kernel")  # fmt: skip


async def sensed_by(root: Root) -> Sensed:
    async with root.podium() as podium:
        *_, source = sources_of(podium, sense_options(podium))
        return await only(source)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@needs_bwrap()
async def test_git_works_behind_the_fence_where_the_root_is_the_repository(root: Root) -> None:
    add_source(root, kind="git", timeout_seconds=60)
    before = snapshot(root.path)
    sensed = await sensed_by(root)
    assert (sensed.condition, sensed.why) == ("ok", "")
    content = sensed.content
    assert (content["branch"], content["commits"][0]["subject"]) == ("main", "first")
    assert ".M notes.txt" in content["changed"]
    assert snapshot(root.path) == before


@needs_bwrap()
async def test_the_loops_own_state_is_neither_seen_nor_a_change(root: Root) -> None:
    add_source(root, kind="git", timeout_seconds=60)
    before = await sensed_by(root)
    state = root.path / ".podium/sense/memory.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"ticks": 1}))
    assert await sensed_by(root) == before
    add_source(root, kind="command", command=["ls", "-A", ".podium"], timeout_seconds=60)
    assert (await sensed_by(root)).content == {"exit_code": 0, "output": ""}


@needs_bwrap()
async def test_a_repository_that_lies_outside_the_root_is_not_read(
    root: Root, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    git(outside, "init", "-q", "-b", "main")
    git(outside, "commit", "-q", "--allow-empty", "-m", "not for you")
    inside = root.path / "inside"
    inside.mkdir()
    (inside / ".git").write_text(f"gitdir: {outside / '.git'}\n")
    add_source(root, kind="git", path="inside", timeout_seconds=60)
    sensed = await sensed_by(root)
    assert (sensed.condition, sensed.content) == ("unreadable", None)
    assert "not a git repository" in sensed.why
