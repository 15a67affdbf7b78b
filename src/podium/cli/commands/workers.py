"""`podium workers`."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.seeing_words import dead_lines, held_rows, worker_rows
from podium.usecases import WorkersSeen, see_workers
from podium.wiring import Podium

app = command_app()


@app.command()
def workers(context: typer.Context) -> None:
    """List the workers alive, what each holds, and what dead ones left behind.

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
    door.screen.answer(seen.model_dump(mode="json"), lambda: _tell(door, seen))


def _tell(door: Door, seen: WorkersSeen) -> None:
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
