"""Hook doors with no socket behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from podium.domain.asking import Turn
from podium.ports import Translate


@dataclass(frozen=True)
class FakeTurnDoor:
    """A door that says what it was told to say. No process can come in by it."""

    env: Mapping[str, str] = field(default_factory=dict)
    waiting_approvals: tuple[str, ...] = ()


class FakeHookDoors:
    """Opens the same door for every turn, remembers the turns and counts the doors still open."""

    def __init__(
        self, env: Mapping[str, str] | None = None, waiting_approvals: tuple[str, ...] = ()
    ) -> None:
        self._door = FakeTurnDoor(dict(env or {}), waiting_approvals)
        self.turns: list[Turn] = []
        self.opened = 0

    @asynccontextmanager
    async def open(
        self,
        turn: Turn,
        *,
        agent: str = "",
        provenance: tuple[str, ...] = (),
        translate: Translate | None = None,
    ) -> AsyncIterator[FakeTurnDoor]:
        self.turns.append(turn)
        self.opened += 1
        try:
            yield self._door
        finally:
            self.opened -= 1
