"""A lock keeps others out, is free when its holder is gone, and is that of the file that has the name now."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from pathlib import Path

import pytest

from podium.platform.file_lock import (
    file_lock,
    folder_lock,
    is_locked,
    take_file_lock,
    take_file_lock_async,
    take_folder_lock,
)
from podium.platform.safe_open import NotPlainFile
from podium.testing import retry_until, retry_until_blocking

BRIEF = 0.05


def _handles_of(path: Path) -> int:
    links = (Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    return sum(link.exists() and link.samefile(path) for link in links)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_one_at_a_time_holds_a_file(path: Path) -> None:
    with file_lock(path):
        for seconds in (0.0, BRIEF):
            with pytest.raises(BlockingIOError, match="another process holds its lock"):
                take_file_lock(path, seconds=seconds)
    os.close(take_file_lock(path))


def test_the_file_of_a_lock_is_private_and_can_be_written(path: Path) -> None:
    with file_lock(path) as handle:
        os.write(handle, b"pid")
    assert path.read_bytes() == b"pid"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_who_waits_has_it_when_it_is_free(path: Path) -> None:
    held = take_file_lock(path)
    taken: list[int] = []

    def wait(seconds: float) -> None:
        handle = take_file_lock(path, seconds=seconds)
        taken.append(handle)
        os.close(handle)

    waiting = [threading.Thread(target=wait, args=(limit,)) for limit in (60.0, float("inf"))]
    for thread in waiting:
        thread.start()
    assert not taken
    os.close(held)
    for thread in waiting:
        thread.join()
    assert len(taken) == 2


def test_a_lock_whose_file_was_replaced_meanwhile_is_not_taken_for_the_new_one(path: Path) -> None:
    held = take_file_lock(path)
    taken: list[int] = []
    waiting = threading.Thread(target=lambda: taken.append(take_file_lock(path, seconds=60.0)))
    waiting.start()
    retry_until_blocking(lambda: _handles_of(path) == 2)
    path.rename(path.with_name("old"))
    again = take_file_lock(path)
    os.close(held)  # who waits for the old file gets its lock, and must not be content with it
    waiting.join(BRIEF)
    assert not taken
    os.close(again)
    waiting.join()
    assert os.path.samestat(os.fstat(taken[0]), path.stat())
    os.close(taken[0])


def test_a_lock_that_was_removed_is_made_anew(path: Path) -> None:
    with file_lock(path):
        path.unlink()
        with file_lock(path):
            assert path.exists()


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
def test_nothing_that_was_laid_at_its_name_is_opened(path: Path, tmp_path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    else:
        (tmp_path / "link").write_text("")
        path.symlink_to(kind)
    with pytest.raises(NotPlainFile):
        take_file_lock(path)
    assert not (tmp_path / "dangling").exists()


def test_a_hard_link_is_refused_where_that_is_asked_for(path: Path) -> None:
    path.write_text("")
    path.with_name("other").hardlink_to(path)
    os.close(take_file_lock(path))
    with pytest.raises(NotPlainFile):
        take_file_lock(path, single_name=True)


async def test_the_loop_goes_on_while_it_waits(path: Path) -> None:
    held = take_file_lock(path)
    waiting = asyncio.create_task(take_file_lock_async(path, seconds=60.0))
    await asyncio.sleep(BRIEF)
    assert not waiting.done()
    os.close(held)
    os.close(await waiting)
    with file_lock(path), pytest.raises(BlockingIOError):
        await take_file_lock_async(path, seconds=BRIEF)


async def test_who_is_cancelled_while_it_waits_holds_nothing(path: Path) -> None:
    held = take_file_lock(path)
    waiting = asyncio.create_task(take_file_lock_async(path, seconds=60.0))
    await asyncio.sleep(BRIEF)
    waiting.cancel()
    os.close(held)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.close(take_file_lock(path))


def test_a_file_that_is_not_there_is_not_locked_and_not_made(path: Path) -> None:
    assert not is_locked(path)
    assert not path.exists()


def test_many_share_a_folder_or_one_has_it_alone(tmp_path: Path) -> None:
    shared = [take_folder_lock(tmp_path, shared=True) for _ in range(2)]
    with pytest.raises(BlockingIOError):
        take_folder_lock(tmp_path, shared=False, seconds=BRIEF)
    for handle in shared:
        os.close(handle)
    alone = take_folder_lock(tmp_path, shared=False)
    with pytest.raises(BlockingIOError):
        take_folder_lock(tmp_path, shared=True)
    os.close(alone)


def test_a_link_to_a_folder_and_no_folder_are_not_locked(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("link", "nothing"):
        with pytest.raises(OSError):
            take_folder_lock(tmp_path / name, shared=True)


async def test_a_folder_is_made_and_held_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    inside: list[str] = []

    def enter(name: str) -> None:
        with folder_lock(folder):
            inside.append(name)

    with folder_lock(folder):
        other = threading.Thread(target=enter, args=("other",))
        other.start()
        other.join(BRIEF)
        assert inside == []
    await retry_until(lambda: inside == ["other"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
