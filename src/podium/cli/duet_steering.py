"""`podium duet status`, `log`, `abort` and `nudge`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.door import Door
from podium.cli.duet_finding import found_terminals
from podium.cli.duet_pairing import TaskArgument, must_have_tasks, variables_of
from podium.cli.duet_standing_words import tell_standing
from podium.cli.screen import Screen
from podium.domain import events as e
from podium.domain.duets import Pair, PairStanding
from podium.domain.errors import NotPossibleNow
from podium.domain.messages import Side
from podium.ports import EventQuery, Store
from podium.telling.event_words import describe
from podium.telling.untrusted import safe_line, shown_text
from podium.telling.wording import moment
from podium.usecases import DuetTask, find_duet, see_duets, with_hosts
from podium.wiring import Podium
from podium.wiring.duet_standings import pair_standing
from podium.wiring.duet_tasks import abort_task, nudge_task, pairs_in_use

_TOLD = (
    "pair_seated", "leg_opened", "agent_asked", "agent_replied", "agent_progressed", "agent_stopped", "agent_switched",
    "message_heard", "block_ignored", "side_nudged", "keyboard_taken", "keyboard_returned", "tool_refused",
    "approval_requested", "approval_granted", "approval_rejected", "approval_expired", "note_taken", "step_broke",
    "run_waiting", "run_needed_human", "run_failed", "run_cancelled", "run_retried",
)  # fmt: skip
_LONGEST = 200
_NOT_CUT = (e.StepBroke, e.RunFailed, e.RunNeededHuman)
"""Their ends say what to do."""


def status(context: typer.Context) -> None:
    """Show every pair, how both sides stand, and the state table: which task awaits what from whom.

    \b
    Example:
      podium duet status --json
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> tuple[list[PairStanding], list[DuetTask]]:
        pairs = pairs_in_use(podium, variables_of(None))
        standings = await _standings(podium, door.screen, pairs)
        tasks = await see_duets(await podium.store()) if podium.has_record else []
        return standings, await with_hosts(tasks, podium.engine)

    standings, tasks = door.run(work)
    record = {
        "pairs": [each.model_dump(mode="json") for each in standings],
        "tasks": [each.model_dump(mode="json") for each in tasks],
    }
    door.screen.answer(record, lambda: _tell(door.screen, standings, tasks))


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

    found = door.run(work)
    door.screen.answer(
        found.model_dump(mode="json"),
        lambda: door.screen.line(f"task {found.task_id} {found.status.value}"),
    )


def nudge(
    context: typer.Context,
    task: TaskArgument = "",
    words: Annotated[
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
        return await nudge_task(podium, task, words)

    found, side = door.run(work)
    record = {"task": found.task_id, "side": side}
    door.screen.answer(
        record, lambda: door.screen.line(f"{side} was reminded of task {found.task_id}")
    )


async def _standings(podium: Podium, screen: Screen, pairs: list[Pair]) -> list[PairStanding]:
    if all(each.transport == "headless" for each in pairs):
        return [await pair_standing(podium, each) for each in pairs]
    async with found_terminals(podium, screen) as terminals:
        return [await pair_standing(podium, each, terminals) for each in pairs]


async def _last(store: Store, task: str) -> DuetTask:
    if task:
        return await find_duet(store, task)
    tasks = await see_duets(store, also_ended=True)
    if not tasks:
        raise NotPossibleNow("no task was ever handed to a pair; `podium duet send TASK` does")
    return tasks[-1]


def _tell(screen: Screen, standings: list[PairStanding], tasks: list[DuetTask]) -> None:
    for standing in standings:
        tell_standing(screen, standing)
    if not tasks:
        screen.line("no task goes on")
        return
    rows = [
        (
            task.task_id,
            task.pair or "-",
            task.shown_status,
            task.leg.expected_from if task.leg else "-",
            " or ".join(task.leg.expected) if task.leg else "-",
            moment(task.since),
            safe_line(task.text, 60),
        )
        for task in tasks
    ]
    headers = ("TASK", "PAIR", "STATUS", "EXPECTED FROM", "EXPECTED", "SINCE", "WORDS")
    screen.table(headers, rows)


def _is_told(event: e.Event) -> bool:
    """Of what an agent is at, only what was done about it: reminders and further tries."""
    body = event.body
    return not isinstance(body, e.AgentProgressed) or body.kind in ("note", "retry")


def _line(event: e.Event, full: bool) -> str:
    at = event.at.astimezone().strftime("%H:%M:%S")
    body, whole = _in_short(event.body)
    words = safe_line(describe(body), 0 if isinstance(body, _NOT_CUT) else _LONGEST)
    head = f"[{at}] {body.type.replace('_', ' ')}: {words}"
    return f"{head}\n{shown_text(whole)}" if full and whole else head


def _in_short(body: e.EventBody) -> tuple[e.EventBody, str]:
    """The event with the first line of what somebody said, and the whole of that; empty where nobody said anything."""
    match body:
        case e.AgentAsked(prompt=whole):
            return body.model_copy(update={"prompt": _first_line(whole)}), whole
        case e.AgentReplied(text=whole):
            return body.model_copy(update={"text": _first_line(whole)}), whole
        case e.MessageHeard(message=message):
            return body, message.body
    return body, ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
