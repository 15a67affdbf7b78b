"""View of a run on the command line: each call as it happens, then which criteria are met."""

from __future__ import annotations

from podium.app.app import Podium
from podium.app.run_list import RunListing
from podium.cli.context import CliContext
from podium.cli.progress import LinesView, Progress, result_record
from podium.cli.run_host import next_steps
from podium.core import events as e
from podium.core.ids import short_id
from podium.core.work import Run, RunStatus
from podium.jobs.playbook.events import PlaybookBegan
from podium.jobs.playbook.models import PROFILE_FILE, Criterion, PlaybookResult
from podium.render.event import describe, usage_text
from podium.render.text import counted, escaped_line, escaped_text, safe_line

_PRINTED_EVENTS: tuple[type[e.EventBody], ...] = (
    PlaybookBegan,
    e.ToolRequested,
    e.ToolCompleted,
    e.ToolFailed,
    e.ToolRefused,
    e.ToolInDoubt,
    e.AgentStopped,
    e.ApprovalRequested,
    e.ApprovalGranted,
    e.ApprovalRejected,
    e.RunWaiting,
    e.RunNeededHuman,
    e.NoteTaken,
)
_MAX_LENGTH = 300
_MAX_PATHS = 20
_MAX_DIFF_LINES = 200
_END = "end"


class PlaybookRunView(LinesView):
    """Shows one run from its launch, or from where it goes on, to its end."""

    def __init__(self, cli: CliContext, run: Run) -> None:
        super().__init__(cli, run)
        self._result: PlaybookResult | None = None
        self._calls = 0

    def event(self, event: e.Event, progress: Progress) -> None:
        if self._screen.json:
            self._screen.record(event.line())
        body = event.body
        if isinstance(body, _PRINTED_EVENTS):
            at = event.at.astimezone().strftime("%H:%M:%S")
            summary = safe_line(describe(body), _MAX_LENGTH)
            progress.line(f"[{at}] {body.type.replace('_', ' ')}: {summary}")
        self._follow(body, progress)

    def _follow(self, body: e.EventBody, progress: Progress) -> None:
        match body:
            case e.AgentAsked():
                progress.doing(f"{body.agent} is thinking")
            case e.ToolRequested():
                self._calls += 1
                progress.doing(f"call {self._calls}: {body.tool}")
            case e.ToolCompleted() | e.ToolFailed() | e.ToolRefused():
                progress.doing("the agent is thinking")
            case e.AgentReplied():
                progress.doing("proving")
            case e.RunWaiting():
                progress.doing("waiting for a person")

    async def look_back(self, podium: Podium, run: Run) -> None:
        store = await podium.store()
        step = await store.read(lambda view: view.step(run.id, _END))
        if step is not None and step.output is not None:
            self._result = PlaybookResult.model_validate(step.output)

    def end(self, run_status: RunListing, exit_code: int) -> None:
        record = result_record(run_status, exit_code)
        if self._result is not None:
            record["result"] = self._result.model_dump(mode="json")
        self._screen.answer(record, lambda: self._report(run_status))

    def _report(self, run_status: RunListing) -> None:
        run = run_status.run
        self._screen.line(f"run {run.id} {run_status.shown_status}")
        if self._result is not None:
            self._show(self._result, run)
        for line in self._next(run_status):
            self._screen.stderr_line(line)

    def _next(self, run_status: RunListing) -> list[str]:
        run = run_status.run
        if run.status is not RunStatus.FAILED or self._result is None or run.failure is None:
            return next_steps(run_status)
        short = short_id(run.id)
        return [
            f"podium: {run.failure.message}",
            f"run the criteria again with `podium retry {short} --from prove`, or the agent with `--from follow`",
        ]

    def _show(self, result: PlaybookResult, run: Run) -> None:
        for criterion in result.criteria:
            self._screen.line(_criterion_line(criterion))
        if not result.criteria:
            self._screen.line("no success criteria; the result was not checked")
        if result.stop is not None:
            self._screen.line(f"stopped: {escaped_line(result.stop.reason)}")
        self._show_changes(result, run)
        if result.words.strip():
            self._screen.line(
                f"\nthe agent said (not verified):\n{escaped_text(result.words.strip())}\n"
            )
        self._screen.line(
            f"{usage_text(result.usage)}; see every call with `podium trace {short_id(run.id)}`"
        )

    def _show_changes(self, result: PlaybookResult, run: Run) -> None:
        changes = result.changes
        if changes.unknown:
            self._screen.line(f"changes unknown: {escaped_line(changes.unknown)}")
            return
        if not changes.paths:
            self._screen.line("no files were changed")
            return
        would = "would change (dry run)" if result.dry_run else "changed"
        self._screen.line(f"{counted(len(changes.paths), 'file')} {would}:")
        for path in changes.paths[:_MAX_PATHS]:
            self._screen.line(f"  {escaped_line(path)}")
        if len(changes.paths) > _MAX_PATHS:
            self._screen.line(f"  and {len(changes.paths) - _MAX_PATHS} more")
        if PROFILE_FILE in changes.paths and not result.dry_run:
            self._screen.line(f"  {PROFILE_FILE} was changed: review it before the next run")
        if changes.ignored:
            self._screen.line(f"  and {counted(len(changes.ignored), 'file')} that git ignores")
        if result.dry_run:
            self._show_diff(changes.diff)
        else:
            self._screen.line(f"undo all of it with `podium playbook restore {short_id(run.id)}`")

    def _show_diff(self, diff: str) -> None:
        lines = diff.splitlines()
        for line in lines[:_MAX_DIFF_LINES]:
            self._screen.line(escaped_line(line))
        if len(lines) > _MAX_DIFF_LINES:
            self._screen.line(
                f"… {counted(len(lines) - _MAX_DIFF_LINES, 'more line')}; --json prints all"
            )


def _criterion_line(criterion: Criterion) -> str:
    if criterion.met:
        return f"  met      {escaped_line(criterion.command)}"
    last = criterion.said.strip().splitlines()
    last_line = f"\n             {escaped_line(last[-1], _MAX_LENGTH)}" if last else ""
    return f"  NOT MET  {escaped_line(criterion.command)}: {escaped_line(criterion.why)}{last_line}"
