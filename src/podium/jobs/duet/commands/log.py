"""Subcommand `log`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.context import Door
from podium.core import events as e
from podium.core.errors import NotPossibleNow
from podium.jobs.duet.commands.pair_options import TaskArgument, must_have_tasks
from podium.jobs.duet.events import MessageHeard
from podium.jobs.duet.task_table import DuetTask, find_duet, list_duets
from podium.ports import EventQuery, Store
from podium.render.event import describe
from podium.render.text import escaped_text, safe_line

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
        bool, typer.Option("--full", help="Every message, question and answer whole.")
    ] = False,
) -> None:
    """Print what each side of a task was asked and said, what was done with it, and what went wrong. Without TASK the last.

    \b
    Example:
      podium duet log --full
    """
    door = Door(context.obj, lenient=True)
    must_have_tasks(door, task)

    async def work(podium: Podium) -> list[e.Event]:
        store = await podium.store()
        duet_task = await _last(store, task)
        query = EventQuery(run_id=duet_task.run_id, types=_LOGGED_TYPES, limit=100_000)
        return [
            event
            for event in await store.read(lambda view: view.events(query))
            if _is_logged(event)
        ]

    events = door.run(work)

    def render() -> None:
        for event in events:
            door.screen.line(_line(event, full))

    door.screen.answer({"events": [event.line() for event in events]}, render)


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
