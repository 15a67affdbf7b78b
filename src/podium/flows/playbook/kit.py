"""What a run of a playbook needs of the house."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from podium.domain.playbook_runs import Changes, Ground, PlaybookJob
from podium.flows.asking import Player
from podium.flows.spending import Purse
from podium.ports import Clock, Store, Toolbox


class Grounds(Protocol):
    """Folders to work in, and the way back to what they were."""

    async def prepare(self, run_id: str, root: str, *, as_copy: bool) -> Ground:
        """Keep what is there so that it can be put back, or copy it away and work in the copy.

        The same run gets the same ground when it asks again. Raises `NotPossibleNow` when a copy
        cannot be made.
        """
        ...

    async def changes(self, ground: Ground, root: str) -> Changes:
        """What is different now from what was prepared."""
        ...

    async def leave(self, ground: Ground) -> None:
        """Remove a copy. What was worked on in place stays as it is."""
        ...


@dataclass(frozen=True)
class Bench:
    """The agent of one run behind its door, held to the plugin's profile, and the tools of those who prove."""

    player: Player
    prover: Toolbox
    """What Podium itself runs the criteria with."""
    off_limits: Callable[[str], bool]
    """Whether a path, from the root on, is one that the profile lets nobody change."""


@dataclass(frozen=True)
class PlaybookKit:
    """What the story needs."""

    store: Store
    clock: Clock
    purse: Purse
    grounds: Grounds
    bench: Callable[[PlaybookJob, Ground], Awaitable[Bench]]
    """Puts agent and tools together. Raises `BadInput` for an agent that nobody knows or that cannot
    be without hands."""
