"""Enclosures: what whoever works in a folder may reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.domain.launching import Confinement, Held


class Enclosures(Protocol):
    """Knows for every folder that agents work in how it is fenced."""

    async def confinement(self, root: str) -> Confinement:
        """For the processes of an agent, or of a command that one wished for, in this folder.

        Ask before each start. Raises `WorkspaceTampered` when the fence is not as it was put up.
        """
        ...

    def held(self, root: str) -> Held | None:
        """How commands there are held, when the kernel holds them and git's own data is out of reach.

        None: they are not held so, and the gate has to judge them by their words alone.
        """
        ...
