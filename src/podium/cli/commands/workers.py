"""Commands `podium workers` and `queues`."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from podium.app.app import Podium
from podium.app.work_request import queues_of
from podium.app.workload import QueueSeen, QueuesSeen, WorkersSeen, see_queues, see_workers
from podium.cli.app import command_app
from podium.cli.context import Door
from podium.core.work import QueueCounts, QueueSpec
from podium.render.text import counted, safe_line
from podium.render.work_tables import dead_lines, held_rows, limits_text, queue_rows, worker_rows

app = command_app()


@app.command()
def workers(context: typer.Context) -> None:
    """List workers, the runs of each, and runs whose worker is gone.

    RUNS is how many it works on and has room for; LOAD is of its host, for each core.

    \b
    Example:
      podium workers
      podium workers --json
    """
    door = Door(context.obj, lenient=True)
    seen = WorkersSeen(at=datetime.now(UTC))
    if door.has_state:

        async def work(podium: Podium) -> WorkersSeen:
            return await see_workers(await podium.store(), podium.engine)

        seen = door.run(work)
    door.screen.answer(seen.model_dump(mode="json"), lambda: _print_workers(door, seen))


def _print_workers(door: Door, seen: WorkersSeen) -> None:
    living = worker_rows(seen.workers, seen.at)
    if living.rows:
        door.screen.table(*living)
    else:
        door.screen.aside("no worker is alive; `podium worker` starts one")
    held = held_rows(seen.workers, seen.at)
    if held.rows:
        door.screen.line()
        door.screen.table(*held)
    for worker in seen.workers:
        if not worker.alive:
            door.screen.line()
            for line in dead_lines(worker, seen.at):
                door.screen.line(line)


queues_app = command_app()


@queues_app.command()
def queues(context: typer.Context) -> None:
    """List queues: waiting runs, throughput, limits and workers.

    RUNNING is shown against the queue's limit where it has one. /MIN counts the runs that ended
    within the last minute; OLDEST is how long the first that could start has waited.

    \b
    Example:
      podium queues
      podium queues --json
    """
    door = Door(context.obj, lenient=True)
    specs = queue_specs(door)
    seen = QueuesSeen(
        at=datetime.now(UTC),
        queues=tuple(
            QueueSeen(spec=spec, configured=True, tally=QueueCounts(queue=spec.name))
            for spec in specs
        ),
    )
    if door.has_state:

        async def work(podium: Podium) -> QueuesSeen:
            return await see_queues(await podium.store(), podium.engine, specs)

        seen = door.run(work)
    at = seen.at.isoformat()
    record = {"at": at, "queues": [each.record() for each in seen.queues]}
    door.screen.answer(record, lambda: _print_queues(door, seen))


def queue_specs(door: Door) -> tuple[QueueSpec, ...]:
    return queues_of(door.configuration)


def _print_queues(door: Door, seen: QueuesSeen) -> None:
    door.screen.table(*queue_rows(seen.queues, seen.at))
    door.screen.line()
    limits = [(safe_line(each.name), limits_text(each.spec)) for each in seen.queues]
    door.screen.facts(limits)
    for each in seen.queues:
        if each.trouble:
            door.screen.aside(each.trouble)
    people = sum(each.tally.needs_human for each in seen.queues)
    if people:
        which = "`podium runs --status needs_human` lists them"
        door.screen.aside(f"{counted(people, 'run')} for a person: {which}")
