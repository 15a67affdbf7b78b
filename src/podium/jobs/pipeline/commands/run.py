"""Command `podium run`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.run_host import host
from podium.core.errors import BadInput
from podium.core.work import Run
from podium.jobs.pipeline.spec import FLOW

if TYPE_CHECKING:
    from podium.app.work_request import QueueSlot


app = command_app()

STDIN = "-"


@app.command()
def run(
    context: typer.Context,
    task: Annotated[
        str | None,
        typer.Argument(metavar="TASK", help="What to build or fix; `-` reads it from stdin."),
    ] = None,
    issue: Annotated[
        str,
        typer.Option(
            "--issue",
            metavar="NUMBER|URL",
            help="Take the task from this issue of the project's GitHub repository.",
        ),
    ] = "",
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="One of direct, quick, bugfix, research, thorough; see `podium help pipeline`.",
        ),
    ] = "direct",
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="Use this agent for every role.")
    ] = "",
    base: Annotated[
        str,
        typer.Option("--base", metavar="BRANCH", help="Branch to start from and to merge into."),
    ] = "",
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Keep the process running while the run waits for a person."),
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Hand the run to a worker in the background.")
    ] = False,
    queue: Annotated[
        str,
        typer.Option(
            "--queue",
            metavar="NAME",
            help="Hand the run to the workers of this queue. Implies --detach.",
        ),
    ] = "",
    priority: Annotated[
        int,
        typer.Option("--priority", metavar="N", help="Priority in the queue; higher goes first."),
    ] = 0,
    delay: Annotated[
        str,
        typer.Option("--delay", metavar="SPAN", help="Earliest start in the queue: 10m, 12h."),
    ] = "",
) -> None:
    """Turn a task into a reviewed, tested branch and a pull request.

    Agents plan, write and review; Podium checks, commits, merges and delivers, on a branch of its own
    in a separate worktree. Your checkout is not touched. After Ctrl-C, `podium resume` continues.

    With --json, prints one object per line: `launch`, every event, `result`.

    \b
    Example:
      podium run "Add a dark mode toggle to the settings page"
      podium run --mode bugfix "Saving twice loses the first file"
      podium run --mode quick "Fix the typo in the usage line"
      podium run --issue 123
      podium run --detach - < task.md
      podium run --queue gpu --priority 5 --delay 10m "Train it again"
    """
    cli = CliContext(context.obj)
    slot = _queue_slot(queue, priority, delay) if detach or queue else None
    if wait and slot:
        raise BadInput("--wait cannot be combined with --detach or --queue")
    if (priority or delay) and not slot:
        raise BadInput("--priority and --delay need a queue; add --detach or --queue")
    text = _given_text(task, issue)

    async def begin(podium: Podium, slot: QueueSlot | None = None) -> Run:
        from podium.jobs.pipeline.composition import pipeline_job

        # Before the store is opened: what is refused leaves nothing behind.
        if issue:
            from podium.jobs.pipeline.intake import job_of_issue

            job = await job_of_issue(podium, issue, mode=mode, agent=agent, base=base)
        else:
            job = await pipeline_job(podium, text, mode=mode, agent=agent, base=base)
        engine = await podium.hosting_engine()
        settings = cli.configuration.run_settings()
        job_input = job.model_dump(mode="json")
        where = slot.model_dump() if slot else {}
        return await engine.start(FLOW, job_input, task=job.task, settings=settings, **where)

    if slot:
        from podium.cli.detached_run import hand_over

        hand_over(cli, begin, slot)
    else:
        host(cli, begin, wait=wait)


def _queue_slot(queue: str, priority: int, delay: str) -> QueueSlot:
    from podium.app.work_request import MAX_PRIORITY, QUEUE, QueueSlot
    from podium.cli.commands.workspaces import span

    seconds = span(delay).total_seconds() if delay else 0.0
    if abs(priority) > MAX_PRIORITY:
        raise BadInput(
            f"--priority must be between -{MAX_PRIORITY} and {MAX_PRIORITY}, not {priority}"
        )
    return QueueSlot(queue=queue or QUEUE, priority=priority, delay_seconds=seconds)


def _given_text(task: str | None, issue: str) -> str:
    """The task, or nothing where an issue has it. Raises `BadInput` unless exactly one was passed."""
    if task is None and not issue:
        raise BadInput("Missing argument 'TASK': describe what to do, or pass --issue 123")
    if task is not None and issue:
        raise BadInput("pass either a task or --issue, not both")
    return "" if task is None else _task_text(task)


def _task_text(task: str) -> str:
    from podium.app.work_request import plain_text

    return plain_text(_from_stdin() if task == STDIN else task)


def _from_stdin() -> str:
    from podium.jobs.pipeline.composition import MAX_CHARACTERS

    most_bytes = 4 * MAX_CHARACTERS
    if sys.stdin.isatty():
        typer.echo("podium: type the task, then press Ctrl-D", err=True)
    content = sys.stdin.buffer.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise BadInput(
            f"the task on stdin is longer than {MAX_CHARACTERS} characters; put the details into a file of "
            "the repository and name that file in the task"
        )
    return content.decode(errors="surrogateescape")
