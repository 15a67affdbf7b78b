"""`podium queues`."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.seeing_words import limit_words, queue_rows
from podium.domain.work import QueueSpec, QueueTally
from podium.telling.untrusted import safe_line
from podium.telling.wording import counted
from podium.usecases import QueueSeen, QueuesSeen, see_queues
from podium.wiring import Podium
from podium.wiring.queues import queues_of

app = command_app()


@app.command()
def queues(context: typer.Context) -> None:
    """List the queues: what waits in each, how it goes, its limits and how many serve it.

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
            QueueSeen(spec=spec, configured=True, tally=QueueTally(queue=spec.name))
            for spec in specs
        ),
    )
    if door.has_state:

        async def work(podium: Podium) -> QueuesSeen:
            return await see_queues(await podium.store(), podium.engine, specs)

        seen = door.run(work)
    at = seen.at.isoformat()
    record = {"at": at, "queues": [each.record() for each in seen.queues]}
    door.screen.answer(record, lambda: _tell(door, seen))


def queue_specs(door: Door) -> tuple[QueueSpec, ...]:
    return queues_of(door.configuration)


def _tell(door: Door, seen: QueuesSeen) -> None:
    door.screen.table(*queue_rows(seen.queues, seen.at))
    door.screen.line()
    limits = [(safe_line(each.name), limit_words(each.spec)) for each in seen.queues]
    door.screen.facts(limits)
    for each in seen.queues:
        if each.trouble:
            door.screen.aside(each.trouble)
    people = sum(each.tally.needs_human for each in seen.queues)
    if people:
        which = "`podium runs --status needs_human` lists them"
        door.screen.aside(f"{counted(people, 'run')} for a person: {which}")
