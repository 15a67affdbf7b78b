"""Subcommands `status`, `abort` and `nudge`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.context import Door
from podium.cli.screen import Screen
from podium.core.turns import Side
from podium.jobs.duet.commands.pair_options import TaskArgument, must_have_tasks, variables_of
from podium.jobs.duet.commands.pair_terminals import open_terminals, print_pair_status
from podium.jobs.duet.models import Pair, PairStatus
from podium.jobs.duet.project_terminals import absent_pair_status, is_served, pair_status
from podium.jobs.duet.task_control import abort_task, nudge_task, pairs_in_use
from podium.jobs.duet.task_table import DuetTask, list_duets, with_hosts
from podium.render.text import local_time, safe_line


def status(context: typer.Context) -> None:
    """Show every pair, how both sides stand, and the state table: which task awaits what from whom.

    \b
    Example:
      podium duet status --json
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> tuple[list[PairStatus], list[DuetTask]]:
        pairs = pairs_in_use(podium, variables_of(None))
        statuses = await _statuses(podium, door.screen, pairs)
        tasks = await list_duets(await podium.store()) if podium.has_record else []
        return statuses, await with_hosts(tasks, podium.engine)

    statuses, tasks = door.run(work)
    record = {
        "pairs": [pair.model_dump(mode="json") for pair in statuses],
        "tasks": [task.model_dump(mode="json") for task in tasks],
    }
    door.screen.answer(record, lambda: _print(door.screen, statuses, tasks))


def abort(
    context: typer.Context,
    task: TaskArgument = "",
    why: Annotated[str, typer.Option("--why", help="The reason, for the record.")] = "",
) -> None:
    """End a task: whoever works on it is interrupted by its own keys, and stays up.

    \b
    Example:
      podium duet abort --why "wrong folder"
    """
    door = Door(context.obj)
    must_have_tasks(door, task)

    async def work(podium: Podium) -> DuetTask:
        return await abort_task(podium, task, by=door.user, why=why)

    duet_task = door.run(work)
    door.screen.answer(
        duet_task.model_dump(mode="json"),
        lambda: door.screen.line(f"task {duet_task.task_id} {duet_task.status.value}"),
    )


def nudge(
    context: typer.Context,
    task: TaskArgument = "",
    text: Annotated[
        str, typer.Option("--say", metavar="TEXT", help="Instead of our own words.")
    ] = "",
) -> None:
    """Remind the side that owes a message of it. One that is busy is left alone.

    \b
    Example:
      podium duet nudge
    """
    door = Door(context.obj)
    must_have_tasks(door, task)

    async def work(podium: Podium) -> tuple[DuetTask, Side]:
        return await nudge_task(podium, task, text)

    duet_task, side = door.run(work)
    record = {"task": duet_task.task_id, "side": side}
    door.screen.answer(
        record, lambda: door.screen.line(f"{side} was reminded of task {duet_task.task_id}")
    )


async def _statuses(podium: Podium, screen: Screen, pairs: list[Pair]) -> list[PairStatus]:
    if all(pair.transport == "headless" for pair in pairs):
        return [await pair_status(podium, pair) for pair in pairs]
    absent = [] if is_served(podium) else [absent_pair_status(podium, pair) for pair in pairs]
    if absent and None not in absent:
        return [status for status in absent if status is not None]
    async with open_terminals(podium, screen) as terminals:
        return [await pair_status(podium, pair, terminals) for pair in pairs]


def _print(screen: Screen, statuses: list[PairStatus], tasks: list[DuetTask]) -> None:
    for status in statuses:
        print_pair_status(screen, status)
    if not tasks:
        screen.line("no open tasks")
        return
    rows = [
        (
            task.task_id,
            task.pair or "-",
            task.shown_status,
            task.leg.expected_from if task.leg else "-",
            " or ".join(task.leg.expected) if task.leg else "-",
            local_time(task.since),
            safe_line(task.text, 60),
        )
        for task in tasks
    ]
    headers = ("TASK", "PAIR", "STATUS", "EXPECTED FROM", "EXPECTED", "SINCE", "WORDS")
    screen.table(headers, rows)
