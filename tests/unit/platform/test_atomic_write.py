"""A file is replaced or made in one step, and is durable on return."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.platform.atomic_write import (
    atomic_create,
    atomic_write,
    atomic_write_at,
    sync,
)
from podium.platform.safe_open import open_folder


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.lstat().st_mode)


def test_a_file_is_made_and_replaced_and_no_draft_is_left(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        atomic_write(tmp_path / "a", content)
        assert (tmp_path / "a").read_bytes() == content
    assert os.listdir(tmp_path) == ["a"]


def test_file_is_private_unless_its_mode_is_given(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a", b"")
    assert mode_of(tmp_path / "a") == 0o600


@pytest.mark.usefixtures("umask")
def test_a_mode_is_less_the_umask_and_bits_are_exact(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a", b"", mode=0o666)
    with open_folder(tmp_path) as folder:
        atomic_write_at(folder, "b", b"", bits=0o755)
        atomic_write_at(folder, "c", b"", mode=0o666, bits=0o400)
    assert [mode_of(tmp_path / name) for name in "abc"] == [0o640, 0o755, 0o400]


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a").symlink_to("mine")
    atomic_write(tmp_path / "a", b"new")
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "a").is_symlink()


def test_another_name_of_the_file_keeps_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    atomic_write(tmp_path / "a", b"new")
    assert (tmp_path / "b").read_text() == "old"


def test_a_failed_write_leaves_the_old_content_and_no_draft(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError):
        atomic_write(tmp_path / "a", b"new")
    assert os.listdir(tmp_path) == ["a"]


def test_a_draft_that_a_killed_try_left_is_cleared_away_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".draft").write_text("torn")
    atomic_write(tmp_path / "a", b"whole", draft=".draft")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_link_that_was_laid_at_the_drafts_name_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".draft").symlink_to("mine")
    atomic_write(tmp_path / "a", b"whole", draft=".draft")
    assert (tmp_path / "mine").read_text() == "mine"


def test_simultaneous_writers_do_not_disturb_one_another(tmp_path: Path) -> None:
    def write(character: str) -> None:
        for _ in range(50):
            atomic_write(tmp_path / "a", character.encode() * 10_000, durable=False)

    writers = [threading.Thread(target=write, args=(character,)) for character in "xyz"]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        if (tmp_path / "a").exists():
            seen.add(frozenset((tmp_path / "a").read_bytes()))
    for writer in writers:
        writer.join()
    assert seen <= {frozenset(b"x"), frozenset(b"y"), frozenset(b"z")}
    assert os.listdir(tmp_path) == ["a"]


def test_only_one_of_many_makes_a_file_and_the_others_are_notified(tmp_path: Path) -> None:
    made: list[bytes] = []

    def make(content: bytes) -> None:
        try:
            atomic_create(tmp_path / "a", content)
        except FileExistsError:
            return
        made.append(content)

    makers = [threading.Thread(target=make, args=(str(n).encode(),)) for n in range(20)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert made == [(tmp_path / "a").read_bytes()]
    assert os.listdir(tmp_path) == ["a"]
    assert mode_of(tmp_path / "a") == 0o600


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_there_is_never_made_anew(tmp_path: Path, kind: str) -> None:
    if kind == "file":
        (tmp_path / "a").write_text("mine")
    else:
        (tmp_path / "a").symlink_to("nothing")
    with pytest.raises(FileExistsError):
        atomic_create(tmp_path / "a", b"yours")
    assert os.listdir(tmp_path) == ["a"]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kinds of what was forced to the disk. Patched: only a power cut shows it otherwise."""
    kinds: list[str] = []
    sync = os.fsync

    def note(handle: int) -> None:
        kinds.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    monkeypatch.setattr("os.fsync", note)
    return kinds


def test_content_and_name_are_on_the_disk_when_it_returns(
    tmp_path: Path, synced: list[str]
) -> None:
    atomic_write(tmp_path / "a", b"")
    atomic_create(tmp_path / "b", b"")
    sync(tmp_path)
    assert synced == ["file", "folder"] * 2 + ["folder"]


def test_what_need_not_be_durable_does_not_wait_for_the_disk(
    tmp_path: Path, synced: list[str]
) -> None:
    atomic_write(tmp_path / "a", b"", durable=False)
    assert synced == []
