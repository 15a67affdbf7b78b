"""Waiting for the answer to a message: as long as the turn's time lasts, with a reminder before it is over."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from podium.agents.tui.adapting import Terms
from podium.agents.tui.bell import Bell
from podium.agents.tui.ears import Answer, Ear, ScreenEar
from podium.agents.tui.sighting import Sight
from podium.agents.tui.trouble import LineLost
from podium.domain.asking import Turn
from podium.domain.errors import TimedOut

_MOST_LINES_LOST = 5
_TAKEN_SECONDS = 0.25
"""How often is looked whether a person has returned the keyboard: nothing tells of that."""

Nudge = Callable[[], Awaitable[None]]


class TurnTime:
    """How long a turn may last. What tells of its progress begins it anew, up to a longest time."""

    def __init__(self, turn: Turn, stood_seconds: float = 0.0) -> None:
        """`stood_seconds`: how long people had had the keyboard when it began."""
        self._seconds = math.inf if turn.limits.seconds is None else turn.limits.seconds
        longest = math.inf if turn.awaits is None else turn.awaits.longest_seconds
        self._first = self._began = _now()
        self._last = self._began + longest
        self._stood_seconds = stood_seconds

    def stand_still(self, stood_seconds: float) -> None:
        """Leave out what time people have had the keyboard by now."""
        more = max(stood_seconds - self._stood_seconds, 0.0)
        self._stood_seconds += more
        self._first, self._last = self._first + more, self._last + more
        # What begins anew while a person has the keyboard has not stood for all of that.
        self._began = min(self._began + more, _now())

    def begin_anew(self) -> None:
        self._began = _now()

    @property
    def passed_seconds(self) -> float:
        return _now() - self._first

    @property
    def ends_at(self) -> float:
        return min(self._began + self._seconds, self._last)

    def part_at(self, part: float) -> float:
        """When so much of the present time will have passed."""
        return self._began + (self.ends_at - self._began) * part


@dataclass
class Listener:
    """Waits by one ear; looks at the screen for what the ear cannot hear: an end, a question, a long rest."""

    who: str
    awaits: str
    """What is awaited, in words."""
    ear: Ear
    screen_ear: ScreenEar
    """The same ear, or what else there is when the ear hears nothing though the program rests."""
    sight: Sight
    bell: Bell
    time: TurnTime
    terms: Terms
    nudge: Nudge
    keyboard: Callable[[], Awaitable[tuple[bool, float]]]
    """Whether a person has it, and how long people have had it by now."""
    watch: Callable[[], None]
    """Has the bell ring for folders that have come into being."""
    _nudged: bool = False

    async def listen(self) -> Answer:
        """The answer. Raises `TimedOut`, `NeedsHuman` for a question, `ProgramEnded` when the program is no more."""
        lost = 0
        while True:
            try:
                if answer := await self._listen_once():
                    return answer
            except LineLost:
                lost += 1
                if lost > _MOST_LINES_LOST:
                    raise

    async def _listen_once(self) -> Answer | None:
        self.watch()
        if answer := await self.ear.hear():
            return answer
        if self.sight.due_at <= _now():
            await self.sight.look()
        if (self.sight.held or self._acts_at() <= _now()) and await self._is_taken():
            await self.bell.wait(min(self.ear.due_at - _now(), _TAKEN_SECONDS))
            return None
        if self.sight.asks_at <= _now():
            await self.sight.refuse_asking(self.who)
        if _now() >= self.time.ends_at:
            return await self._last_chance()
        if self._nudge_at() <= _now() and (answer := await self._remind()):
            return answer
        await self.bell.wait(self._next_at() - _now())
        return None

    async def _is_taken(self) -> bool:
        """Whether a person has the keyboard: then nothing is done but to listen, and the turn's time stands still."""
        taken, stood_seconds = await self.keyboard()
        self.time.stand_still(stood_seconds)
        return taken

    async def _remind(self) -> Answer | None:
        """Only one that rests: some throw an answer away that they are at when something is typed."""
        await self.sight.refuse_asking(self.who)
        if not self.sight.rests(self.terms.quiet_seconds):
            return None
        if answer := await self.screen_ear.best():
            return answer
        self._nudged = True
        await self.nudge()
        return None

    async def _last_chance(self) -> Answer:
        if answer := await self.screen_ear.best():
            return answer
        reminded = "; it was reminded" if self._nudged else ""
        raise TimedOut(
            f"{self.who} brought no {self.awaits} within {self.time.passed_seconds:.0f} s and is "
            f"{self.sight.status}{reminded}; look at its pane, then retry the turn or give it more time"
        )

    def _next_at(self) -> float:
        """When something is to be done though the bell does not ring."""
        return min(self.ear.due_at, self.sight.due_at, self._acts_at())

    def _acts_at(self) -> float:
        """When more is to be done than to listen and to look."""
        return min(self.sight.asks_at, self.time.ends_at, self._nudge_at())

    def _nudge_at(self) -> float:
        if self._nudged:
            return math.inf
        rests_at = self.sight.rests_at(self.terms.quiet_seconds)
        return max(self.time.part_at(self.terms.nudge_at), rests_at)


def _now() -> float:
    return asyncio.get_running_loop().time()
