"""`podium duet take` and `give`: a person has the keyboard of a side for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Annotated

import typer
from pydantic import ValidationError

from podium.cli.door import Door
from podium.cli.duet_pairing import MAIN, PairOption, variables_of
from podium.domain.errors import BadInput
from podium.domain.keyboards import HOLD_SECONDS, LONGEST_HOLD_SECONDS, KeyboardHold
from podium.domain.messages import Side
from podium.domain.terminals import KeyboardWish, Terminal
from podium.ports import Mirror, Store
from podium.telling.untrusted import shown_line
from podium.telling.wording import moment
from podium.wiring import Podium

SideArgument = Annotated[str, typer.Argument(metavar="SIDE", help="planner or executer.")]
_MINUTE = 60.0
_LONGEST_SHOWN = 200


def take(
    context: typer.Context,
    side: SideArgument,
    minutes: Annotated[
        float,
        typer.Option(
            "--minutes", min=0.01, max=LONGEST_HOLD_SECONDS / _MINUTE, help="Until it comes back."
        ),
    ] = HOLD_SECONDS / _MINUTE,
    pair: PairOption = MAIN,
) -> None:
    """Have the keyboard of a side: Podium types nothing there and its time stands still, until `give`.

    \b
    Example:
      podium duet take executer
      podium duet keys executer y Enter
      podium duet give executer
    """
    door = Door(context.obj)
    terminal = terminal_of(pair, side)

    async def work(podium: Podium) -> KeyboardHold:
        from podium.usecases import take_keyboard

        wish = KeyboardWish(terminal=terminal, who=door.user, seconds=minutes * _MINUTE)
        return await take_keyboard(await _store(podium), mirror_of(podium), wish)

    hold = door.run(work)
    door.screen.answer(
        {"pair": pair, "side": terminal.side, "keyboard": hold.model_dump(mode="json")},
        lambda: door.screen.line(
            f"the keyboard of {terminal.side} is yours until {moment(hold.until)}; "
            f"`podium duet give {side.lower()}` returns it"
        ),
    )


def give(
    context: typer.Context,
    side: SideArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Also when somebody else has it, who loses it.")
    ] = False,
    pair: PairOption = MAIN,
) -> None:
    """Return the keyboard of a side: what Podium had to say there goes on.

    \b
    Example:
      podium duet give executer
    """
    door = Door(context.obj)
    terminal = terminal_of(pair, side)

    async def work(podium: Podium) -> KeyboardHold:
        from podium.usecases import return_keyboard

        who, why = ("", f"{door.user} took it away") if force else (door.user, "")
        return await return_keyboard(await _store(podium), mirror_of(podium), terminal, who, why)

    hold = door.run(work)
    door.screen.answer(
        {"pair": pair, "side": terminal.side, "keyboard": None, "had_it": hold.who},
        lambda: door.screen.line(f"the keyboard of {terminal.side} is Podium's again"),
    )


def terminal_of(pair: str, side: str) -> Terminal:
    """The terminal that is meant. Raises `BadInput` for what is no name."""
    sides: dict[str, Side] = {"planner": "PLANNER", "executer": "EXECUTER"}
    if side.lower() not in sides:
        raise BadInput(f"{side!r} is no side; say planner or executer")
    with as_given():
        return Terminal(pair=pair, side=sides[side.lower()])


@contextmanager
def as_given() -> Iterator[None]:
    """What does not fit is the person's to put right."""
    try:
        yield
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        given = shown_line(repr(fault["input"]), _LONGEST_SHOWN)
        raise BadInput(f"{fault['loc'][0]} {given}: {fault['msg']}; put it right") from None


def mirror_of(podium: Podium) -> Mirror:
    """Late: only who steers terminals needs it."""
    from podium.wiring.duet_api import mirror_of_project

    return mirror_of_project(podium, variables_of(None))


async def is_held_by(podium: Podium, terminal: Terminal, who: str) -> bool:
    """Whether this person has the keyboard now."""
    async with aclosing(mirror_of(podium).look(terminal)) as views:
        hold = (await anext(views)).keyboard.hold
    return hold is not None and hold.who == who


async def _store(podium: Podium) -> Store | None:
    return await podium.store() if podium.has_record else None
