"""Protocols of the sense loop: sources it reads, the record and trust book it keeps, the inbox of work orders."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from podium.core.model import Json, UtcDatetime
    from podium.jobs.sense.models import Bundle, Look, SenseMemory, TickOutcome
    from podium.jobs.sense.orders.work_order import Ack, Claim, OpenedOrder


Shelf = Literal["done", "parked"]
"""Folder of a file whose order has ended."""


class OrderInbox(Protocol):
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
        """Claims that were not put away yet."""
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
        """Return the answer to an earlier order of this name."""
        ...


class SenseRecord(Protocol):
    """Files of one root. A line that cannot be written is told and breaks no tick."""

    @property
    def problems(self) -> Sequence[str]:
        """Files that cannot be written just now, and why."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Hold the loop's lock: no other loop ticks on this root. Raises `LockHeld`."""
        ...

    def memory(self) -> SenseMemory:
        """Return the stored memory; a fresh one where there is none, or none that can be read."""
        ...

    def remember(self, memory: SenseMemory) -> bool:
        """Store the memory. False: it is not durable, and only the holder of `alone` in this process gets it from `memory`."""
        ...

    def keep_bundle(self, bundle: Bundle) -> str:
        """Write the context bundle where the planner's users look for it. Gives its path."""
        ...

    def keep_plan(self, document: Json) -> str: ...

    def log(self, text: str, *, at: UtcDatetime, kind: Literal["main", "parser"] = "main") -> None:
        """Add a line to the main log or to the parser's, and turn the file over when it is full."""
        ...

    def tick_ended(self, outcome: TickOutcome) -> None:
        """Add the SUMMARY line to the log and a record to the telemetry."""
        ...


class StateSource(Protocol):
    """Looks, and changes nothing. One small class for each kind of place."""

    @property
    def name(self) -> str:
        """Name in bundles and counts, such as `health`."""
        ...

    async def etag(self) -> str:
        """Return a text that changes when `look` would find something else, the same in every process.

        Where there are files it is made of what the file system tells, and nothing is read; it may then change
        once more although nothing did: two seconds after a file was written. For commands, addresses and
        repositories it is made of what was found, and a `look` right after it does not ask again.
        """
        ...

    async def look(self) -> Look:
        """Read the current state, with its etag. Never raises for the state it finds: that is in the look.

        Looking again at what has not changed must not cost much more than asking the file system.
        """
        ...
