"""Subcommands `send`, `retry` and `queue`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.work_request import QueueSlot
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.detached_run import Handover, ensure_served
from podium.cli.run_host import host
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.work import Run, RunStatus
from podium.jobs.duet.claims import refuse_ungranted
from podium.jobs.duet.commands.pair_options import (
    EnvFileOption,
    PairOption,
    TaskArgument,
    must_have_tasks,
    pair_in_use,
    variables_of,
)
from podium.jobs.duet.models import DUET, DuetJob
from podium.jobs.duet.pairs import MAIN, duet_limits, duet_queue
from podium.jobs.duet.task_control import MAX_TASK_BYTES, checked_task, queued_duet
from podium.jobs.duet.task_table import DuetTask, find_duet, list_duets, with_hosts
from podium.render.text import counted, safe_line


def send(
    context: typer.Context,
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="Task for the pair; `-` reads it from stdin.")
    ],
    pair: PairOption = MAIN,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=100, help="Maximum number of plans.")
    ] = None,
    env_file: EnvFileOption = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Keep the process running while it waits for a person.")
    ] = False,
) -> None:
    """Send a task to a pair: the planner plans it, the executer carries it out, the planner reports.

    The pair is started if it is not up. Prints every message that is passed on, then the report and
    `DONE: True`. Ctrl-C interrupts the working program and leaves the task at its checkpoint; both programs
    stay up, and `podium resume` continues. POLI_PLAN_TIMEOUT and POLI_EXEC_TIMEOUT are the limits for a plan
    and for a result, in seconds.

    Exits with 0 when the planner reported, 3 when a person is needed, 6 when time ran out, 7 when the pair
    is busy. With --json, prints one object per line: `launch`, every event, `result`.

    \b
    Example:
      podium duet send "Read README.md, then write and run a matching script"
      podium duet send - --json < task.md
    """
    cli = CliContext(context.obj)
    text = task_text(task)
    variables = variables_of(env_file)

    async def begin(podium: Podium) -> Run:
        resolved = pair_in_use(podium, pair, variables)
        refuse_ungranted(podium, resolved)
        limits = duet_limits(podium, variables)
        if rounds is not None:
            limits = limits.model_copy(update={"rounds": rounds})
        job = DuetJob(text=text, pairs=(resolved,), limits=limits)
        engine = await podium.hosting_engine()
        return await engine.start(
            DUET, job.model_dump(mode="json"), task=text, settings=cli.configuration.run_settings()
        )

    host(cli, begin, wait=wait)


def retry(
    context: typer.Context,
    task: TaskArgument = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Keep the process running while it waits for a person.")
    ] = False,
) -> None:
    """Repeat the last request of a task, under a new id. Default: the last task that did not succeed.

    \b
    Example:
      podium duet retry
      podium duet retry 9d1f5a6b --wait
    """
    cli = CliContext(context.obj)
    must_have_tasks(cli, task)

    async def begin(podium: Podium) -> Run:
        from podium.app.run_control import retry as go_again
        from podium.jobs.duet.task_table import find_duet

        store, engine = await podium.store(), await podium.hosting_engine()
        duet_task = await find_duet(store, task, ended=True)
        return await go_again(
            store, engine, duet_task.run_id, from_step=duet_task.hop_step, by=cli.user
        )

    host(cli, begin, wait=wait)


def task_text(argument: str) -> str:
    """Read the text of a task, from stdin for `-`. Raises `BadInput` if it is empty or too long."""
    return checked_task(sys.stdin.read(MAX_TASK_BYTES + 1) if argument == "-" else argument)


def tasks_in(file: Path) -> list[str]:
    """Read one task per line; empty lines and `#` comments are skipped."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{str(file)!r} cannot be read: {error}") from None
    tasks = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not tasks:
        raise BadInput(f"{str(file)!r} contains no tasks; write one per line")
    return tasks


app = command_app(group=True)


@app.callback()
def queue() -> None:
    """Queue tasks: one after another on one pair, or in parallel on several.

    \b
    Example:
      podium duet queue add "first" "second"
      podium duet queue list
    """


