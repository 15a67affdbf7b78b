from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podium.platform.safe_files import (
    draft_name,
    find_below,
    make_folder_below,
    move_below,
    read_below,
    remove_below,
    rename_below,
    status_below,
    write_below,
)
from podium.platform.safe_open import UnusableFile


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def test_a_file_is_written_with_the_folders_above_it_and_read_back(root: Path) -> None:
    write_below(root, "a/b/c.txt", b"hello", "key")

    assert read_below(root, "a/b/c.txt", 100) == b"hello"
    assert os.listdir(root / "a/b") == ["c.txt"]


def test_the_permission_bits_of_a_replaced_file_are_kept_and_others_are_not(root: Path) -> None:
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o4750)

    write_below(root, "run.sh", b"new", "key")

    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert script.read_text() == "new"


def test_another_name_for_the_same_file_keeps_the_old_content(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    (root / "hard").hardlink_to(outside)

    write_below(root, "hard", b"yours", "key")

    assert outside.read_text() == "mine"


def test_what_a_crashed_write_left_behind_is_gone_after_the_second_try(root: Path) -> None:
    (root / draft_name("key")).write_text("torn")

    write_below(root, "a", b"whole", "key")

    assert os.listdir(root) == ["a"]
    assert (root / "a").read_text() == "whole"


def test_a_write_that_fails_leaves_no_draft(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()

    for name in ("pipe", "folder"):
        with pytest.raises(UnusableFile):
            write_below(root, name, b"x", "key")

    assert sorted(os.listdir(root)) == ["folder", "pipe"]


@pytest.mark.parametrize("relative", ["../a", "/etc/passwd", "a/../../b", "."])
def test_a_path_that_leads_out_is_refused(root: Path, relative: str) -> None:
    with pytest.raises(UnusableFile):
        write_below(root, relative, b"x", "key")
    with pytest.raises(UnusableFile):
        read_below(root, relative, 100)


def test_a_link_on_the_way_is_refused_for_reading_writing_and_removing(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("x")
    (root / "way").symlink_to(outside)

    for act in (
        lambda: write_below(root, "way/a", b"x", "key"),
        lambda: read_below(root, "way/a", 100),
        lambda: remove_below(root, "way/a"),
    ):
        with pytest.raises(UnusableFile, match="symbolic link"):
            act()
    assert (outside / "a").read_text() == "x"


def test_a_link_at_the_end_is_neither_read_nor_written_through(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (root / "end").symlink_to(outside)

    with pytest.raises(UnusableFile, match="symbolic link"):
        read_below(root, "end", 100)
    with pytest.raises(UnusableFile, match="not a plain file"):
        write_below(root, "end", b"yours", "key")
    assert outside.read_text() == "mine"


def test_a_named_pipe_is_refused_without_waiting_for_it(root: Path) -> None:
    os.mkfifo(root / "pipe")

    with pytest.raises(UnusableFile, match="not a plain file"):
        read_below(root, "pipe", 100)
    with pytest.raises(UnusableFile, match="not a plain file"):
        write_below(root, "pipe", b"x", "key")


def test_a_file_beyond_the_limit_is_not_read(root: Path) -> None:
    (root / "big").write_bytes(b"x" * 101)

    with pytest.raises(UnusableFile, match="larger than 100 bytes"):
        read_below(root, "big", 100)


def test_a_file_that_is_not_there_is_none_or_an_error_with_its_name(root: Path) -> None:
    assert find_below(root, "no/such", 100) is None
    with pytest.raises(FileNotFoundError, match="no/such"):
        remove_below(root, "no/such")


_EXCHANGE = 2
_LIBC = ctypes.CDLL(None)

needs_exchange = pytest.mark.skipif(
    not hasattr(_LIBC, "renameat2"), reason="this system cannot exchange two names in one step"
)


@contextlib.contextmanager
def _swapping(folder: Path, outside: Path) -> Iterator[None]:
    """Another thread turns a folder into a symlink and back, as fast as it can."""
    link = folder.with_name("link")
    link.symlink_to(outside)
    names = -100, os.fsencode(folder), -100, os.fsencode(link)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            _LIBC.renameat2(*names, _EXCHANGE)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@needs_exchange
def test_no_write_gets_out_while_a_folder_is_swapped_for_a_link(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "d").mkdir()
    written = refused = 0

    with _swapping(root / "d", outside):
        for number in range(3000):
            try:
                write_below(root, f"d/f{number % 20}", b"x", "key")
                written += 1
            except (UnusableFile, FileNotFoundError):
                refused += 1

    assert os.listdir(outside) == []
    assert written
    assert refused


@needs_exchange
def test_no_read_gets_out_while_a_folder_is_swapped_for_a_link(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("outside")
    (root / "d").mkdir()
    (root / "d/f").write_text("inside")
    seen = set()

    with _swapping(root / "d", outside):
        for _ in range(5000):
            with contextlib.suppress(UnusableFile, FileNotFoundError):
                seen.add(read_below(root, "d/f", 100))

    assert seen == {b"inside"}


def test_a_second_name_is_read_only_by_those_who_do_not_mind(root: Path) -> None:
    (root / "a").write_text("mine")
    (root / "b").hardlink_to(root / "a")

    assert read_below(root, "b", 100) == b"mine"
    with pytest.raises(UnusableFile, match="hard link"):
        read_below(root, "b", 100, single_name=True)


def test_a_move_replaces_nothing_and_loses_nothing_when_it_leads_to_the_same_place(
    root: Path,
) -> None:
    (root / "a").write_text("A")
    (root / "b").write_text("B")

    for to in ("a", "b", "./a"):
        with pytest.raises(FileExistsError):
            move_below(root, "a", to)

    assert ((root / "a").read_text(), (root / "b").read_text()) == ("A", "B")


def test_no_link_leads_a_move_a_look_or_a_new_folder_out(root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to(tmp_path)
    (root / "a").write_text("A")
    (tmp_path / "b").write_text("B")

    acts: list[Callable[[], object]] = [
        lambda: move_below(root, "a", "out/a"),
        lambda: rename_below(root, "a", "out/a"),
        lambda: rename_below(root, "out/b", "b"),
        lambda: make_folder_below(root, "out/c"),
        lambda: make_folder_below(root, "out"),
        lambda: status_below(root, "out/b"),
    ]
    for act in acts:
        with pytest.raises(UnusableFile, match="symbolic link"):
            act()

    assert sorted(os.listdir(tmp_path)) == ["b", "root"]
    assert stat.S_ISLNK((status_below(root, "out") or os.stat(root)).st_mode)
    assert status_below(root, "nothing/here") is None
