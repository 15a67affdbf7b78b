"""What a duet needs of the house."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from podium.domain.duets import Pair
from podium.domain.messages import Heard, Side
from podium.flows.asking import Player
from podium.flows.spending import Purse
from podium.ports import Clock, Store


@dataclass(frozen=True)
class Chair:
    """One side of a pair, ready to be asked."""

    player: Player
    workspace: str
    on_screen: bool = False
    """Its words are read off a screen, where only a block can be told from the rest."""
    keeps_conversation: bool = False
    """It was told its part when it came up, and remembers earlier tasks."""


@dataclass(frozen=True)
class Stage:
    """Both sides."""

    planner: Chair
    executer: Chair

    def chair(self, side: Side) -> Chair:
        return self.planner if side == "PLANNER" else self.executer


@dataclass(frozen=True)
class DuetKit:
    """What the story needs."""

    store: Store
    clock: Clock
    purse: Purse
    stage: Callable[[Pair], Awaitable[Stage]]
    """Puts a pair on stage. Raises what keeps it from that: no tmux, an unknown agent, a folder nobody granted."""
    read: Callable[[str], Heard]
    """The blocks in what an agent said."""
    new_nonce: Callable[[], str]
    """Eight characters or more that nobody can guess."""