@app.command()
def add(
    context: typer.Context,
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK...", help="Task for a pair.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with one task per line.")
    ] = None,
    pairs: Annotated[
        str, typer.Option(metavar="A,B", help="Pairs that may take the tasks. Default: all pairs.")
    ] = "",
    priority: Annotated[int, typer.Option(help="Higher goes first.")] = 0,
    env_file: EnvFileOption = None,
) -> None:
    """Add tasks to the queue. A worker gives each free pair the next task.

    \b
    Example:
      podium duet queue add "Fix the typo in README" "Bump the version"
      podium duet queue add --file tasks.txt --pairs main,second
    """
    cli = CliContext(context.obj)
    texts = [task_text(task) for task in tasks or []] + (tasks_in(file) if file else [])
    if not texts:
        raise BadInput("no task given; pass TASK, or a file with --file")
    variables = variables_of(env_file)

    async def work(podium: Podium) -> tuple[list[Run], Handover]:
        named = [name.strip() for name in pairs.split(",") if name.strip()]
        job = queued_duet(podium, texts[0], named, variables)
        engine = await podium.hosting_engine()
        where = QueueSlot(queue=DUET, priority=priority).model_dump()
        runs = []
        for text in texts:
            job_input = job.model_copy(update={"text": text}).model_dump(mode="json")
            settings = cli.configuration.run_settings()
            runs.append(await engine.start(DUET, job_input, task=text, settings=settings, **where))
        queue = duet_queue(cli.configuration)
        return runs, await ensure_served(podium, runs[0], queue)

    runs, done = cli.run(work)
    record = {
        "tasks": [run.id for run in runs],
        **done.model_dump(mode="json", exclude={"run", "others"}),
    }

    def render() -> None:
        by = (
            f"worker {done.worker_pid} was started"
            if done.worker_pid
            else "a worker is already running"
        )
        cli.screen.line(f"{counted(len(runs), 'task')} queued; {by}")
        cli.screen.line("see their status with `podium duet queue list --all`")

    cli.screen.answer(record, render)


@app.command("list")
def list_tasks(
    context: typer.Context,
    ended: Annotated[bool, typer.Option("--all", help="Include tasks that have ended.")] = False,
) -> None:
    """List queued and running tasks.

    \b
    Example:
      podium duet queue list --all
      podium duet queue list --json
    """
    cli = CliContext(context.obj, lenient=True)

    async def work(podium: Podium) -> list[DuetTask]:
        tasks = await list_duets(await podium.store(), also_ended=ended)
        return await with_hosts(tasks, podium.engine)

    tasks = cli.run(work) if cli.has_state else []

    def render() -> None:
        if not tasks:
            cli.screen.line("no tasks in the queue")
            return
        rows = [
            (task.task_id, task.pair or "-", task.shown_status, safe_line(task.text, 80))
            for task in tasks
        ]
        cli.screen.table(("TASK", "PAIR", "STATUS", "TEXT"), rows)

    cli.screen.answer({"tasks": [task.model_dump(mode="json") for task in tasks]}, render)


@app.command()
def remove(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Id of the task, or a short form.")],
) -> None:
    """Remove a task from the queue. End a task that has started with `podium duet abort`.

    \b
    Example:
      podium duet queue remove 9d1f5a6b
      podium duet queue remove 9d1f5a6b --json
    """
    cli = CliContext(context.obj)
    cli.must_have_state("run", task)

    async def work(podium: Podium) -> DuetTask:
        from podium.app.run_control import cancel

        store, engine = await podium.store(), await podium.engine()
        duet_task = await find_duet(store, task)
        if duet_task.status is not RunStatus.QUEUED:
            raise NotPossibleNow(
                f"task {duet_task.task_id} is {duet_task.status.value}, not queued; end an open task with "
                f"`podium duet abort {duet_task.task_id}`"
            )
        await cancel(store, engine, duet_task.run_id, by=cli.user, why="removed from the queue")
        return await find_duet(store, duet_task.run_id)

    duet_task = cli.run(work)
    cli.screen.answer(
        duet_task.model_dump(mode="json"),
        lambda: cli.screen.line(f"removed task {duet_task.task_id} from the queue"),
    )
