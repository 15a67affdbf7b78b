"""Who is alive in a replay: the processes of the run, which all are this one."""

from __future__ import annotations

from podium.domain.work import WorkerBeat
from podium.ports import View


class Marks:
    """Presence of the processes of one replay, in memory."""

    def __init__(self) -> None:
        self.alive: set[str] = set()


class Mark:
    """The mark of one of them; see `Presence`."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._held = ""

    async def enter(self, worker_id: str) -> None:
        self._held = worker_id
        self._marks.alive.add(worker_id)

    async def leave(self) -> None:
        self._marks.alive.discard(self._held)

    def present(self, view: View, workers: list[WorkerBeat]) -> set[str]:
        return {worker.id for worker in workers} & self._marks.alive

    def is_gone(self, view: View, worker: WorkerBeat | None) -> bool:
        return worker is None or worker.id not in self._marks.alive

    def sweep(self) -> None:
        return
