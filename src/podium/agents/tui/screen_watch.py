"""Watches of a program's screen and of its composer: after output, and never more often than is worthwhile."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from podium.agents.tui.activity import Activity
from podium.agents.tui.adapter import Adapter, Status, TuiTimings
from podium.agents.tui.control import Control
from podium.agents.tui.screen import Composer, Eyes, TerminalScreen, look, refuse_dead
from podium.core.errors import NeedsHuman

LOOK_SECONDS = 0.25
"""Between two looks at a program that writes all the time."""
_MAX_LOOK_SECONDS = 8.0
"""The same when it has been at work at every look: each takes twice as long to come as the last."""
_ASKS_SECONDS = 0.3
"""A question that is gone sooner was for nobody."""


class Sight:
    """Status of one program, as far as its screen tells, and for how long it has rested."""

    def __init__(
        self, control: Control, activity: Activity, pane: str, adapter: Adapter, timings: TuiTimings
    ) -> None:
        self._control = control
        self._activity = activity
        self._pane = pane
        self._adapter = adapter
        self._timings = timings
        self._signs = -1
        self._ends = 0
        self._looked_at = -math.inf
        self._calm_since: float | None = None
        self._asks_since: float | None = None
        self._pause_seconds = LOOK_SECONDS
        self.status: Status = "starting"
        self.held = False
        """True if a person had the keyboard at the last look."""

    async def look(self) -> TerminalScreen:
        """Read the screen now. Raises `ProgramEnded` with its last output when the program is no more."""
        signs, self._ends = (
            self._activity.signs(self._pane),
            self._activity.ends(self._pane),
        )
        screen = await look(self._control, self._pane)
        await refuse_dead(self._control, self._pane, screen)
        self._note(self._adapter.status(screen), signs)
        self.held = screen.held
        return screen

    async def refuse_asking(self, who: str) -> None:
        """Look. Raises as that does, and `NeedsHuman` for a question that has stood there for a while."""
        screen = await self.look()
        if self.asks_at <= _now():
            question = self._adapter.question(screen)
            raise NeedsHuman(
                f"{who} asks a question in its terminal: {question}; answer it there, then resume the run"
            )

    @property
    def asks_at(self) -> float:
        """Time from which a question that was seen has stood there for long enough. Never, while there is none."""
        return math.inf if self._asks_since is None else self._asks_since + _ASKS_SECONDS

    @property
    def due_at(self) -> float:
        """Time from which a look is worthwhile, by the event loop. Never, while nothing is to be seen."""
        if self.has_end:
            return self._looked_at
        due = self._looked_at + self._pause_seconds if self.has_news else math.inf
        return min(due, self.asks_at)

    @property
    def has_news(self) -> bool:
        """Something was written since the last look."""
        return self._activity.signs(self._pane) > self._signs

    @property
    def has_end(self) -> bool:
        """A program ended in the pane since the last look."""
        return self._activity.ends(self._pane) > self._ends

    @property
    def has_first_news(self) -> bool:
        """Something was written for the first time since the last look: now it is known when the next is due."""
        return self._activity.signs(self._pane) == self._signs + 1

    def rests_at(self, seconds: float) -> float:
        """Return when it will have rested for so long, unless it stirs. Never, while it works."""
        return math.inf if self._calm_since is None else self._calm_since + seconds

    def rests(self, seconds: float) -> bool:
        """Return whether it has been ready for so long; or, where that is not to be seen, has written nothing."""
        if self.status == "unknown" and self.has_news:
            return False
        return _now() >= self.rests_at(seconds)

    def stirred(self) -> None:
        """It was given something: that it rested or asked before counts for nothing."""
        self._calm_since = self._asks_since = None
        self._pause_seconds = LOOK_SECONDS

    async def until_ready(self, who: str, seconds: float) -> bool:
        """Wait until it takes a message. False: it did not in time."""
        give_up_at = _now() + seconds
        self._asks_since = None  # a person may have answered since
        self._pause_seconds = LOOK_SECONDS
        while True:
            await self.refuse_asking(who)
            if self.status == "ready" or self.rests(self._timings.quiet_seconds):
                return True
            if _now() >= give_up_at:
                return (
                    self.status == "unknown"
                )  # it never rests; whether it takes words, they will show
            await self.pause(min(give_up_at, self.rests_at(self._timings.quiet_seconds)))

    async def until_rests(self, who: str, seconds: float) -> bool:
        """Wait until it has been ready for a while. False: it did not in time."""
        give_up_at = _now() + seconds
        self._pause_seconds = LOOK_SECONDS
        while True:
            await self.refuse_asking(who)
            if self.rests(self._timings.quiet_seconds):
                return True
            if _now() >= give_up_at:
                return False
            await self.pause(min(give_up_at, self.rests_at(self._timings.quiet_seconds)))

    async def pause(self, until: float) -> None:
        """Wait until it writes something and a look is worthwhile, or until that time."""
        if not self.has_news:
            wake_at = min(until, self.due_at)
            await self._activity.beyond(self._pane, self._signs, max(wake_at - _now(), 0.0))
        await asyncio.sleep(max(min(until, self.due_at) - _now(), 0.0))

    def _note(self, status: Status, signs: int) -> None:
        now = _now()
        goes_on = status == self.status and (status != "unknown" or signs == self._signs)
        if status not in ("ready", "unknown"):
            self._calm_since = None
        elif not goes_on or self._calm_since is None:
            self._calm_since = now
        if status != "asking":
            self._asks_since = None
        elif self._asks_since is None:
            self._asks_since = now
        still_busy = status == self.status == "busy"
        longer = min(self._pause_seconds * 2, _MAX_LOOK_SECONDS)
        self._pause_seconds = longer if still_busy else LOOK_SECONDS
        self.status, self._signs, self._looked_at = status, signs, now


def _now() -> float:
    return asyncio.get_running_loop().time()


_EMPTY_SECONDS = 1.0
"""An input that has been empty for so long is: one that was just sent to would show that it works."""

_QUICK_LOOKS = 5
_REST_SECONDS = 0.005
"""Between two looks when there were some: a program that floods its screen would keep us looking all the time."""

STILL_THERE: tuple[Composer, ...] = ("ours", "unsent")
"""The words have not left."""


class ComposerWatch:
    """Watches the composer of one pane for a text. Changes nothing.

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

    async def shows(self, text: str) -> Composer:
        """Return its present state."""
        screen = await look(self._control, self._pane)
        await refuse_dead(self._control, self._pane, screen)
        return self.on(screen, text)

    def on(self, screen: TerminalScreen, text: str) -> Composer:
        """Return its state on a screen of a living program that was just seen."""
        return self._eyes.composer(screen, text)

    async def stays_empty(self, text: str) -> bool:
        """Return whether it is empty, and stays so for a while."""
        return await self.until(lambda it: it != "empty", text, _EMPTY_SECONDS) == "empty"

    async def lets_go(self, text: str, seconds: float, before: Composer = "ours") -> bool:
        """Wait until the words have left, or something else is seen than what was `before`. True: they have left."""
        if await self.until(lambda it: it != before, text, seconds) in STILL_THERE:
            return False
        await asyncio.sleep(self._settle_seconds)
        return await self.shows(text) not in STILL_THERE

    async def until(
        self, enough: Callable[[Composer], bool], text: str, seconds: float
    ) -> Composer:
        """Look until it fits or the time is over. Gives what was seen last."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        looks = 0
        while True:
            signs = self._activity.signs(self._pane)
            state = await self.shows(text)
            looks += 1
            left = deadline - loop.time()
            if enough(state) or left <= 0:
                return state
            if looks >= _QUICK_LOOKS:
                await asyncio.sleep(min(_REST_SECONDS, left))
            await self._activity.beyond(self._pane, signs, deadline - loop.time())
