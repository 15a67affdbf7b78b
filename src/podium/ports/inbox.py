"""The inbox: where work orders come in as files, are claimed once, and are answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from podium.domain.orders import Ack, Claim, OpenedOrder

Shelf = Literal["done", "parked"]
"""Where a file goes when its order has ended."""


class Inbox(Protocol):
    """A folder of work orders and the folders around it. All methods are quick and may block."""

    @property
    def passed_over(self) -> Sequence[str]:
        """Files that the last look at the inbox left where they are, and why, a sentence each."""
        ...

    def waiting(self) -> Sequence[str]:
        """Names of files that nobody has claimed, oldest first."""
        ...

    def claim(self, file: str, *, run_id: str, worker: str) -> Claim | None:
        """Take a file. None: somebody else was faster, or it is gone."""
        ...

    def claims(self) -> Sequence[Claim]:
        """Everything that was taken and not put away."""
        ...

    def open(self, claim: Claim) -> OpenedOrder:
        """Read a claimed file. Never raises for what is in it."""
        ...

    def put_away(self, claim: Claim, shelf: Shelf, why: str = "") -> str:
        """Move a claimed file to its shelf, with the reason beside a parked one. Done before, it is done.

        Gives the path from the root on.
        """
        ...

    def acknowledge(self, ack: Ack) -> str:
        """Write the answer to the outbox in one step. Gives the path from the root on."""
        ...

    def answered(self, wo_id: str) -> Ack | None:
        """What was said of an order of this name before."""
        ...
