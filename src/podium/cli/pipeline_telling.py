"""A run of the pipeline as it is shown: lines while it goes and a report, or one JSON object to a line."""

from __future__ import annotations

from podium.cli.door import Door
from podium.cli.hosting import next_words
from podium.cli.lines_telling import LinesTelling, result_record
from podium.cli.pipeline_report import LookBack, look_back, passage_of, show_report
from podium.cli.pipeline_words import PipelineWords
from podium.cli.progress import Progress
from podium.domain.events import Event
from podium.domain.work import Run, RunStatus
from podium.ports import Store
from podium.telling.event_words import usage_words
from podium.usecases import Standing
from podium.wiring import Podium


class PipelineTelling(LinesTelling):
    """Shows one run from its launch, or from where it goes on, to its end."""

    def __init__(self, door: Door, run: Run) -> None:
        super().__init__(door, run)
        self._words = PipelineWords()
        self._doing = self._words.doing
        self._back = LookBack()

    async def begin(self, store: Store) -> int:
        first = await super().begin(store)
        if self._run.fence > 1:
            self._words.know((await passage_of(store, self._run.id)).stages)
        return first

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
