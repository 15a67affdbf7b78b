"""Subcommands `take`, `give`, `serve`, `keys`, `screen` and `watch`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from podium.app.app import Podium
from podium.cli.context import CliContext
from podium.core.errors import BadInput
from podium.core.keyboards import HOLD_SECONDS, MAX_HOLD_SECONDS, KeyboardHold
from podium.core.terminals import (
    KeyboardRequest,
    KeysPressed,
    Terminal,
    TerminalPicture,
    TerminalUpdate,
)
from podium.core.turns import Side
from podium.jobs.duet.commands.pair_options import (
    PairOption,
    open_terminals,
    typed_api,
    variables_of,
)
from podium.jobs.duet.pairs import MAIN
from podium.ports import PaneMirror, Store
from podium.render.text import counted, escaped_line, local_time

SideArgument = Annotated[str, typer.Argument(metavar="SIDE", help="planner or executer.")]
_MINUTE = 60.0
_MAX_VALUE_CHARACTERS = 200


def take(
    context: typer.Context,
    side: SideArgument,
    minutes: Annotated[
        float,
        typer.Option(
            "--minutes",
            min=0.01,
            max=MAX_HOLD_SECONDS / _MINUTE,
            help="Minutes until it is returned automatically.",
        ),
    ] = HOLD_SECONDS / _MINUTE,
    pair: PairOption = MAIN,
) -> None:
    """Take the keyboard of a side. Podium types nothing there and pauses its time limit until `give`.

    \b
    Example:
      podium duet take executer
      podium duet keys executer y Enter
      podium duet give executer
    """
    cli = CliContext(context.obj)
    terminal = terminal_of(pair, side)

    async def work(podium: Podium) -> KeyboardHold:
        from podium.jobs.duet.keyboard import take_keyboard

        request = KeyboardRequest(terminal=terminal, who=cli.user, seconds=minutes * _MINUTE)
        return await take_keyboard(await _store(podium), mirror_of(podium), request)

    hold = cli.run(work)
    cli.screen.answer(
        {"pair": pair, "side": terminal.side, "keyboard": hold.model_dump(mode="json")},
        lambda: cli.screen.line(
            f"the keyboard of {terminal.side} is yours until {local_time(hold.until)}; "
            f"return it with `podium duet give {side.lower()}`"
        ),
    )


def give(
    context: typer.Context,
    side: SideArgument,
    force: Annotated[bool, typer.Option("--force", help="Also if somebody else has it.")] = False,
    pair: PairOption = MAIN,
) -> None:
    """Return the keyboard of a side. Podium then continues there.

    \b
    Example:
      podium duet give executer
      podium duet give planner --force
    """
    cli = CliContext(context.obj)
    terminal = terminal_of(pair, side)

    async def work(podium: Podium) -> KeyboardHold:
        from podium.jobs.duet.keyboard import return_keyboard

        who, why = ("", f"{cli.user} took it away") if force else (cli.user, "")
        return await return_keyboard(await _store(podium), mirror_of(podium), terminal, who, why)

    hold = cli.run(work)
    cli.screen.answer(
        {"pair": pair, "side": terminal.side, "keyboard": None, "had_it": hold.who},
        lambda: cli.screen.line(f"returned the keyboard of {terminal.side}"),
    )


def terminal_of(pair: str, side: str) -> Terminal:
    """Parse the terminal of a pair and side. Raises `BadInput` for an invalid name."""
    sides: dict[str, Side] = {"planner": "PLANNER", "executer": "EXECUTER"}
    if side.lower() not in sides:
        raise BadInput(f"{side!r} is not a side; use planner or executer")
    with as_bad_input():
        return Terminal(pair=pair, side=sides[side.lower()])


@contextmanager
def as_bad_input() -> Iterator[None]:
    """Raise validation errors as `BadInput`."""
    try:
        yield
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        value = escaped_line(repr(problem["input"]), _MAX_VALUE_CHARACTERS)
        raise BadInput(f"{problem['loc'][0]} {value}: {problem['msg']}") from None


def mirror_of(podium: Podium) -> PaneMirror:
    """Build the mirror of panes; imported late, since few commands need it."""
    from podium.jobs.duet.project_terminals import mirror_of_project

    return mirror_of_project(podium, variables_of(None))


async def is_held_by(podium: Podium, terminal: Terminal, who: str) -> bool:
    """Check if this person holds the keyboard now."""
    async with aclosing(mirror_of(podium).look(terminal)) as views:
        hold = (await anext(views)).keyboard.hold
    return hold is not None and hold.who == who


async def _store(podium: Podium) -> Store | None:
    return await podium.store() if podium.has_record else None


AtOption = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="WHERE",
        help="Address of another Podium: its socket (SSH may forward it), or HOST:PORT.",
    ),
]
CertificatesOption = Annotated[
    Path | None,
    typer.Option(
        "--papers",
        metavar="DIR",
        help="Folder with key.pem, certificate.pem and authority.pem, for HOST:PORT.",
    ),
]
_MAX_QUESTION_CHARACTERS = 200


def serve(
    context: typer.Context,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Also listen for other machines, with TLS on both ends.",
        ),
    ] = "",
    certificates: CertificatesOption = None,
) -> None:
    """Let other programs view and control the terminals of this project, until Ctrl-C.

    \b
    Example:
      podium duet serve
      podium duet serve --listen 10.0.0.5:7443 --papers ~/papers
    """
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> None:
        served = typed_api().served_terminals(podium, variables_of(None), listen, certificates)
        async with served as where:
            record = {"type": "served", "at": where}
            cli.screen.answer(record, lambda: cli.screen.line(f"served at {', '.join(where)}"))
            await asyncio.Event().wait()

    cli.run(work)


def keys(
    context: typer.Context,
    side: SideArgument,
    pressed: Annotated[
        list[str],
        typer.Argument(metavar="KEY…", help="Names of keys as in tmux; other text is typed."),
    ],
    pair: PairOption = MAIN,
    at: AtOption = "",
    certificates: CertificatesOption = None,
) -> None:
    """Press keys in a side's terminal, whatever it is doing.

    \b
    Example:
      podium duet keys executer y Enter
      podium duet keys planner Escape --pair main
    """
    cli = CliContext(context.obj)
    terminal = terminal_of(pair, side)
    with as_bad_input():
        request = KeysPressed(terminal=terminal, keys=tuple(pressed))

    async def work(podium: Podium) -> None:
        if not at and await is_held_by(podium, terminal, cli.user):
            await mirror_of(podium).press(request.model_copy(update={"who": cli.user}))
            return
        async with open_terminals(podium, cli.screen, at, certificates) as terminals:
            await terminals.send_keys(request)

    cli.run(work)
    record = {"pair": pair, "side": request.terminal.side, "keys": list(pressed)}
    cli.screen.answer(
        record,
        lambda: cli.screen.line(f"sent {counted(len(pressed), 'key')} to {request.terminal.side}"),
    )


def screen(
    context: typer.Context,
    side: SideArgument,
    whole: Annotated[
        bool, typer.Option("--whole", help="Print everything that the pane still has.")
    ] = False,
    pair: PairOption = MAIN,
    at: AtOption = "",
    certificates: CertificatesOption = None,
) -> None:
    """Print what a side's terminal shows.

    \b
    Example:
      podium duet screen planner --whole
      podium duet screen executer --pair main
    """
    cli = CliContext(context.obj, lenient=True)
    terminal = terminal_of(pair, side)

    async def work(podium: Podium) -> TerminalPicture:
        async with open_terminals(podium, cli.screen, at, certificates) as terminals:
            return await terminals.capture(terminal, whole=whole)

    picture = cli.run(work)
    cli.screen.answer(
        picture.model_dump(mode="json"), lambda: cli.screen.line("\n".join(picture.lines))
    )


def watch(
    context: typer.Context,
    pair: PairOption = MAIN,
    at: AtOption = "",
    certificates: CertificatesOption = None,
) -> None:
    """Print the status of both sides, and every change, until Ctrl-C. With --json, also what they show.

    \b
    Example:
      podium duet watch --json
      podium duet watch --pair main
    """
    cli = CliContext(context.obj, lenient=True)
    terminal_of(pair, "planner")  # refuses what is no name
    printed: dict[Side, str] = {}

    def print_update(update: TerminalUpdate) -> None:
        state = update.state
        question = (
            f": {escaped_line(state.question, _MAX_QUESTION_CHARACTERS)}" if state.question else ""
        )
        line = f"{state.terminal.side} is {state.status}{question}"
        if printed.get(state.terminal.side) != line:
            printed[state.terminal.side] = line
            cli.screen.line(line)

    async def work(podium: Podium) -> None:
        async with (
            open_terminals(podium, cli.screen, at, certificates) as terminals,
            aclosing(terminals.watch(pair)) as updates,
        ):
            async for update in updates:
                cli.screen.answer(update.model_dump(mode="json"), partial(print_update, update))

    cli.run(work)
