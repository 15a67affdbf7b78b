"""What turns and starts of programs need, made late: whoever looks at a pair or steers it does without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cached_property

from podium.domain.asking import Turn
from podium.domain.launching import Confinement, Held
from podium.ports import Enclosures, HookDoors, Translate, TurnDoor


class LateDoors:
    """Doors that are built with the first turn; see `HookDoors`."""

    def __init__(self, build: Callable[[], Awaitable[HookDoors]]) -> None:
        self._build = build
        self._building = asyncio.Lock()
        self._built: HookDoors | None = None

    @asynccontextmanager
    async def open(
        self, turn: Turn, *, agent: str = "", translate: Translate | None = None
    ) -> AsyncIterator[TurnDoor]:
        async with self._building:
            built = self._built = self._built or await self._build()
        async with built.open(turn, agent=agent, translate=translate) as door:
            yield door


class LateFence:
    """A fence that is drawn when it is first asked for; see `Enclosures`."""

    def __init__(self, build: Callable[[], Enclosures]) -> None:
        self._build = build

    @cached_property
    def _built(self) -> Enclosures:
        return self._build()

    async def confinement(self, root: str) -> Confinement:
        return await self._built.confinement(root)

    def held(self, root: str) -> Held | None:
        return self._built.held(root)
