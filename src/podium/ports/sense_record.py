"""What the sense loop keeps in files beside the journal: memory, logs, telemetry, earned trust."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from podium.domain.model import Json, Moment
    from podium.domain.sensing import Bundle, SenseMemory, TickOutcome
    from podium.domain.trust import TrustEntry


class SenseRecord(Protocol):
    """Files of one root. A line that cannot be written is told and breaks no tick."""

    @property
    def faults(self) -> Sequence[str]:
        """What cannot be written just now, in words."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """While open, no other loop ticks on this root. Raises `LockHeld`."""
        ...

    def memory(self) -> SenseMemory:
        """What was remembered; a fresh one where there is none, or none that can be read."""
        ...

    def remember(self, memory: SenseMemory) -> bool:
        """Whether it lasts. If not, whoever is `alone` here still gets it from `memory`, and nobody after that."""
        ...

    def keep_bundle(self, bundle: Bundle) -> str:
        """Write the context bundle where the planner's users look for it. Gives its path."""
        ...

    def keep_plan(self, document: Json) -> str: ...

    def log(self, text: str, *, at: Moment, kind: Literal["main", "parser"] = "main") -> None:
        """Add a line to the main log or to the parser's, and turn the file over when it is full."""
        ...

    def tick_ended(self, outcome: TickOutcome) -> None:
        """Add the SUMMARY line to the log and a record to the telemetry."""
        ...


class TrustBook(Protocol):
    """What people decided and what happened, from which autonomy is earned and lost. Only added to."""

    def entries(self) -> Sequence[TrustEntry]: ...

    def add(self, entry: TrustEntry) -> None:
        """Durable on return. The same entry again changes nothing."""
        ...
