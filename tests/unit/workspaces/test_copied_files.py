"""Files that git does not carry come along by an explicit list, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.core.errors import BadInput
from podium.git.set_up import (
    MAX_FILE_BYTES,
    MAX_IN_ALL_BYTES,
    check_files,
    copy_files,
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "config").mkdir(parents=True)
    (folder / ".env").write_text("KEY=1\n")
    (folder / ".env").chmod(0o640)
    (folder / "config" / "local.toml").write_text("a = 1\n")
    return folder


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    folder = tmp_path / "worktree"
    folder.mkdir()
    return folder


def test_listed_files_arrive_with_their_content_place_and_mode(
    checkout: Path, worktree: Path
) -> None:
    copied = copy_files(checkout, worktree, (".env", "./config//local.toml"))
    assert copied == (".env", "config/local.toml")
    assert (worktree / ".env").read_text() == "KEY=1\n"
    assert (worktree / ".env").stat().st_mode & 0o777 == 0o640
    assert (worktree / "config" / "local.toml").read_text() == "a = 1\n"


def test_set_user_id_does_not_come_along(checkout: Path, worktree: Path) -> None:
    (checkout / ".env").chmod(0o4755)
    copy_files(checkout, worktree, (".env",))
    assert (worktree / ".env").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".envv", "no such file"),
        ("config", "is a folder"),
        ("../checkout/.env", "relative to the checkout"),
        ("/etc/passwd", "relative to the checkout"),
        ("", "relative to the checkout"),
        (".git/config", "belong to git"),
        ("config/.GIT/x", "belong to git"),
        ("a\0b", "relative to the checkout"),
        (".env/x", "in place of a folder"),
        ("x" * 300, "too long"),
    ],
)
def test_what_cannot_be_copied_is_an_error_that_says_why(
    checkout: Path, worktree: Path, name: str, words: str
) -> None:
    with pytest.raises(BadInput) as checked:
        check_files(checkout, (name,))
    with pytest.raises(BadInput) as copied:
        copy_files(checkout, worktree, (name,))
    assert words in str(checked.value)
    assert words in str(copied.value)
    assert list(worktree.iterdir()) == []


def test_a_link_is_refused_wherever_it_leads(
    checkout: Path, worktree: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s")
    (checkout / "link").symlink_to(tmp_path / "outside" / "secret")
    (checkout / "folder").symlink_to(tmp_path / "outside")
    for name in ("link", "folder/secret"):
        with pytest.raises(BadInput, match="symbolic link"):
            copy_files(checkout, worktree, (name,))
    assert list(worktree.iterdir()) == []


def test_a_named_pipe_is_refused_and_waits_for_nobody(checkout: Path) -> None:
    os.mkfifo(checkout / "pipe")
    with pytest.raises(BadInput, match="not a plain file"):
        check_files(checkout, ("pipe",))


def test_a_link_that_the_base_commit_holds_leads_nothing_out(
    checkout: Path, worktree: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (worktree / "config").symlink_to(tmp_path / "outside")
    with pytest.raises(BadInput, match="into the workspace"):
        copy_files(checkout, worktree, ("config/local.toml",))
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_in_place_of_the_file_itself_is_not_written_through(
    checkout: Path, worktree: Path, tmp_path: Path
) -> None:
    (tmp_path / "target").write_text("mine")
    (worktree / ".env").symlink_to(tmp_path / "target")
    with pytest.raises(BadInput):
        copy_files(checkout, worktree, (".env",))
    assert (tmp_path / "target").read_text() == "mine"


def test_a_file_that_the_base_commit_has_is_left_alone_or_refused(
    checkout: Path, worktree: Path
) -> None:
    (worktree / ".env").write_text("KEY=1\n")
    assert copy_files(checkout, worktree, (".env",)) == ()
    (worktree / ".env").write_text("KEY=2\n")
    with pytest.raises(BadInput, match="a different version"):
        copy_files(checkout, worktree, (".env",))
    assert (worktree / ".env").read_text() == "KEY=2\n"


def test_large_files_are_refused_one_by_one_and_in_all(checkout: Path) -> None:
    (checkout / "large").touch()
    os.truncate(checkout / "large", MAX_FILE_BYTES + 1)
    with pytest.raises(BadInput, match="after_create"):
        check_files(checkout, ("large",))
    names = tuple(f"part{number}" for number in range(MAX_IN_ALL_BYTES // MAX_FILE_BYTES + 1))
    for name in names:
        (checkout / name).touch()
        os.truncate(checkout / name, MAX_FILE_BYTES)
    with pytest.raises(BadInput, match="in all"):
        check_files(checkout, names)


def test_file_replaces_the_empty_folder_that_was_its_placeholder(
    checkout: Path, worktree: Path
) -> None:
    (worktree / ".env").mkdir()
    copy_files(checkout, worktree, (".env",))
    assert (worktree / ".env").read_text() == "KEY=1\n"
    (worktree / "config" / "local.toml" / "full").mkdir(parents=True)
    with pytest.raises(BadInput):
        copy_files(checkout, worktree, ("config/local.toml",))
