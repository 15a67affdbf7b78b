"""View of a running task on the command line: each message as it is routed, then the report."""

from __future__ import annotations

from podium.app.app import Podium
from podium.app.run_list import RunListing
from podium.cli.progress import LinesTelling, Progress, result_record
from podium.cli.run_host import next_words
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
from podium.render.text import safe_line, shown_text

_SHOWN: tuple[type[e.EventBody], ...] = (
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


class DuetRunView(LinesTelling):
    """Shows one task from its beginning, or from where it goes on, to its end."""

    def event(self, event: e.Event, progress: Progress) -> None:
        if self._screen.json:
            self._screen.record(event.line())
        body = event.body
        if isinstance(body, _SHOWN) or (
            isinstance(body, e.AgentProgressed) and body.kind == "note"
        ):
            at = event.at.astimezone().strftime("%H:%M:%S")
            words = safe_line(describe(body), _MAX_LENGTH)
            progress.line(f"[{at}] {body.type.replace('_', ' ')}: {words}")
        self._follow(body, progress)

    def _follow(self, body: e.EventBody, progress: Progress) -> None:
        match body:
            case LegOpened(leg=leg):
                progress.doing(f"{leg.expected_from} works on a {' or '.join(leg.expected)}")
            case MessageHeard(routed_to=str() as to, message=message):
                progress.doing(f"{message.type} for {to}: {first_line(message)[:60]}")
            case e.RunWaiting() | e.RunNeededHuman():
                progress.doing("waiting for a person")

    async def look_back(self, podium: Podium, run: Run) -> None:
        return

    def end(self, stands: RunListing, exit_code: int) -> None:
        self._screen.answer(result_record(stands, exit_code), lambda: self._words(stands))

    def _words(self, stands: RunListing) -> None:
        run = stands.run
        result = run.result if isinstance(run.result, dict) else {}
        if report := str(result.get("report") or ""):
            self._screen.line(shown_text(report))
        for words in _what_now(stands):
            self._screen.aside(words)
        self._screen.line(f"DONE: {run.status is RunStatus.SUCCEEDED}")


def _what_now(stands: RunListing) -> list[str]:
    if stands.run.status is RunStatus.FAILED and stands.run.failure is not None:
        short = short_id(stands.run.id)
        return [
            f"podium: {stands.run.failure.message}",
            f"`podium duet log {short}` shows what was said; `podium duet retry {short}` asks again",
        ]
    return next_words(stands)
