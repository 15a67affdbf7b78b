"""Runs told one JSON object to a line, `launch` first and `result` last, or in words of the flow's own."""

from __future__ import annotations

from podium.cli.door import Door
from podium.cli.screen import error_record
from podium.domain.errors import Interrupted, PodiumError
from podium.domain.model import Json
from podium.domain.work import Run
from podium.ports import EventQuery, Store
from podium.usecases import INTERRUPTED, Standing


class LinesTelling:
    """What the tellings of such flows have in common."""

    def __init__(self, door: Door, run: Run) -> None:
        self._options = door.options
        self._screen = door.screen
        self._run = run

    async def begin(self, store: Store) -> int:
        """A run that goes on is told from where this process took it."""
        if self._screen.json:
            self._screen.record(launch_record(self._run))
        if self._run.fence == 1:
            return 0
        taken = EventQuery(run_id=self._run.id, types=("run_started",))
        starts = await store.read(lambda view: view.events(taken))
        return starts[-1].seq - 1 if starts else 0

    def break_off(self, error: PodiumError) -> None:
        if not self._screen.json:
            return
        left = INTERRUPTED if isinstance(error, Interrupted) else "unknown"
        told = {"error": error_record(error, str(error), error.exit_code)}
        record = result_record(Standing(run=self._run, hosted=False), error.exit_code)
        self._screen.record({**record, "status": left, **told})
        # That was the last line; the edge has only people left to tell.
        self._options.json = False


def launch_record(run: Run, **more: Json) -> dict[str, Json]:
    """The first line: what was begun, or goes on."""
    job = run.input if isinstance(run.input, dict) else {}
    return {
        "type": "launch",
        "run": run.id,
        "task": run.task,
        "mode": job.get("mode", ""),
        "base": job.get("base", ""),
        "agent": job.get("agent", ""),
        "resumed": run.fence > 1,
        **more,
    }


def result_record(stands: Standing, exit_code: int) -> dict[str, Json]:
    """The last line."""
    return {
        "type": "result",
        "run": stands.record(),
        "status": stands.shown_status,
        "exit_code": exit_code,
        "result": stands.run.result,
    }
