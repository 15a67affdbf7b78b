"""Command `podium run`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.run_host import host
from podium.core.errors import BadInput
from podium.core.work import Run
from podium.jobs.pipeline.spec import BATCH, FLOW

if TYPE_CHECKING:
    from podium.app.work_request import QueueSlot
    from podium.jobs.pipeline.state import PipelineJob
    from podium.jobs.pipeline.task_list import BatchTask


app = command_app()

STDIN = "-"
MAX_PARALLEL = 50
MAX_ATTEMPTS = 10


@app.command()
def run(
    context: typer.Context,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TASK...",
            help="What to build or fix; `-` reads it from stdin. Several run at the same time.",
        ),
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option(
            "--tasks",
            metavar="FILE",
            help="Read tasks from a file: one on each line, YAML, or JSON lines.",
        ),
    ] = None,
    parallel: Annotated[
        int,
        typer.Option(
            "--parallel",
            metavar="N",
            help="Work on at most N of several tasks at the same time [default: 3].",
        ),
    ] = 0,
    group: Annotated[
        int,
        typer.Option(
            "--group",
            metavar="N",
            help="Verify up to N finished branches with one run of the checks.",
        ),
    ] = 1,
    attempts: Annotated[
        int,
        typer.Option(
            "--attempts",
            metavar="N",
            help="Let N agents try the task independently, and deliver the best attempt.",
        ),
    ] = 0,
    agents: Annotated[
        str,
        typer.Option(
            "--agents",
            metavar="NAMES",
            help="Agents of the attempts, such as claude,codex; else all that can be used.",
        ),
    ] = "",
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
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Stay until the pull request is merged or closed: fix failed checks, answer review comments.",
        ),
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

    Several tasks become one branch: each is worked on by itself, and finished ones are merged one after
    the other, with the checks run on each on top of those before it. With --attempts, several agents try
    one task, and the best attempt becomes the branch. See `podium help several-tasks`.

    With --json, prints one object per line: `launch`, every event, `result`.

    \b
    Example:
      podium run "Add a dark mode toggle to the settings page"
      podium run --mode bugfix "Saving twice loses the first file"
      podium run --mode quick "Fix the typo in the usage line"
      podium run --follow "Show the time zone beside each date"
      podium run --issue 123
      podium run --detach - < task.md
      podium run --queue gpu --priority 5 --delay 10m "Train it again"
      podium run --parallel 2 "Fix the parser" "Document the API" "Speed up the import"
      podium run --tasks tasks.yaml --group 4
      podium run --attempts 3 --agents claude,codex,gemini "Speed up the import"
    """
    cli = CliContext(context.obj)
    slot = _queue_slot(queue, priority, delay) if detach or queue else None
    if wait and slot:
        raise BadInput("--wait cannot be combined with --detach or --queue")
    if (priority or delay) and not slot:
        raise BadInput("--priority and --delay need a queue; add --detach or --queue")
    several = tasks is not None or len(texts or ()) > 1
    if issue and (several or attempts or agents):
        raise BadInput("--issue is for one task; leave out --tasks, --attempts and further tasks")
    if follow and (several or attempts or agents):
        raise BadInput("--follow is for one task; leave out --tasks, --attempts and further tasks")
    if attempts or agents:
        names = _agent_names(agents, agent)
        begin = _attempts_start(
            cli,
            _task_of_attempts(texts, tasks, group),
            attempts=_checked_attempts(attempts or len(names), parallel),
            agents=names,
            mode=mode,
            base=base,
            parallel=parallel,
        )
    elif several:
        listed = _listed_tasks(texts or (), tasks)
        _check_counts(parallel, group)
        begin = _batch_start(
            cli, listed, mode=mode, agent=agent, base=base, parallel=parallel, group=group
        )
    else:
        _refuse_batch_options(parallel, group)
        text = _given_text(texts[0] if texts else None, issue)
        begin = _task_start(cli, text, issue, follow=follow, mode=mode, agent=agent, base=base)
    if slot:
        from podium.cli.detached_run import hand_over

        hand_over(cli, begin, slot)
    else:
        host(cli, begin, wait=wait or follow)


