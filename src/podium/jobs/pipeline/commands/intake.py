"""Command `podium intake`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.core.errors import BadInput, LockHeld, Passing
from podium.render.text import counted, escaped_line

if TYPE_CHECKING:
    from podium.jobs.pipeline.intake import IntakeItem

app = command_app()

_MAX_REASON = 300
_LONGEST_PAUSE_SECONDS = 3600.0
_TEXTS = {
    "queued": "queued",
    "would_queue": "would be queued",
    "working": "is being worked on",
    "claimed_elsewhere": "is claimed by another worker",
    "not_allowed": "is ignored",
    "stopped": "was stopped",
    "reported": "needs a person",
    "finished": "is finished",
    "lost": "was taken over by another worker",
    "unavailable": "cannot be used",
}


@app.command()
def intake(
    context: typer.Context,
    once: Annotated[
        bool, typer.Option("--once", help="Look once and exit, which is the default.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again and again until Ctrl-C.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be queued; change nothing.")
    ] = False,
    label: Annotated[
        str,
        typer.Option(
            "--label",
            metavar="NAME",
            help="Take issues with this label instead of the one in podium.yaml.",
        ),
    ] = "",
) -> None:
    """Turn labelled GitHub issues into queued runs, each claimed once among all machines.

    Takes open issues with the label `podium` whose author, and whoever added the label, may ask for work. Also renews the
    claims of runs that live, cancels runs of issues with the label `podium:stop`, and comments on issues whose run
    ended or needs a person. `podium worker` or `podium serve` runs what is queued. Labels and accounts are set under
    `flows: pipeline: intake:` in podium.yaml.

    With --json, prints one object per look.

    \b
    Example:
      podium intake --dry-run
      podium intake
      podium intake --watch
    """
    if once and watch:
        raise BadInput("pass either --once or --watch")
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> None:
        from podium.jobs.pipeline.intake import IssueIntake
        from podium.jobs.pipeline.spec import pipeline_spec

        intake = await IssueIntake.open(podium, label=label, dry_run=dry_run)
        pause = float(pipeline_spec(podium.configuration).intake.interval_seconds)
        while True:
            try:
                _show(cli, await intake.look(), intake.queue, dry_run=dry_run)
                seconds = pause
            except (Passing, LockHeld) as error:
                if not watch:
                    raise
                cli.screen.stderr_line(f"podium: {error}")
                seconds = _seconds_until(podium, error, pause)
            if not watch:
                return
            await asyncio.sleep(seconds)

    cli.run(work)


def _seconds_until(podium: Podium, error: Exception, pause: float) -> float:
    at = error.retry_at if isinstance(error, Passing) else None
    left = (at - podium.clock.now()).total_seconds() if at else 0.0
    return min(max(left, pause), _LONGEST_PAUSE_SECONDS)


def _show(cli: CliContext, items: list[IntakeItem], queue: str, *, dry_run: bool) -> None:
    def render() -> None:
        for item in items:
            cli.screen.line(_line(item))
        queued = sum(item.action == "queued" for item in items)
        if queued:
            cli.screen.line(
                f"{counted(queued, 'run')} queued; `podium worker --queue {queue} --once` runs them"
            )
        elif not items:
            cli.screen.line("no issues to work on")

    record = {"dry_run": dry_run, "issues": [item.model_dump(mode="json") for item in items]}
    cli.screen.answer(record, render)


def _line(item: IntakeItem) -> str:
    title = f" {escaped_line(item.title)}" if item.title else ""
    reason = f": {escaped_line(item.reason, _MAX_REASON)}" if item.reason else ""
    run = f" (run {item.run})" if item.run else ""
    edited = "; the issue was edited since, see `podium show`" if item.edited else ""
    return f"#{item.number}{title} {_TEXTS[item.action]}{run}{reason}{edited}"
