"""The space that is kept back for the ends of runs."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podium.core.errors import StoreFull
from podium.core.events import NoteTaken
from podium.store.sqlite import LAST_BYTES, RESERVE_BYTES, DiskReserve, explain, free_bytes
from podium.store.sqlite_store import SqlStore
from podium.testing import FixedClock, SteadyIds


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "podium-test", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here: it takes root and CAP_SYS_ADMIN")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


async def _write_until_full(store: SqlStore) -> int:
    note = NoteTaken(text="x" * 50_000)
    for written in range(1_000):
        try:
            await store.write(lambda tx: tx.append("run_1", note))
        except StoreFull:
            return written
    raise AssertionError("it never became full")


async def opened(folder: Path) -> SqlStore:
    return await SqlStore.open(folder, clock=FixedClock(), ids=SteadyIds())


async def test_writes_go_on_in_the_reserve_and_the_last_of_it_is_for_ends(small_disk: Path) -> None:
    store = await opened(small_disk)
    store.require_space()
    (small_disk / "big").write_bytes(bytes(free_bytes(small_disk)))
    written = await _write_until_full(store)
    assert written > 5
    assert (small_disk / "reserve").stat().st_size == LAST_BYTES
    with pytest.raises(StoreFull):
        store.require_space()
    assert store.release_reserve()
    await store.write(lambda tx: tx.append("run_1", NoteTaken(text="the end")))
    assert await store.read(lambda view: view.last_seq("run_1")) == written + 1
    await store.close()


def test_reserve_is_made_again_when_there_is_room(small_disk: Path) -> None:
    reserve = DiskReserve(small_disk)
    reserve.fill()
    assert (small_disk / "reserve").stat().st_size == RESERVE_BYTES
    big = small_disk / "big"
    big.write_bytes(bytes(free_bytes(small_disk)))
    while reserve.release(last=True):
        big.write_bytes(bytes(big.stat().st_size + free_bytes(small_disk)))
    assert not DiskReserve(small_disk)._is_filled()
    big.unlink()
    again = DiskReserve(small_disk)
    again.fill()
    assert again.is_whole()
    assert (small_disk / "reserve").stat().st_size == RESERVE_BYTES


def test_io_error_on_a_full_disk_is_called_a_full_disk(small_disk: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert not isinstance(explain(error, small_disk / "podium.db"), StoreFull)
    (small_disk / "big").write_bytes(bytes(free_bytes(small_disk)))
    assert isinstance(explain(error, small_disk / "podium.db"), StoreFull)


def test_folder_that_cannot_be_written_keeps_nobody_from_working(tmp_path: Path) -> None:
    (tmp_path / "reserve").mkdir()
    reserve = DiskReserve(tmp_path)
    reserve.fill()
    assert reserve.is_whole()


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_reserve_that_is_a_link_is_not_shortened(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes(RESERVE_BYTES))
    link(other, tmp_path / "reserve")
    assert not DiskReserve(tmp_path).release(last=True)
    assert other.stat().st_size == RESERVE_BYTES
