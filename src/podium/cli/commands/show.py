"""`podium show`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.event_words import event_line
from podium.cli.screen import Screen, moment
from podium.domain.ids import short_id
from podium.domain.work import Run
from podium.usecases import RunReport, show_run
from podium.wiring import Podium

app = command_app()


@app.command()
def show(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    events: Annotated[int, typer.Option("--events", min=0, help="How many last events.")] = 10,
) -> None:
    """Show a run: its steps, calls, approvals and last events.

    \b
    Example:
      podium show 9d1f5a6b
    """
    door = Door(context.obj)
    door.must_have_state("run", run)

    async def work(podium: Podium) -> RunReport:
        return await show_run(await podium.store(), run, last_events=events)

    report = door.run(work)
    door.screen.answer(report.record(), lambda: _words(door.screen, report))


def _words(screen: Screen, report: RunReport) -> None:
    screen.facts(_facts(report.run))
    if report.steps:
        screen.line("\nsteps")
        screen.table(
            ("STEP", "STATUS", "TRIES", "FINISHED"),
            [
                (step.key, step.status.value, str(step.attempts), moment(step.finished_at))
                for step in report.steps
            ],
        )
    if report.calls:
        screen.line("\ncalls")
        screen.table(
            ("CALL", "TOOL", "STATUS", "TIER", "RULE", "RECEIPT"),
            [
                (
                    call.key.removeprefix(f"{report.run.id}:"),
                    call.tool,
                    call.status.value,
                    str(call.decision.tier),
                    call.decision.rule,
                    str(call.receipt_number or ""),
                )
                for call in report.calls
            ],
        )
    if report.approvals:
        screen.line("\napprovals")
        screen.table(
            ("APPROVAL", "STATUS", "TIER", "DEADLINE", "WHAT"),
            [
                (
                    short_id(one.id),
                    one.status.value,
                    str(one.tier),
                    moment(one.deadline),
                    one.summary,
                )
                for one in report.approvals
            ],
        )
    if report.events:
        screen.line("\nlast events")
        for event in report.events:
            screen.line(event_line(event))


def _facts(run: Run) -> list[tuple[str, str]]:
    failure = f"{run.failure.kind}: {run.failure.message}" if run.failure else ""
    return [
        ("run", run.id),
        ("flow", f"{run.flow} v{run.flow_version}"),
        ("task", run.task),
        ("status", run.status.value + (" (cancel requested)" if run.cancel_requested else "")),
        ("waits for", run.waiting_for or ""),
        ("created", moment(run.created_at)),
        ("finished", moment(run.finished_at)),
        ("owner", run.owner or ""),
        ("queue", run.queue or ""),
        ("failure", failure),
    ]
