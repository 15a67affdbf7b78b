"""Whatever an agent puts in place of the worktree's `.git`, it is the pointer again before anybody uses git."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from podium.core.errors import WorkspaceTampered
from podium.git.layout import put_pointer_back
from podium.git.workspace import GitWorkspace
from podium.platform import folder_tree
from tests.integration.workspaces.workspace_harness import Place, git

PLANTED: dict[str, Callable[[Path], object]] = {
    "a repository": lambda pointer: git(pointer.parent, "init", "-q"),
    "a file that points elsewhere": lambda pointer: pointer.write_text("gitdir: /evil\n"),
    "a link": lambda pointer: pointer.symlink_to("/etc"),
    "a link to nothing": lambda pointer: pointer.symlink_to("/nowhere"),
    "a pipe": lambda pointer: os.mkfifo(pointer),
    "an empty folder": lambda pointer: pointer.mkdir(),
    "a folder nobody may enter": lambda pointer: pointer.mkdir(mode=0),
    "a huge file": lambda pointer: subprocess.run(["truncate", "-s", "64G", pointer], check=True),
}


def pointer_of(workspace: GitWorkspace) -> Path:
    return Path(workspace.record.path, ".git")


def quarantined(workspace: GitWorkspace) -> list[str]:
    notes = Path(workspace.record.private, "quarantine").glob("*.json")
    return [json.loads(note.read_text())["was"] for note in notes]


@pytest.fixture
async def workspace(tmp_path: Path) -> GitWorkspace:
    return await Place(tmp_path, confined=False).make()


@pytest.mark.sample(3)
@pytest.mark.parametrize("planted", PLANTED)
async def test_content_in_its_place_is_kept_and_reported(
    workspace: GitWorkspace, planted: str
) -> None:
    pointer = pointer_of(workspace)
    was = pointer.read_bytes()
    seen = await workspace.begin_turn()
    pointer.unlink()
    PLANTED[planted](pointer)
    ended = await workspace.end_turn(seen)
    assert ended.moved_away == (".git",)
    assert pointer.read_bytes() == was
    assert os.path.lexists(Path(workspace.record.private, "quarantine/0"))
    assert git(workspace.record.path, "status", "--porcelain") == ""


async def test_it_is_right_again_before_a_start_and_still_reported_at_the_end(
    workspace: GitWorkspace,
) -> None:
    pointer = pointer_of(workspace)
    seen = await workspace.begin_turn()
    pointer.write_text("gitdir: /evil\n")
    await workspace.confinement()
    assert "evil" not in pointer.read_text()
    assert (await workspace.end_turn(seen)).moved_away == (".git",)
    assert (await workspace.end_turn(await workspace.begin_turn())).moved_away == ()


@pytest.mark.parametrize("step", ["deliver", "snapshot"])
async def test_it_is_right_again_before_commits_or_files_are_taken(
    workspace: GitWorkspace, step: str
) -> None:
    pointer = pointer_of(workspace)
    pointer.unlink()
    git(pointer.parent, "init", "-q")
    await (workspace.deliver() if step == "deliver" else workspace.snapshot("x"))
    assert pointer.is_file()
    assert quarantined(workspace) == [".git"]


async def test_missing_pointer_comes_back_with_nothing_to_report(workspace: GitWorkspace) -> None:
    pointer = pointer_of(workspace)
    pointer.unlink()
    assert put_pointer_back(workspace.record) == ()
    assert pointer.is_file()


async def test_a_pointer_that_another_name_or_user_could_change_is_made_anew(
    workspace: GitWorkspace,
) -> None:
    pointer = pointer_of(workspace)
    os.link(pointer, pointer.with_name("other"))
    put_pointer_back(workspace.record)
    assert pointer.stat().st_nlink == 1
    for mode in (0o666, 0o500, 0o755):
        pointer.chmod(mode)
        put_pointer_back(workspace.record)
        assert pointer.stat().st_mode & 0o7733 == 0o600
    assert quarantined(workspace) == []


@pytest.mark.parametrize("mode", [0o500, 0o300, 0])
async def test_a_worktree_that_was_closed_is_opened_for_it(
    workspace: GitWorkspace, mode: int
) -> None:
    pointer = pointer_of(workspace)
    was = pointer.read_bytes()
    os.link(pointer, pointer.with_name("other"))
    pointer.parent.chmod(mode)
    assert put_pointer_back(workspace.record) == ()
    pointer.write_text("gitdir: /evil\n")
    pointer.parent.chmod(mode)
    assert put_pointer_back(workspace.record) == (".git",)
    assert pointer.read_bytes() == was


async def test_on_another_file_system_it_is_copied_without_following_links(
    workspace: GitWorkspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Two file systems that a test may write to are not to be had everywhere; the kernel says the same.
    def refuse(source: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(folder_tree, "_rename", refuse)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("k")
    pointer = pointer_of(workspace)
    pointer.unlink()
    git(pointer.parent, "init", "-q")
    (pointer / "away").symlink_to(secret)
    os.mkfifo(pointer / "pipe")
    (pointer / "closed").mkdir(mode=0)
    assert put_pointer_back(workspace.record) == (".git",)
    kept = Path(workspace.record.private, "quarantine/0")
    assert (kept / "HEAD").is_file()
    assert (kept / "away").is_symlink()
    assert (kept / "closed").is_dir()
    assert not (kept / "pipe").exists()
    assert pointer.is_file()


async def test_what_cannot_be_copied_stays_whole_and_is_named(
    workspace: GitWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_tree, "_MAX_DEPTH", 3)

    def refuse(source: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(folder_tree, "_rename", refuse)
    pointer = pointer_of(workspace)
    pointer.unlink()
    (pointer / "1/2/3/4").mkdir(parents=True)
    with pytest.raises(WorkspaceTampered, match="remove it before anybody runs git there"):
        put_pointer_back(workspace.record)
    assert (pointer / "1/2/3/4").is_dir()
    assert not Path(workspace.record.private, "quarantine/0").exists()


async def test_somebody_who_keeps_changing_it_meanwhile_leaves_it_right_or_is_found_out(
    workspace: GitWorkspace,
) -> None:
    pointer = pointer_of(workspace)
    was = pointer.read_bytes()
    over = threading.Event()

    def meddle() -> None:
        evil = pointer.with_name("evil")
        while not over.is_set():
            evil.write_text("gitdir: /evil\n")
            evil.replace(pointer)

    agent = threading.Thread(target=meddle)
    agent.start()
    try:
        for _ in range(50):
            with suppress(WorkspaceTampered):
                put_pointer_back(workspace.record)
    finally:
        over.set()
        agent.join()
    put_pointer_back(workspace.record)
    assert pointer.read_bytes() == was


async def test_without_the_users_git_directory_no_pointer_to_it_is_made(
    workspace: GitWorkspace,
) -> None:
    pointer = pointer_of(workspace)
    pointer.unlink()
    admin = Path(workspace.record.git_dir, "worktrees", workspace.record.admin)
    admin.rename(admin.with_name("moved"))
    with pytest.raises(WorkspaceTampered, match="worktrees"):
        put_pointer_back(workspace.record)
    assert not pointer.exists()
