"""The hook door: how an agent's own processes reach the tool door during one turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from podium.domain.asking import Turn
from podium.domain.model import Json

Translate = Callable[[str, dict[str, Json]], tuple[str, dict[str, Json]]]
"""Turns a CLI's own tool name and arguments into those of a registered tool."""


class TurnDoor(Protocol):
    """A turn's socket, open for as long as the turn lasts."""

    @property
    def env(self) -> Mapping[str, str]:
        """Variables that let a child process find the door and be let in."""
        ...

    @property
    def waiting_approvals(self) -> tuple[str, ...]:
        """Approvals that calls of this turn were told to wait for."""
        ...


class HookDoors(Protocol):
    """Opens a door for each turn."""

    def open(
        self,
        turn: Turn,
        *,
        agent: str = "",
        provenance: tuple[str, ...] = (),
        translate: Translate | None = None,
    ) -> AbstractAsyncContextManager[TurnDoor]:
        """While open, calls of the turn's processes are judged, performed and receipted.

        `provenance` names the untrusted sources that led to the turn. Raises `CallInDoubt`, on
        entering or on leaving, when only a person can say what became of a call.
        """
        ...
