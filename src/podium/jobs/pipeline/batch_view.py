"""View of a run of several tasks on the command line: one line per task and change, then a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from podium.app.app import Podium
from podium.app.run_list import RunListing
from podium.cli.context import CliContext
from podium.cli.progress import LinesView, Progress, result_record
from podium.cli.run_host import RunView, next_steps
from podium.cli.screen import Screen
from podium.core.events import Event
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json
from podium.core.work import Run, RunStatus
from podium.jobs.pipeline.attempts import HEADINGS, Attempt, cells
from podium.jobs.pipeline.events import BatchTaskChanged, task_text
from podium.jobs.pipeline.run_view import (
    SUPERVISOR,
    LookBack,
    PipelineLines,
    PipelineRunView,
    check_line,
    delivery_facts,
    result_of,
)
from podium.jobs.pipeline.run_view import look_back as look_back_on_task
from podium.jobs.pipeline.spec import BATCH
from podium.ports import EventQuery, Store, StoreView
from podium.render.text import safe_line

_PAGE = 1000


def view_of(cli: CliContext, run: Run) -> RunView:
    """View of a run of the pipeline: of one task, or of several."""
    return BatchRunView(cli, run) if run.flow == BATCH else PipelineRunView(cli, run)


async def look_back(podium: Podium, run: Run) -> LookBack | BatchLookBack:
    """Gather what `podium show` adds for a run of the pipeline."""
    if run.flow != BATCH:
        return await look_back_on_task(podium, run)
    return BatchLookBack(tasks=await tasks_of(await podium.store(), run.id))


class BatchLookBack(FrozenModel):
    """The tasks of a batch as they are now."""

    tasks: tuple[BatchTaskChanged, ...] = ()

    def record(self) -> dict[str, Json]:
        return {"tasks": _records(self.tasks)}

    def show(self, screen: Screen, run: Run) -> None:
        show_batch(screen, run, self.tasks)


async def tasks_of(store: Store, run_id: str) -> tuple[BatchTaskChanged, ...]:
    """The last state of every task, in the order of their numbers."""
    newest: dict[int, BatchTaskChanged] = {}
    after = 0
    while page := await store.read(partial(_page, run_id, after)):
        for event in page:
            if isinstance(event.body, BatchTaskChanged):
                newest[event.body.number] = event.body
        after = page[-1].seq
    return tuple(newest[number] for number in sorted(newest))


def _page(run_id: str, after: int, view: StoreView) -> list[Event]:
    query = EventQuery(run_id=run_id, types=("batch_task",), after_seq=after, limit=_PAGE)
    return view.events(query)


def _records(tasks: Sequence[BatchTaskChanged]) -> list[Json]:
    return [task.model_dump(mode="json", exclude={"type", "version"}) for task in tasks]


def show_batch(screen: Screen, run: Run, tasks: Sequence[BatchTaskChanged]) -> None:
    """Branch, pull request and one row a task."""
    result = result_of(run)
    branch = str(result.get("branch", ""))
    commit = str(result.get("commit", ""))[:12]
    screen.facts(
        [
            ("branch", f"{branch} at {commit}, from {result.get('base', '')}" if branch else ""),
            *delivery_facts(run, result),
        ]
    )
    attempts = [Attempt.model_validate(row) for row in result.get("attempts") or ()]
    if attempts:
        screen.line("\nattempts, the best first")
        screen.table(HEADINGS, [cells(attempt) for attempt in attempts])
    elif tasks:
        screen.line("\ntasks")
        rows = [
            (
                task.id,
                task.title,
                task.status.replace("_", " "),
                task.words[:12] if task.status == "merged" else "",
                short_id(task.run_id) if task.run_id else "",
                "" if task.status == "merged" else safe_line(task.words, 100),
            )
            for task in tasks
        ]
        screen.table(("TASK", "TEXT", "STATUS", "MERGE", "RUN", "WHY"), rows)
    checks = result.get("checks")
    if isinstance(checks, list) and checks:
        screen.line("\nchecks of the last merge")
        for check in checks:
            screen.line(f"  {check_line(check)}")


class BatchRunView(LinesView):
    """Shows a batch from its launch, or from where it continues, to its end."""

    def __init__(self, cli: CliContext, run: Run) -> None:
        super().__init__(cli, run)
        self._lines = PipelineLines()
        self._tasks: dict[int, BatchTaskChanged] = {}

    async def begin(self, store: Store) -> int:
        first = await super().begin(store)
        self._tasks = {task.number: task for task in await tasks_of(store, self._run.id)}
        return first

    def event(self, event: Event, progress: Progress) -> None:
        if self._screen.json:
            self._screen.record(event.line())
        if isinstance(event.body, BatchTaskChanged):
            self._tasks[event.body.number] = event.body
            at = event.at.astimezone().strftime("%H:%M:%S")
            progress.line(f"[{at}] {SUPERVISOR}: {safe_line(_line(event.body), 400)}")
            progress.doing(self._doing())
            return
        for line in self._lines.lines(event):
            progress.line(line)

    def _doing(self) -> str:
        counts = Counter(task.status for task in self._tasks.values())
        return ", ".join(
            f"{number} {status.replace('_', ' ')}" for status, number in counts.items()
        )

    async def look_back(self, podium: Podium, run: Run) -> None:
        tasks = await tasks_of(await podium.store(), run.id)
        self._tasks = {task.number: task for task in tasks}

    def end(self, status: RunListing, exit_code: int) -> None:
        tasks = [self._tasks[number] for number in sorted(self._tasks)]
        record = {**result_record(status, exit_code), "tasks": _records(tasks)}
        self._screen.answer(record, lambda: self._report(status, tasks))

    def _report(self, status: RunListing, tasks: Sequence[BatchTaskChanged]) -> None:
        run = status.run
        self._screen.line(f"run {run.id} {status.shown_status}")
        show_batch(self._screen, run, tasks)
        if run.status is RunStatus.NEEDS_HUMAN and run.failure is not None:
            self._screen.line(f"\n{run.failure.message}")
            return
        for line in next_steps(status):
            self._screen.stderr_line(line)


def _line(body: BatchTaskChanged) -> str:
    return f"Task {task_text(body)}"
