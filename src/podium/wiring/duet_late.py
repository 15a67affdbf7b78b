"""What only turns and starts of programs need, made then: whoever looks at a pair or steers it does without."""

from __future__ import annotations

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
        self._built: HookDoors | None = None

    @asynccontextmanager
    async def open(
        self, turn: Turn, *, agent: str = "", translate: Translate | None = None
    ) -> AsyncIterator[TurnDoor]:
        if self._built is None:
            self._built = await self._build()
        async with self._built.open(turn, agent=agent, translate=translate) as door:
            yield door


class LateFence:
    """A fence that is drawn with the first start of a program; see `Enclosures`."""

    def __init__(self, build: Callable[[], Enclosures]) -> None:
        self._build = build

    @cached_property
    def _built(self) -> Enclosures:
        return self._build()

    async def confinement(self, root: str) -> Confinement:
        return await self._built.confinement(root)

    def held(self, root: str) -> Held | None:
        return self._built.held(root)
