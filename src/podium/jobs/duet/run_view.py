"""View of a running task on the command line: each message as it is routed, then the report."""

from __future__ import annotations

from podium.app.app import Podium
from podium.app.run_list import RunListing
from podium.cli.progress import LinesView, Progress, result_record
from podium.cli.run_host import next_steps
from podium.core import events as e
from podium.core.ids import short_id
from podium.core.work import Run, RunStatus
from podium.jobs.duet.events import (
    BlockIgnored,
    KeyboardReturned,
    KeyboardTaken,
    LegOpened,
    MessageHeard,
    PairSeated,
    SideNudged,
    first_line,
)
from podium.render.event import describe
from podium.render.text import escaped_text, safe_line

_PRINTED_EVENTS: tuple[type[e.EventBody], ...] = (
    PairSeated,
    LegOpened,
    MessageHeard,
    BlockIgnored,
    SideNudged,
    KeyboardTaken,
    KeyboardReturned,
    e.ToolRefused,
    e.ApprovalRequested,
    e.RunWaiting,
    e.RunNeededHuman,
    e.NoteTaken,
)
_MAX_LENGTH = 300


class DuetRunView(LinesView):
    """Shows one task from its start, or from where it resumes, to its end."""

    def event(self, event: e.Event, progress: Progress) -> None:
        if self._screen.json:
            self._screen.record(event.line())
        body = event.body
        if isinstance(body, _PRINTED_EVENTS) or (
            isinstance(body, e.AgentProgressed) and body.kind == "note"
        ):
            at = event.at.astimezone().strftime("%H:%M:%S")
            summary = safe_line(describe(body), _MAX_LENGTH)
            progress.line(f"[{at}] {body.type.replace('_', ' ')}: {summary}")
        self._follow(body, progress)

    def _follow(self, body: e.EventBody, progress: Progress) -> None:
        match body:
            case LegOpened(leg=hop):
                progress.doing(f"{hop.expected_from} is working on a {' or '.join(hop.expected)}")
            case MessageHeard(routed_to=str() as to, message=message):
                progress.doing(f"{message.type} for {to}: {first_line(message)[:60]}")
            case e.RunWaiting() | e.RunNeededHuman():
                progress.doing("waiting for a person")

    async def look_back(self, podium: Podium, run: Run) -> None:
        return

    def end(self, run_status: RunListing, exit_code: int) -> None:
        self._screen.answer(
            result_record(run_status, exit_code), lambda: self._print_end(run_status)
        )

    def _print_end(self, run_status: RunListing) -> None:
        run = run_status.run
        result = run.result if isinstance(run.result, dict) else {}
        if report := str(result.get("report") or ""):
            self._screen.line(escaped_text(report))
        for line in _next_steps(run_status):
            self._screen.stderr_line(line)
        self._screen.line(f"DONE: {run.status is RunStatus.SUCCEEDED}")


def _next_steps(run_status: RunListing) -> list[str]:
    if run_status.run.status is RunStatus.FAILED and run_status.run.failure is not None:
        short = short_id(run_status.run.id)
        return [
            f"podium: {run_status.run.failure.message}",
            f"read the messages with `podium duet log {short}`; ask again with `podium duet retry {short}`",
        ]
    return next_steps(run_status)
