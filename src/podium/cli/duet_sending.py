"""`podium duet send` and `retry`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.door import Door
from podium.cli.duet_pairing import (
    MAIN,
    EnvFileOption,
    PairOption,
    TaskArgument,
    must_have_tasks,
    pair_in_use,
    variables_of,
)
from podium.cli.hosting import host
from podium.domain.duets import DUET, DuetJob
from podium.domain.errors import BadInput
from podium.domain.work import Run
from podium.wiring import Podium
from podium.wiring.duet_grants import refuse_ungranted
from podium.wiring.duet_jobs import LARGEST_TASK_BYTES, checked_task
from podium.wiring.duet_pairs import duet_limits


def send(
    context: typer.Context,
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="What is to be done; `-` reads it from stdin.")
    ],
    pair: PairOption = MAIN,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=100, help="Plans that the planner may make.")
    ] = None,
    env_file: EnvFileOption = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay also while it waits for a person.")
    ] = False,
) -> None:
    """Hand a task to a pair: the planner plans it, the executer carries it out, the planner reports.

    The pair is brought up when it is not. Shows every message as it is handed on, prints the report and
    `DONE: True`. Ctrl-C interrupts the program that is at work and leaves the task at its checkpoint; both programs
    stay up, and `podium resume` goes on. POLI_PLAN_TIMEOUT and POLI_EXEC_TIMEOUT are the seconds that a plan and a result may take.

    Leaves with 0 when the planner reported, 3 when a person is needed, 6 when time ran out, 7 when the pair
    is at work. With --json one object to a line: `launch`, every event, `result`.

    \b
    Example:
      podium duet send "Read README.md, then write and run a matching script"
      podium duet send - --json < task.md
    """
    door = Door(context.obj)
    text = task_text(task)
    variables = variables_of(env_file)

    async def begin(podium: Podium) -> Run:
        wanted = pair_in_use(podium, pair, variables)
        refuse_ungranted(podium, wanted)
        limits = duet_limits(podium, variables)
        if rounds is not None:
            limits = limits.model_copy(update={"rounds": rounds})
        job = DuetJob(text=text, pairs=(wanted,), limits=limits)
        engine = await podium.hosting_engine()
        return await engine.start(
            DUET, job.model_dump(mode="json"), task=text, settings=door.configuration.terms()
        )

    host(door, begin, wait=wait)


def retry(
    context: typer.Context,
    task: TaskArgument = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay also while it waits for a person.")
    ] = False,
) -> None:
    """Ask the last leg of a task again, under a new id. Without TASK it is the last that did not succeed.

    \b
    Example:
      podium duet retry
    """
    door = Door(context.obj)
    must_have_tasks(door, task)

    async def begin(podium: Podium) -> Run:
        from podium.usecases import find_duet
        from podium.usecases import retry as go_again

        store, engine = await podium.store(), await podium.hosting_engine()
        found = await find_duet(store, task, ended=True)
        return await go_again(store, engine, found.run_id, from_step=found.leg_step, by=door.user)

    host(door, begin, wait=wait)


def task_text(given: str) -> str:
    """The task's words. Raises `BadInput` for none, or too many."""
    return checked_task(sys.stdin.read(LARGEST_TASK_BYTES + 1) if given == "-" else given)


def tasks_in(file: Path) -> list[str]:
    """One task to a line; empty lines and those with `#` first are left out."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{str(file)!r} cannot be read: {error}") from None
    tasks = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not tasks:
        raise BadInput(f"{str(file)!r} has no task in it; write one to a line")
    return tasks
