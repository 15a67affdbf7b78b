"""One bell rings for what a pane shows and for what a program writes down; and one at a time starts programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from podium.agents.tui import activity as bell_room
from podium.agents.tui.activity import Activity, ChangeSignal
from podium.agents.tui.pair import alone
from podium.core.errors import LockHeld, NotPossibleNow

LONG = 60.0


class Pulse:
    """An activity that the test gives."""

    def __init__(self) -> None:
        self.callers: list[Callable[[], None]] = []
        self.collected = 0

    def call(self, pane: str, stirred: Callable[[], None]) -> Callable[[], None]:
        self.callers.append(stirred)
        return lambda: self.callers.remove(stirred)

    async def collect(self, pane: str) -> None:
        self.collected += 1

    def beat(self) -> None:
        for stirred in self.callers:
            stirred()


def a_bell(pulse: Pulse, *, news: bool = False) -> ChangeSignal:
    return ChangeSignal(cast("Activity", pulse), "%0", lambda: news)


@pytest.mark.parametrize("news", [True, False])
async def test_it_rings_for_those_signs_of_life_that_are_news(news: bool) -> None:
    pulse = Pulse()
    with a_bell(pulse, news=news) as bell:
        pulse.beat()
        assert bell._has_changed.is_set() is news
        async with asyncio.timeout(LONG):
            await bell.wait(LONG * 2 if news else 0.0)
    assert pulse.callers == []


async def test_it_rings_for_a_folder_that_comes_later_and_for_files_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "2026" / "11"
    with a_bell(Pulse()) as bell:
        bell.watch([folder])
        for make in (folder.parent.mkdir, folder.mkdir, (folder / "said.jsonl").touch):
            make()
            assert await bell._rings_within(LONG)
            await bell.wait(0.0)
            bell.watch([folder])


async def test_folders_the_kernel_does_not_watch_are_read_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NotPossibleNow("too many")

    # The kernel's limit is the whole machine's, and cannot be reached for one test.
    monkeypatch.setattr(bell_room, "watch_folder", refuse)
    with a_bell(Pulse()) as bell:
        bell.watch([tmp_path])
        async with asyncio.timeout(LONG):
            await bell.wait(LONG * 2)
        assert not await bell._rings_within(0.0)


async def test_in_a_long_silence_tmux_is_asked_whether_the_program_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bell_room, "SILENCE_SECONDS", 0.01)  # five seconds otherwise
    pulse = Pulse()
    with a_bell(pulse) as bell:
        await bell.wait(0.2)
    assert pulse.collected > 0


async def test_what_is_held_is_held_alone(tmp_path: Path) -> None:
    order: list[str] = []

    async def hold(name: str) -> None:
        async with alone(tmp_path / "lock"):
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.gather(*(hold(str(number)) for number in range(5)))
    assert [line.split()[1] for line in order] == ["begins", "ends"] * 5


async def test_lock_held_by_another_for_too_long_is_reported(tmp_path: Path) -> None:
    async with alone(tmp_path / "lock"):
        with pytest.raises(LockHeld, match="wait for it, or stop it"):
            async with alone(tmp_path / "lock", patience_seconds=0.01):
                pass