class _Start(Protocol):
    """Stores the run; with a slot in a queue, else it is hosted here."""

    def __call__(self, podium: Podium, slot: QueueSlot | None = None, /) -> Awaitable[Run]: ...


def _task_start(
    cli: CliContext, text: str, issue: str = "", *, follow: bool = False, **options: str
) -> _Start:
    async def begin(podium: Podium, slot: QueueSlot | None = None) -> Run:
        from podium.jobs.pipeline.composition import pipeline_job

        # Before the store is opened: what is refused leaves nothing behind.
        if issue:
            from podium.jobs.pipeline.intake import job_of_issue

            job = await job_of_issue(podium, issue, **options)
        else:
            job = await pipeline_job(podium, text, **options)
        job = job.followed() if follow else job
        return await _started(cli, podium, FLOW, job, slot)

    return begin


def _batch_start(cli: CliContext, tasks: Sequence[BatchTask], **options: Any) -> _Start:
    async def begin(podium: Podium, slot: QueueSlot | None = None) -> Run:
        from podium.jobs.pipeline.composition import batch_job

        job = await batch_job(podium, tasks, **options)
        return await _started(cli, podium, BATCH, job, slot)

    return begin


def _attempts_start(cli: CliContext, text: str, **options: Any) -> _Start:
    async def begin(podium: Podium, slot: QueueSlot | None = None) -> Run:
        from podium.jobs.pipeline.composition import attempts_job

        job = await attempts_job(podium, text, **options)
        return await _started(cli, podium, BATCH, job, slot)

    return begin


def _task_of_attempts(texts: Sequence[str] | None, file: Path | None, group: int) -> str:
    if file is not None or len(texts or ()) > 1:
        raise BadInput("--attempts and --agents are for one task")
    if group != 1:
        raise BadInput("--group needs several tasks, or --tasks FILE")
    return _given_text(texts[0] if texts else None, "")


def _agent_names(agents: str, agent: str) -> tuple[str, ...]:
    if agent:
        raise BadInput("--agent cannot be combined with --attempts or --agents; use --agents")
    names = tuple(name.strip() for name in agents.split(",") if name.strip())
    if len(set(names)) < len(names):
        raise BadInput("--agents names an agent twice; raise --attempts to let it try again")
    return names


def _checked_attempts(attempts: int, parallel: int) -> int:
    if not 2 <= attempts <= MAX_ATTEMPTS:
        raise BadInput(f"--attempts must be between 2 and {MAX_ATTEMPTS}, not {attempts}")
    _check_counts(parallel, 1)
    return attempts


async def _started(
    cli: CliContext, podium: Podium, flow: str, job: PipelineJob, slot: QueueSlot | None
) -> Run:
    engine = await podium.hosting_engine()
    settings = cli.configuration.run_settings()
    where = slot.model_dump() if slot else {}
    job_input = job.model_dump(mode="json")
    return await engine.start(flow, job_input, task=job.task, settings=settings, **where)


def _listed_tasks(texts: Sequence[str], file: Path | None) -> Sequence[BatchTask]:
    from podium.app.work_request import plain_text
    from podium.jobs.pipeline.task_list import named_tasks, read_tasks

    if file is not None and texts:
        raise BadInput(
            "--tasks cannot be combined with tasks on the command line; add them to the file"
        )
    if STDIN in texts:
        raise BadInput("`-` reads one task; pass it alone, or use --tasks FILE")
    return (
        read_tasks(file) if file is not None else named_tasks([plain_text(text) for text in texts])
    )


def _check_counts(parallel: int, group: int) -> None:
    if not 0 <= parallel <= MAX_PARALLEL:
        raise BadInput(f"--parallel must be between 1 and {MAX_PARALLEL}, not {parallel}")
    if not 1 <= group <= MAX_PARALLEL:
        raise BadInput(f"--group must be between 1 and {MAX_PARALLEL}, not {group}")


def _refuse_batch_options(parallel: int, group: int) -> None:
    if parallel or group != 1:
        raise BadInput("--parallel and --group need several tasks, or --tasks FILE")


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
