"""Subcommands `status`, `abort`, `nudge` and `log`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.core import events as e
from podium.core.errors import NotPossibleNow
from podium.core.turns import Side
from podium.jobs.duet.commands.pair_options import (
    TaskArgument,
    must_have_tasks,
    open_terminals,
    print_pair_status,
    variables_of,
)
from podium.jobs.duet.events import MessageHeard
from podium.jobs.duet.models import Pair, PairStatus
from podium.jobs.duet.project_terminals import absent_pair_status, is_served, pair_status
from podium.jobs.duet.task_control import abort_task, nudge_task, pairs_in_use
from podium.jobs.duet.task_table import DuetTask, find_duet, list_duets, with_hosts
from podium.ports import EventQuery, Store
from podium.render.event import describe
from podium.render.text import escaped_text, local_time, safe_line


def status(context: typer.Context) -> None:
    """Show every pair, the status of its sides, and for each task the message that it waits for.

    \b
    Example:
      podium duet status --json
      podium duet status
    """
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> tuple[list[PairStatus], list[DuetTask]]:
        pairs = pairs_in_use(podium, variables_of(None))
        statuses = await _statuses(podium, cli.screen, pairs)
        tasks = await list_duets(await podium.store()) if podium.has_record else []
        return statuses, await with_hosts(tasks, podium.engine)

    statuses, tasks = cli.run(work)
    record = {
        "pairs": [pair.model_dump(mode="json") for pair in statuses],
        "tasks": [task.model_dump(mode="json") for task in tasks],
    }
    cli.screen.answer(record, lambda: _print(cli.screen, statuses, tasks))


def abort(
    context: typer.Context,
    task: TaskArgument = "",
    why: Annotated[str, typer.Option("--why", help="The reason, for the record.")] = "",
) -> None:
    """End a task. The program that works on it is interrupted and stays up.

    \b
    Example:
      podium duet abort --why "wrong folder"
      podium duet abort 9d1f5a6b
    """
    cli = CliContext(context.obj)
    must_have_tasks(cli, task)

    async def work(podium: Podium) -> DuetTask:
        return await abort_task(podium, task, by=cli.user, why=why)

    duet_task = cli.run(work)
    cli.screen.answer(
        duet_task.model_dump(mode="json"),
        lambda: cli.screen.line(f"task {duet_task.task_id} {duet_task.status.value}"),
    )


def nudge(
    context: typer.Context,
    task: TaskArgument = "",
    text: Annotated[
        str,
        typer.Option("--say", metavar="TEXT", help="Text to send instead of the default reminder."),
    ] = "",
) -> None:
    """Remind the side that owes a message. A busy side is not disturbed.

    \b
    Example:
      podium duet nudge
      podium duet nudge --say "end with your block"
    """
    cli = CliContext(context.obj)
    must_have_tasks(cli, task)

    async def work(podium: Podium) -> tuple[DuetTask, Side]:
        return await nudge_task(podium, task, text)

    duet_task, side = cli.run(work)
    record = {"task": duet_task.task_id, "side": side}
    cli.screen.answer(
        record, lambda: cli.screen.line(f"{side} was reminded of task {duet_task.task_id}")
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
    headers = ("TASK", "PAIR", "STATUS", "EXPECTED FROM", "EXPECTED", "SINCE", "TEXT")
    screen.table(headers, rows)


_LOGGED_TYPES = (
    "pair_seated", "leg_opened", "agent_asked", "agent_replied", "agent_progressed", "agent_stopped", "agent_switched",
    "message_heard", "block_ignored", "side_nudged", "keyboard_taken", "keyboard_returned", "tool_refused",
    "approval_requested", "approval_granted", "approval_rejected", "approval_expired", "note_taken", "step_broke",
    "run_waiting", "run_needed_human", "run_failed", "run_cancelled", "run_retried",
)  # fmt: skip
_MAX_LENGTH = 200
_NOT_CUT = (e.StepBroke, e.RunFailed, e.RunNeededHuman)
"""Not cut, because they end with the next command."""


def log(
    context: typer.Context,
    task: TaskArgument = "",
    full: Annotated[
        bool, typer.Option("--full", help="Print every message, question and answer in full.")
    ] = False,
) -> None:
    """Print the messages of a task: what each side was asked and said, and what went wrong. Default: the last task.

    \b
    Example:
      podium duet log --full
      podium duet log 9d1f5a6b --json
    """
    cli = CliContext(context.obj, lenient=True)
    must_have_tasks(cli, task)

    async def work(podium: Podium) -> list[e.Event]:
        store = await podium.store()
        duet_task = await _last(store, task)
        query = EventQuery(run_id=duet_task.run_id, types=_LOGGED_TYPES, limit=100_000)
        return [
            event
            for event in await store.read(lambda view: view.events(query))
            if _is_logged(event)
        ]

    events = cli.run(work)

    def render() -> None:
        for event in events:
            cli.screen.line(_line(event, full))

    cli.screen.answer({"events": [event.line() for event in events]}, render)


async def _last(store: Store, task: str) -> DuetTask:
    if task:
        return await find_duet(store, task)
    tasks = await list_duets(store, also_ended=True)
    if not tasks:
        raise NotPossibleNow("there are no tasks yet; start one with `podium duet send TASK`")
    return tasks[-1]


def _is_logged(event: e.Event) -> bool:
    """Select events for the log; of an agent's progress only reminders and retries."""
    body = event.body
    return not isinstance(body, e.AgentProgressed) or body.kind in ("note", "retry")


def _line(event: e.Event, full: bool) -> str:
    at = event.at.astimezone().strftime("%H:%M:%S")
    body, whole = _in_short(event.body)
    summary = safe_line(describe(body), 0 if isinstance(body, _NOT_CUT) else _MAX_LENGTH)
    head = f"[{at}] {body.type.replace('_', ' ')}: {summary}"
    return f"{head}\n{escaped_text(whole)}" if full and whole else head


def _in_short(body: e.EventBody) -> tuple[e.EventBody, str]:
    """Return the event cut to the first line of its text, and the full text, which may be empty."""
    match body:
        case e.AgentAsked(prompt=whole):
            return body.model_copy(update={"prompt": _first_line(whole)}), whole
        case e.AgentReplied(text=whole):
            return body.model_copy(update={"text": _first_line(whole)}), whole
        case MessageHeard(message=message):
            return body, message.body
    return body, ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
