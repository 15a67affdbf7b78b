"""Looking at one program's composer: whenever its pane wrote something, and never more often than is worthwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from podium.agents.tui.activity import Activity
from podium.agents.tui.capturing import Screen, look, refuse_dead
from podium.agents.tui.control import Control
from podium.agents.tui.seeing import Composer, Eyes

_EMPTY_SECONDS = 1.0
"""An input that has been empty for so long is: one that was just sent to would show that it works."""

_QUICK_LOOKS = 5
_REST_SECONDS = 0.005
"""Between two looks when there were some: a program that floods its screen would keep us looking all the time."""

STILL_THERE: tuple[Composer, ...] = ("ours", "unsent")
"""The words have not left."""


class ComposerWatch:
    """What stands in the composer of one pane, held against words. Does nothing to it.

    Whatever looks raises `ProgramEnded` with its last words when the program is no more, and `PaneGone`.
    """

    def __init__(
        self, control: Control, activity: Activity, pane: str, eyes: Eyes, settle_seconds: float
    ) -> None:
        self._control = control
        self._activity = activity
        self._pane = pane
        self._eyes = eyes
        self._settle_seconds = settle_seconds

    async def shows(self, words: str) -> Composer:
        """What is there now."""
        screen = await look(self._control, self._pane)
        await refuse_dead(self._control, self._pane, screen)
        return self.on(screen, words)

    def on(self, screen: Screen, words: str) -> Composer:
        """What is there on a screen of a living program that was just seen."""
        return self._eyes.composer(screen, words)

    async def stays_empty(self, words: str) -> bool:
        """Whether it is empty, and stays so for a while."""
        return await self.until(lambda it: it != "empty", words, _EMPTY_SECONDS) == "empty"

    async def lets_go(self, words: str, seconds: float, before: Composer = "ours") -> bool:
        """Wait until the words have left, or something else is seen than what was `before`. True: they have left."""
        if await self.until(lambda it: it != before, words, seconds) in STILL_THERE:
            return False
        await asyncio.sleep(self._settle_seconds)
        return await self.shows(words) not in STILL_THERE

    async def until(
        self, enough: Callable[[Composer], bool], words: str, seconds: float
    ) -> Composer:
        """Look until it fits or the time is over. Gives what was seen last."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        looks = 0
        while True:
            beats = self._activity.beats(self._pane)
            found = await self.shows(words)
            looks += 1
            left = deadline - loop.time()
            if enough(found) or left <= 0:
                return found
            if looks >= _QUICK_LOOKS:
                await asyncio.sleep(min(_REST_SECONDS, left))
            await self._activity.beyond(self._pane, beats, deadline - loop.time())
