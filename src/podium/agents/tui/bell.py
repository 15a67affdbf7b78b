"""One bell for all that may be news of a program: what its pane shows and what it writes down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from podium.agents.tui.activity import SILENCE_SECONDS, Activity
from podium.agents.tui.watching import Watch, watch_folder
from podium.domain.errors import NotPossibleNow

_UNWATCHED_SECONDS = 0.25
"""How often folders are read of which the kernel will not tell."""


class Bell:
    """Rings for a pane and for folders, until it is left. No polling where the kernel tells."""

    def __init__(self, activity: Activity, pane: str, is_news: Callable[[], bool]) -> None:
        """`is_news` is asked at each sign of life of the pane, many times a second: whether it rings for this one."""
        self._activity = activity
        self._pane = pane
        self._is_news = is_news
        self._rung = asyncio.Event()
        self._watches: dict[Path, Watch] = {}
        self._all_watched = True

    def __enter__(self) -> Bell:
        self._hang_up = self._activity.call(self._pane, self._stirred)
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()
        for watch in self._watches.values():
            watch.stop()

    def watch(self, folders: Sequence[Path]) -> None:
        """Ring for these from now on. For one that is not there yet, whatever appears above it rings."""
        self._all_watched = True
        for folder in {_nearest(each) for each in folders} - self._watches.keys():
            try:
                self._watches[folder] = watch_folder(folder, lambda _: self._rung.set())
            except NotPossibleNow:
                self._all_watched = False  # too much is watched on this machine

    async def wait(self, seconds: float) -> None:
        """Until it rang since the last time, or so long."""
        give_up_at = asyncio.get_running_loop().time() + seconds
        longest = SILENCE_SECONDS if self._all_watched else _UNWATCHED_SECONDS
        left = seconds
        while not await self._rings_within(min(left, longest)) and self._all_watched:
            left = give_up_at - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await self._activity.collect(self._pane)
        self._rung.clear()

    async def _rings_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                return await self._rung.wait()
        except TimeoutError:
            return False

    def _stirred(self) -> None:
        if self._is_news():
            self._rung.set()


def _nearest(folder: Path) -> Path:
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder
