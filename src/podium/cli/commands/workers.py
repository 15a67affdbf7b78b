"""Commands `podium workers` and `queues`."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from podium.app.app import Podium
from podium.app.work_request import queues_of
from podium.app.workload import QueueSeen, QueuesSeen, WorkersSeen, see_queues, see_workers
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.core.work import QueueCounts, QueueSpec
from podium.render.text import counted, safe_line
from podium.render.work_tables import dead_lines, held_rows, limits_text, queue_rows, worker_rows

app = command_app()


@app.command()
def workers(context: typer.Context) -> None:
    """List workers, the runs of each, and runs whose worker is gone.

    RUNS is the number of runs and slots; LOAD is the load of its host per core.

    \b
    Example:
      podium workers
      podium workers --json
    """
    cli = CliContext(context.obj, lenient=True)
    overview = WorkersSeen(at=datetime.now(UTC))
    if cli.has_state:

        async def work(podium: Podium) -> WorkersSeen:
            return await see_workers(await podium.store(), podium.engine)

        overview = cli.run(work)
    cli.screen.answer(overview.model_dump(mode="json"), lambda: _print_workers(cli, overview))


def _print_workers(cli: CliContext, overview: WorkersSeen) -> None:
    living = worker_rows(overview.workers, overview.at)
    if living.rows:
        cli.screen.table(*living)
    else:
        cli.screen.stderr_line("no workers; start one with `podium worker`")
    held = held_rows(overview.workers, overview.at)
    if held.rows:
        cli.screen.line()
        cli.screen.table(*held)
    for worker in overview.workers:
        if not worker.alive:
            cli.screen.line()
            for line in dead_lines(worker, overview.at):
                cli.screen.line(line)


queues_app = command_app()


@queues_app.command()
def queues(context: typer.Context) -> None:
    """List queues: waiting runs, throughput, limits and workers.

    RUNNING is shown with the queue's limit if any. /MIN counts the runs that ended
    in the last minute; OLDEST is the waiting time of the first run that could start.

    \b
    Example:
      podium queues
      podium queues --json
    """
    cli = CliContext(context.obj, lenient=True)
    specs = queue_specs(cli)
    overview = QueuesSeen(
        at=datetime.now(UTC),
        queues=tuple(
            QueueSeen(spec=spec, configured=True, tally=QueueCounts(queue=spec.name))
            for spec in specs
        ),
    )
    if cli.has_state:

        async def work(podium: Podium) -> QueuesSeen:
            return await see_queues(await podium.store(), podium.engine, specs)

        overview = cli.run(work)
    at = overview.at.isoformat()
    record = {"at": at, "queues": [queue.record() for queue in overview.queues]}
    cli.screen.answer(record, lambda: _print_queues(cli, overview))


def queue_specs(cli: CliContext) -> tuple[QueueSpec, ...]:
    return queues_of(cli.configuration)


def _print_queues(cli: CliContext, overview: QueuesSeen) -> None:
    cli.screen.table(*queue_rows(overview.queues, overview.at))
    cli.screen.line()
    limits = [(safe_line(queue.name), limits_text(queue.spec)) for queue in overview.queues]
    cli.screen.facts(limits)
    for queue in overview.queues:
        if queue.trouble:
            cli.screen.stderr_line(queue.trouble)
    people = sum(queue.tally.needs_human for queue in overview.queues)
    if people:
        which = "list them with `podium runs --status needs_human`"
        cli.screen.stderr_line(
            f"{counted(people, 'run')} {'needs' if people == 1 else 'need'} a person; {which}"
        )
