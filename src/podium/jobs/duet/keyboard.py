"""Keyboard of a pair's program: taken and returned by a person, recorded in the task that the pair works on."""

from __future__ import annotations

from podium.core.errors import BadInput
from podium.core.events import EventBody
from podium.core.keyboards import KeyboardHold
from podium.core.terminals import KeyboardRequest, Terminal
from podium.jobs.duet.events import KeyboardReturned, KeyboardTaken
from podium.jobs.duet.task_table import list_duets
from podium.ports import EventQuery, PaneMirror, Store, StoreView, Transaction

_MAX_EVENTS = 10_000


async def take_keyboard(
    store: Store | None, mirror: PaneMirror, request: KeyboardRequest
) -> KeyboardHold:
    """Take the keyboard, or extend the hold. On return Podium types nothing there any more; that survives a crash.

    `store` is None where no task was ever recorded. Raises `NotPossibleNow` when another person has it.
    """
    hold = await mirror.take(request)
    terminal = request.terminal
    taken = KeyboardTaken(pair=terminal.pair, side=terminal.side, by=hold.who)
    await _record(store, terminal, taken)
    return hold


async def return_keyboard(
    store: Store | None, mirror: PaneMirror, terminal: Terminal, who: str = "", why: str = ""
) -> KeyboardHold:
    """Return the keyboard; without `who` from any holder. Podium types its pending text.

    Raises `NotPossibleNow` when another person has it, `BadInput` when nobody has.
    """
    hold = await mirror.give(terminal, who)
    if hold is None:
        raise BadInput(f"nobody has taken the keyboard of {terminal.side}")
    await _record(store, terminal, came_back(terminal, hold, why))
    return hold


async def keyboard_came_back(
    store: Store, run_id: str, terminal: Terminal, hold: KeyboardHold
) -> None:
    """Record that a person's hold has expired."""
    body = came_back(terminal, hold, "the time was up")

    def append(tx: Transaction) -> None:
        tx.append(run_id, body)

    await store.write(append)


def came_back(terminal: Terminal, hold: KeyboardHold, why: str) -> KeyboardReturned:
    return KeyboardReturned(pair=terminal.pair, side=terminal.side, by=hold.who, why=why)


async def _record(store: Store | None, terminal: Terminal, body: EventBody) -> None:
    """Append the event to the tasks that the pair works on, unless it is their last one; to none when it is idle."""
    if store is None:
        return
    runs = [task.run_id for task in await list_duets(store) if task.pair == terminal.pair]

    def append(tx: Transaction) -> None:
        for run_id in runs:
            if _last_of(tx, run_id, terminal) != body:
                tx.append(run_id, body)

    if runs:
        await store.write(append)


def _last_of(view: StoreView, run_id: str, terminal: Terminal) -> EventBody | None:
    """Return the last keyboard event of this side: extending a hold records nothing new."""
    types = ("keyboard_taken", "keyboard_returned")
    events = view.events(EventQuery(run_id=run_id, types=types, limit=_MAX_EVENTS))
    bodies = [event.body for event in events]
    ours = [
        body
        for body in bodies
        if isinstance(body, KeyboardTaken | KeyboardReturned) and body.side == terminal.side
    ]
    return ours[-1] if ours else None
