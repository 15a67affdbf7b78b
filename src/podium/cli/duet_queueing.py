"""`podium duet queue`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.detaching import HandedOver, see_that_it_is_served
from podium.cli.door import Door
from podium.cli.duet_pairing import EnvFileOption, variables_of
from podium.cli.duet_sending import task_text, tasks_in
from podium.domain.duets import DUET
from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.work import Run, RunStatus
from podium.telling.untrusted import safe_line
from podium.telling.wording import counted
from podium.usecases import DuetTask, find_duet, see_duets, with_hosts
from podium.wiring import Podium
from podium.wiring.duet_jobs import queued_duet
from podium.wiring.duet_pairs import duet_queue
from podium.wiring.queues import Place

app = command_app(group=True)


@app.callback()
def queue() -> None:
    """Many tasks: one after the other, or at once over several pairs.

    \b
    Example:
      podium duet queue add "first" "second"
      podium duet queue list
    """


@app.command()
def add(
    context: typer.Context,
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK...", help="What is to be done.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Tasks of a file, one to a line.")
    ] = None,
    pairs: Annotated[
        str, typer.Option(metavar="A,B", help="Pairs that may do them. Else every pair there is.")
    ] = "",
    priority: Annotated[int, typer.Option(help="Higher goes first.")] = 0,
    env_file: EnvFileOption = None,
) -> None:
    """Put tasks in the queue. Each pair takes the next when it is free; a worker sees to it.

    \b
    Example:
      podium duet queue add "Fix the typo in README" "Bump the version"
      podium duet queue add --file tasks.txt --pairs main,second
    """
    door = Door(context.obj)
    words = [task_text(each) for each in tasks or []] + (tasks_in(file) if file else [])
    if not words:
        raise BadInput("there is no task; write TASK, or name a file with --file")
    variables = variables_of(env_file)

    async def work(podium: Podium) -> tuple[list[Run], HandedOver]:
        named = [name.strip() for name in pairs.split(",") if name.strip()]
        job = queued_duet(podium, words[0], named, variables)
        engine = await podium.hosting_engine()
        where = Place(queue=DUET, priority=priority).model_dump()
        runs = []
        for text in words:
            told = job.model_copy(update={"text": text}).model_dump(mode="json")
            terms = door.configuration.terms()
            runs.append(await engine.start(DUET, told, task=text, settings=terms, **where))
        queue = duet_queue(door.configuration)
        return runs, await see_that_it_is_served(podium, runs[0], queue)

    runs, done = door.run(work)
    record = {
        "tasks": [run.id for run in runs],
        **done.model_dump(mode="json", exclude={"run", "others"}),
    }

    def say() -> None:
        by = f"worker {done.worker_pid} was started" if done.worker_pid else "a worker serves it"
        door.screen.line(f"{counted(len(runs), 'task')} queued; {by}")
        door.screen.line(
            "`podium duet queue list --all` shows how they stand, and those that are done"
        )

    door.screen.answer(record, say)


@app.command("list")
def list_tasks(
    context: typer.Context,
    ended: Annotated[bool, typer.Option("--all", help="Also those that have ended.")] = False,
) -> None:
    """List the tasks of the queue and those that go on.

    \b
    Example:
      podium duet queue list --all
    """
    door = Door(context.obj, lenient=True)

    async def work(podium: Podium) -> list[DuetTask]:
        tasks = await see_duets(await podium.store(), also_ended=ended)
        return await with_hosts(tasks, podium.engine)

    tasks = door.run(work) if door.has_state else []

    def words() -> None:
        if not tasks:
            door.screen.line("no task waits")
            return
        rows = [
            (each.task_id, each.pair or "-", each.shown_status, safe_line(each.text, 80))
            for each in tasks
        ]
        door.screen.table(("TASK", "PAIR", "STATUS", "WORDS"), rows)

    door.screen.answer({"tasks": [each.model_dump(mode="json") for each in tasks]}, words)


@app.command()
def remove(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Id of the task, or a short form.")],
) -> None:
    """Take a task out of the queue. One that has begun is ended with `podium duet abort`.

    \b
    Example:
      podium duet queue remove 9d1f5a6b
    """
    door = Door(context.obj)
    door.must_have_state("run", task)

    async def work(podium: Podium) -> DuetTask:
        from podium.usecases import cancel

        store, engine = await podium.store(), await podium.engine()
        found = await find_duet(store, task)
        if found.status is not RunStatus.QUEUED:
            raise NotPossibleNow(
                f"task {found.task_id} is {found.status.value}, not in the queue; "
                f"`podium duet abort {found.task_id}` ends one that goes on"
            )
        await cancel(store, engine, found.run_id, by=door.user, why="taken out of the queue")
        return await find_duet(store, found.run_id)

    found = door.run(work)
    door.screen.answer(
        found.model_dump(mode="json"),
        lambda: door.screen.line(f"task {found.task_id} is out of the queue"),
    )
