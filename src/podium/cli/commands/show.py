"""`podium show`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.pipeline_report import FLOW as PIPELINE
from podium.cli.pipeline_report import LookBack, look_back, show_report
from podium.cli.screen import Screen
from podium.domain.gating import Usage
from podium.domain.ids import short_id
from podium.domain.work import WorkerBeat
from podium.telling.approval_words import what_line
from podium.telling.event_words import about, event_line, shorten, usage_words
from podium.telling.wording import counted, moment
from podium.usecases import RunReport, Standing, how_they_stand, left_alone, show_run
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
    door = Door(context.obj, lenient=True)
    door.must_have_state("run", run)

    async def work(podium: Podium) -> tuple[RunReport, Standing, LookBack | None, str]:
        store = await podium.store()
        report = await show_run(store, run, last_events=events)
        (stands,) = await how_they_stand([report.run], podium.engine)
        left = {each.id: says for each, says in await left_alone(store, podium.engine)}
        staged = report.run.flow == PIPELINE
        back = await look_back(podium, report.run) if staged else None
        return report, stands, back, left.get(report.run.id, "")

    report, stands, back, answered = door.run(work)
    stages = {} if back is None else {"stages": back.passage.record()}
    record = {**report.record(), "run": stands.record(), **stages}
    door.screen.answer(record, lambda: _words(door.screen, report, stands, back))
    if stands.interrupted and not door.screen.json:
        door.screen.aside(f"nobody hosts it: `podium resume {short_id(report.run.id)}` goes on")
    if answered and not door.screen.json:
        door.screen.aside(f"answered, but {answered}")


def _words(screen: Screen, report: RunReport, stands: Standing, back: LookBack | None) -> None:
    screen.facts(_facts(report, stands))
    if back is not None:
        screen.line()
        show_report(screen, report.run, back)
    if report.steps:
        screen.line("\nsteps")
        screen.table(
            ("STEP", "STATUS", "TRIES", "AGENT", "FINISHED"),
            [
                (
                    shorten(step.key),
                    step.status.value,
                    str(step.attempts),
                    ", ".join(report.work.agents.get(step.key, ())),
                    moment(step.finished_at),
                )
                for step in report.steps
            ],
        )
    if report.calls:
        screen.line("\ncalls")
        screen.table(
            ("CALL", "WHAT", "STATUS", "TIER", "RULE", "RECEIPT"),
            [
                (
                    call.key.replace(report.run.id, short_id(report.run.id), 1),
                    f"{call.tool} {about(call.arguments)}".rstrip(),
                    call.status.value,
                    str(call.decision.tier),
                    shorten(call.decision.rule),
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
                    what_line(one),
                )
                for one in report.approvals
            ],
        )
    if report.events:
        screen.line("\nlast events")
        for event in report.events:
            screen.line(event_line(event))


def _facts(report: RunReport, stands: Standing) -> list[tuple[str, str]]:
    run = report.run
    failure = f"{run.failure.kind}: {run.failure.message}" if run.failure else ""
    return [
        ("run", run.id),
        ("flow", f"{run.flow} v{run.flow_version}"),
        ("task", run.task),
        ("status", stands.shown_status + (" (cancel requested)" if run.cancel_requested else "")),
        ("in flight", ", ".join(report.in_flight)),
        ("waits for", run.waiting_for or ""),
        ("created", moment(run.created_at)),
        ("finished", moment(run.finished_at)),
        ("cost", _cost(report)),
        ("owner", _owner(run.owner, report.owner, alive=stands.hosted) if run.owner else ""),
        ("queue", run.queue or ""),
        ("failure", failure),
    ]


def _cost(report: RunReport) -> str:
    """What was used, by how many answers and calls, and by whom where there were several."""
    work = report.work
    if work.usage == Usage():
        return ""
    counts = [
        counted(number, what)
        for number, what in ((work.model_answers, "model answer"), (work.calls, "call"))
        if number
    ]
    several = work.used_by if len(work.used_by) > 1 else {}
    shares = [f"{name} ${used.usd:.4f}" for name, used in several.items()]
    return "; ".join([usage_words(work.usage), *counts, *shares])


def _owner(owner: str, beat: WorkerBeat | None, *, alive: bool) -> str:
    where = f", process {beat.pid} on {beat.host}" if beat else ""
    return f"{owner} ({'alive' if alive else 'gone'}{where})"
