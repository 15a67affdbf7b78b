"""Presence: how processes on one store tell that another has ended, without waiting for its lease."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.domain.work import WorkerBeat
    from podium.ports.store import View


class Presence(Protocol):
    """Marks that last exactly as long as the processes that hold them.

    A mark that is gone tells at once that its process is; one that stands tells nothing of a process
    that is stopped, hung or cut off. For that there is the lease.
    """

    async def enter(self, worker_id: str) -> None:
        """Hold a mark under this name. Raises `LockHeld` when another process holds it."""
        ...

    async def leave(self) -> None:
        """Let go of the mark. Harmless when none is held."""
        ...

    def present(self, view: View, workers: list[WorkerBeat]) -> set[str]:
        """Ids of those whose mark stands."""
        ...

    def is_gone(self, view: View, worker: WorkerBeat | None) -> bool:
        """Whether a worker's process has ended, and all that it started with it.

        None: it has said goodbye, or never was.
        """
        ...

    def sweep(self) -> None:
        """Clear away what the dead left behind."""
        ...
