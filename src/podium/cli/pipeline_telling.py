"""A run of the pipeline as it is shown: lines while it goes and a report, or one JSON object to a line."""

from __future__ import annotations

from podium.cli.door import Door
from podium.cli.event_words import usage_words
from podium.cli.hosting import next_words
from podium.cli.pipeline_report import LookBack, look_back, passage_of, show_report
from podium.cli.pipeline_words import PipelineWords
from podium.cli.progress import Progress
from podium.cli.screen import error_record
from podium.domain.errors import Interrupted, PodiumError
from podium.domain.events import Event
from podium.domain.model import Json
from podium.domain.work import Run, RunStatus
from podium.ports import EventQuery, Store
from podium.usecases import INTERRUPTED, Standing
from podium.wiring import Podium


class PipelineTelling:
    """Shows one run from its launch, or from where it goes on, to its end."""

    def __init__(self, door: Door, run: Run) -> None:
        self._options = door.options
        self._screen = door.screen
        self._run = run
        self._words = PipelineWords()
        self._doing = self._words.doing
        self._back = LookBack()

    async def begin(self, store: Store) -> int:
        if self._screen.json:
            self._screen.record(launch_record(self._run))
        if self._run.fence == 1:
            return 0
        self._words.know((await passage_of(store, self._run.id)).stages)
        taken = EventQuery(run_id=self._run.id, types=("run_started",))
        starts = await store.read(lambda view: view.events(taken))
        return starts[-1].seq - 1 if starts else 0

    def event(self, event: Event, progress: Progress) -> None:
        if self._screen.json:
            self._screen.record(event.line())
        for line in self._words.lines(event):
            progress.line(line)
        if self._words.doing is not self._doing:
            self._doing = self._words.doing
            progress.doing(self._doing.what, self._doing.until)

    async def look_back(self, podium: Podium, run: Run) -> None:
        if not self._screen.json:
            self._back = await look_back(podium, run)

    def end(self, stands: Standing, exit_code: int) -> None:
        record = result_record(stands, exit_code)
        self._screen.answer(record, lambda: self._report(stands))

    def break_off(self, error: PodiumError) -> None:
        if not self._screen.json:
            return
        left = INTERRUPTED if isinstance(error, Interrupted) else "unknown"
        told = {"error": error_record(error, str(error), error.exit_code)}
        record = result_record(Standing(run=self._run, hosted=False), error.exit_code)
        self._screen.record({**record, "status": left, **told})
        # That was the last line; the edge has only people left to tell.
        self._options.json = False

    def _report(self, stands: Standing) -> None:
        run = stands.run
        self._screen.line(f"run {run.id} {stands.shown_status}")
        show_report(self._screen, run, self._back, ("cost", usage_words(self._back.usage)))
        if run.status is RunStatus.NEEDS_HUMAN and run.failure is not None:
            self._screen.line(f"\na person has to look\n{run.failure.message}")
            self._screen.aside(f'podium: it needs a person; `podium resume {run.id} --note "…"`')
            return
        for words in next_words(stands):
            self._screen.aside(words)


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
