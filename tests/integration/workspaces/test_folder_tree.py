"""Removing and measuring what an agent left, whatever that is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow
from podium.platform.folder_tree import clear_away, measure

ORDINARY = 12_345


def nest(folder: Path, depth: int) -> None:
    """Folders in folders, deeper than any path reaches."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=handle)
        deeper = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = deeper
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)


def test_a_folder_goes_with_everything_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    (folder / "cleared-0").mkdir()
    (folder / "cleared-0" / "file").write_text("named as the remover names things")
    clear_away(folder)
    assert not folder.exists()


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("mine")
    folder = tmp_path / "gone"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "link").symlink_to(tmp_path / "kept")
    (folder / "loop").symlink_to(folder)
    clear_away(folder)
    assert (tmp_path / "kept" / "file").read_text() == "mine"
    assert not folder.exists()


def test_a_link_in_place_of_the_folder_itself_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    with pytest.raises(NotPossibleNow, match="is not a folder"):
        clear_away(tmp_path / "link")
    assert (tmp_path / "kept" / "file").read_text() == "mine"


@pytest.mark.soak
def test_folders_deeper_than_any_path_or_recursion_go_too(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    nest(folder, 3_000)
    assert measure(folder).bytes > 0
    clear_away(folder)
    assert not folder.exists()


def test_folders_that_nobody_may_enter_go_too() -> None:
    # Not in `tmp_path`, whose parents an ordinary user may not enter.
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "gone"
        (folder / "shut" / "in").mkdir(parents=True)
        (folder / "shut" / "in" / "file").write_text("x")
        (folder / "shut" / "in").chmod(0)
        (folder / "shut").chmod(0)
        folder.chmod(0)
        assert as_ordinary_user(Path(place), lambda: clear_away(folder)) == 0
        assert not folder.exists()


def as_ordinary_user(place: Path, work: Callable[[], None]) -> int:
    """Root may enter everything, so it hands the place to somebody else and becomes that one."""
    if os.geteuid() != 0:
        work()
        return 0
    for path in (place, *place.rglob("*")):
        os.chown(path, ORDINARY, ORDINARY)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(ORDINARY)
        os.setuid(ORDINARY)
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_what_is_not_there_is_cleared_away_already(tmp_path: Path) -> None:
    clear_away(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_sizes_count_a_file_once_and_nothing_behind_links(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 1_000_000)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "one").write_bytes(b"x" * 100_000)
    alone = measure(folder).bytes
    os.link(folder / "one", folder / "same")
    (folder / "link").symlink_to(tmp_path / "large")
    assert alone <= measure(folder).bytes < alone + 50_000
    assert measure(tmp_path / "nothing").bytes == 0


def test_a_change_is_never_in_the_future_nor_before_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    now = datetime.now(UTC)
    beginning = now - timedelta(days=1)
    os.utime(tmp_path / "file", (9e9, 9e9))
    assert measure(tmp_path).changed_at(now, beginning) == now
    os.utime(tmp_path / "file", (0, 0))
    assert measure(tmp_path).changed_at(now, beginning) == beginning
