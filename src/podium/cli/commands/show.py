"""Commands `podium show` and `logs`."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated, Protocol

import typer

from podium.app.app import Podium
from podium.app.run_continuation import left_alone
from podium.app.run_list import RunListing, with_host_status
from podium.app.run_report import RunReport, follow_logs, show_run
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.core.decisions import Usage
from podium.core.events import Event
from podium.core.ids import short_id
from podium.core.job import job_of_flow, load
from podium.core.model import Json
from podium.core.work import Run, WorkerHeartbeat
from podium.render.approval import what_line
from podium.render.event import about, event_line, shorten, usage_text
from podium.render.text import counted, local_time


class RunSection(Protocol):
    """Part of `podium show` that the job of a run adds."""

    def record(self) -> dict[str, Json]:
        """Keys that it adds to the JSON."""
        ...

    def show(self, screen: Screen, run: Run) -> None: ...


app = command_app()


@app.command()
def show(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    events: Annotated[int, typer.Option("--events", min=0, help="Number of last events.")] = 10,
) -> None:
    """Show a run: its steps, calls, approvals and last events.

    \b
    Example:
      podium show 9d1f5a6b
      podium show 9d1f5a6b --events 50
    """
    cli = CliContext(context.obj, lenient=True)
    cli.must_have_state("run", run)

    async def work(podium: Podium) -> tuple[RunReport, RunListing, RunSection | None, str]:
        store = await podium.store()
        report = await show_run(store, run, last_events=events)
        (status,) = await with_host_status([report.run], podium.engine)
        left = {left_run.id: says for left_run, says in await left_alone(store, podium.engine)}
        job = job_of_flow(report.run.flow)
        section = await load(job.report)(podium, report.run) if job and job.report else None
        return report, status, section, left.get(report.run.id, "")

    report, status, section, answered = cli.run(work)
    added = {} if section is None else section.record()
    record = {**report.record(), "run": status.record(), **added}
    cli.screen.answer(record, lambda: _print(cli.screen, report, status, section))
    if status.interrupted and not cli.screen.json:
        cli.screen.stderr_line(
            f"not hosted; continue with `podium resume {short_id(report.run.id)}`"
        )
    if answered and not cli.screen.json:
        cli.screen.stderr_line(f"answered, but {answered}")


def _print(
    screen: Screen, report: RunReport, status: RunListing, section: RunSection | None
) -> None:
    screen.facts(_facts(report, status))
    if section is not None:
        screen.line()
        section.show(screen, report.run)
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
                    local_time(step.finished_at),
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
                    local_time(one.deadline),
                    what_line(one),
                )
                for one in report.approvals
            ],
        )
    if report.events:
        screen.line("\nlast events")
        for event in report.events:
            screen.line(event_line(event))


def _facts(report: RunReport, status: RunListing) -> list[tuple[str, str]]:
    run = report.run
    failure = f"{run.failure.kind}: {run.failure.message}" if run.failure else ""
    return [
        ("run", run.id),
        ("flow", f"{run.flow} v{run.flow_version}"),
        ("task", run.task),
        ("status", status.shown_status + (" (cancel requested)" if run.cancel_requested else "")),
        ("in flight", ", ".join(report.in_flight)),
        ("waits for", run.waiting_for or ""),
        ("created", local_time(run.created_at)),
        ("finished", local_time(run.finished_at)),
        ("cost", _cost(report)),
        ("owner", _owner(run.owner, report.owner, alive=status.hosted) if run.owner else ""),
        ("queue", run.queue or ""),
        ("failure", failure),
    ]


def _cost(report: RunReport) -> str:
    """Summarise usage, answers and calls, with shares where there were several agents."""
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
    return "; ".join([usage_text(work.usage), *counts, *shares])


def _owner(owner: str, heartbeat: WorkerHeartbeat | None, *, alive: bool) -> str:
    where = f", process {heartbeat.pid} on {heartbeat.host}" if heartbeat else ""
    return f"{owner} ({'alive' if alive else 'gone'}{where})"


logs_app = command_app()


@logs_app.command()
def logs(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing until the run has ended.")
    ] = False,
    tail: Annotated[
        int | None,
        typer.Option("--tail", min=0, metavar="N", help="Only the last N events."),
    ] = None,
) -> None:
    """Print a run's events, or follow them live.

    With --json, one object, or one per event when following.

    \b
    Example:
      podium logs 9d1f5a6b -f
      podium logs 9d1f5a6b --tail 20
    """
    cli = CliContext(context.obj, lenient=True)
    cli.must_have_state("run", run)
    screen = cli.screen
    gathering = screen.json and not follow
    gathered: list[Event] = []

    async def work(podium: Podium) -> RunListing:
        store = await podium.store()
        report = await show_run(store, run, last_events=0)
        (status,) = await with_host_status([report.run], podium.engine)
        if follow:
            _note_interrupted(screen, status)
        last = await store.read(lambda view: view.last_seq(report.run.id))
        after = 0 if tail is None else max(0, last - tail)
        logs = follow_logs(store, report.run.id, follow=follow, after_seq=after)
        async with aclosing(logs):  # type: ignore[type-var]  # it is an async generator
            async for event in logs:
                if gathering:
                    gathered.append(event)
                else:
                    screen.answer(event.line(), lambda: screen.line(event_line(event)))  # noqa: B023 - called at once
                if screen.reader_gone:
                    break
        return status

    status = cli.run(work)
    if gathering:
        how = {"shown_status": status.shown_status, "hosted": status.hosted}
        screen.record({"events": [event.line() for event in gathered], **how})
    elif not follow:
        _note_interrupted(screen, status)


def _note_interrupted(screen: Screen, status: RunListing) -> None:
    """Note that an interrupted run has no more events until it is resumed."""
    if status.interrupted:
        name = short_id(status.run.id)
        screen.stderr_line(f"run {name} is interrupted; continue with `podium resume {name}`")
