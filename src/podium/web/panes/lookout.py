"""All who look at panes in this console, and the keyboards that they have."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

from starlette.requests import HTTPConnection

from podium.domain.errors import PodiumError
from podium.domain.keyboards import KeyboardHold
from podium.domain.terminals import KeyboardWish, Terminal
from podium.ports import Mirror
from podium.usecases import return_keyboard, take_keyboard
from podium.web.desk import Desk, desk_of
from podium.wiring.duet_api import mirror_of_project

LEASE_SECONDS = 60.0
"""A console that was killed has its people's keyboards for no longer."""
RENEW_SECONDS = 15.0
GRACE_SECONDS = 15.0
"""How long somebody whose connection broke may take to come back."""


class Lookout:
    """One for each console, so that however many look, each pane is read once."""

    def __init__(self, desk: Desk) -> None:
        self.mirror: Mirror = mirror_of_project(desk.podium, desk.podium.environ)
        self._desk = desk
        self._here: Counter[tuple[Terminal, str]] = Counter()
        self._leaving: set[asyncio.Task[None]] = set()

    async def take(self, terminal: Terminal, who: str) -> KeyboardHold:
        """Have the keyboard for as long as somebody of this name looks on. Raises `NotPossibleNow` when another has it."""
        wish = KeyboardWish(terminal=terminal, who=who, seconds=LEASE_SECONDS)
        return await take_keyboard(await self._desk.store(), self.mirror, wish)

    async def give(self, terminal: Terminal, who: str, why: str = "") -> None:
        """Return it. Raises `NotPossibleNow` when another has it, `BadInput` when nobody has."""
        await return_keyboard(await self._desk.store(), self.mirror, terminal, who, why)

    async def renew(self, terminal: Terminal, who: str) -> None:
        """Keep it a while longer; harmless when it was lost meanwhile."""
        wish = KeyboardWish(terminal=terminal, who=who, seconds=LEASE_SECONDS)
        with suppress(PodiumError):  # the next view says who has it
            await self.mirror.take(wish)

    def came(self, terminal: Terminal, who: str) -> None:
        self._here[terminal, who] += 1

    def left(self, terminal: Terminal, who: str, *, held: bool) -> None:
        """Somebody's connection ended. The keyboard that they had comes back unless they do."""
        self._here[terminal, who] -= 1
        if held and not self._here[terminal, who]:
            leaving = asyncio.create_task(self._return_later(terminal, who))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _return_later(self, terminal: Terminal, who: str) -> None:
        await asyncio.sleep(GRACE_SECONDS)
        if not self._here[terminal, who]:
            with suppress(PodiumError):  # it was returned, or went with its pair
                await self.give(terminal, who, "they left the console")


def lookout_of(connection: HTTPConnection) -> Lookout:
    """The console's own, made when somebody first looks."""
    state = connection.app.state
    if not hasattr(state, "lookout"):
        state.lookout = Lookout(desk_of(connection))
    found = state.lookout
    assert isinstance(found, Lookout)  # noqa: S101 — made above
    return found
