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
from podium.jobs.duet.task_table import DuetTask, find_duet, see_duets
from podium.ports import EventQuery, Store
from podium.render.event import describe
from podium.render.text import safe_line, shown_text

_TOLD = (
    "pair_seated", "leg_opened", "agent_asked", "agent_replied", "agent_progressed", "agent_stopped", "agent_switched",
    "message_heard", "block_ignored", "side_nudged", "keyboard_taken", "keyboard_returned", "tool_refused",
    "approval_requested", "approval_granted", "approval_rejected", "approval_expired", "note_taken", "step_broke",
    "run_waiting", "run_needed_human", "run_failed", "run_cancelled", "run_retried",
)  # fmt: skip
_MAX_LENGTH = 200
_NOT_CUT = (e.StepBroke, e.RunFailed, e.RunNeededHuman)
"""Their ends say what to do."""


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
        found = await _last(store, task)
        query = EventQuery(run_id=found.run_id, types=_TOLD, limit=100_000)
        return [
            each for each in await store.read(lambda view: view.events(query)) if _is_told(each)
        ]

    events = door.run(work)

    def words() -> None:
        for event in events:
            door.screen.line(_line(event, full))

    door.screen.answer({"events": [event.line() for event in events]}, words)


async def _last(store: Store, task: str) -> DuetTask:
    if task:
        return await find_duet(store, task)
    tasks = await see_duets(store, also_ended=True)
    if not tasks:
        raise NotPossibleNow("no task was ever handed to a pair; `podium duet send TASK` does")
    return tasks[-1]


def _is_told(event: e.Event) -> bool:
    """Of what an agent is at, only what was done about it: reminders and further tries."""
    body = event.body
    return not isinstance(body, e.AgentProgressed) or body.kind in ("note", "retry")


def _line(event: e.Event, full: bool) -> str:
    at = event.at.astimezone().strftime("%H:%M:%S")
    body, whole = _in_short(event.body)
    words = safe_line(describe(body), 0 if isinstance(body, _NOT_CUT) else _MAX_LENGTH)
    head = f"[{at}] {body.type.replace('_', ' ')}: {words}"
    return f"{head}\n{shown_text(whole)}" if full and whole else head


def _in_short(body: e.EventBody) -> tuple[e.EventBody, str]:
    """The event with the first line of what somebody said, and the whole of that; empty where nobody said anything."""
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
