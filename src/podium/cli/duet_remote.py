"""`podium duet serve`, `keys`, `screen` and `watch`: the typed API, from both ends."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.door import Door
from podium.cli.duet_finding import found_terminals, typed_api
from podium.cli.duet_keyboard import SideArgument, as_given, is_held_by, mirror_of, terminal_of
from podium.cli.duet_pairing import MAIN, PairOption, variables_of
from podium.domain.messages import Side
from podium.domain.terminals import KeysPressed, TerminalNews, TerminalPicture
from podium.telling.untrusted import shown_line
from podium.wiring import Podium

AtOption = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="WHERE",
        help="Another Podium: its socket, also one that SSH forwards, or HOST:PORT.",
    ),
]
PapersOption = Annotated[
    Path | None,
    typer.Option(
        "--papers",
        metavar="DIR",
        help="key.pem, certificate.pem and authority.pem, for HOST:PORT.",
    ),
]
_LONGEST_SHOWN = 200


def serve(
    context: typer.Context,
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Also for other machines, by TLS on both ends."
        ),
    ] = "",
    papers: PapersOption = None,
) -> None:
    """Let other programs see and steer the terminals of this project, until Ctrl-C.

    \b
    Example:
      podium duet serve
      podium duet serve --listen 10.0.0.5:7443 --papers ~/papers
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> None:
        served = typed_api().served_terminals(podium, variables_of(None), listen, papers)
        async with served as where:
            record = {"type": "served", "at": where}
            door.screen.answer(record, lambda: door.screen.line(f"served at {', '.join(where)}"))
            await asyncio.Event().wait()

    door.run(work)


def keys(
    context: typer.Context,
    side: SideArgument,
    pressed: Annotated[
        list[str],
        typer.Argument(metavar="KEY…", help="As tmux names them; other words are typed."),
    ],
    pair: PairOption = MAIN,
    at: AtOption = "",
    papers: PapersOption = None,
) -> None:
    """Press keys in a side's terminal, whatever it is at.

    \b
    Example:
      podium duet keys executer y Enter
    """
    door = Door(context.obj)
    terminal = terminal_of(pair, side)
    with as_given():
        wish = KeysPressed(terminal=terminal, keys=tuple(pressed))

    async def work(podium: Podium) -> None:
        if not at and await is_held_by(podium, terminal, door.user):
            await mirror_of(podium).press(wish.model_copy(update={"who": door.user}))
            return
        async with found_terminals(podium, door.screen, at, papers) as terminals:
            await terminals.send_keys(wish)

    door.run(work)
    record = {"pair": pair, "side": wish.terminal.side, "keys": list(pressed)}
    door.screen.answer(record, lambda: door.screen.line(f"pressed in {wish.terminal.side}"))


def screen(
    context: typer.Context,
    side: SideArgument,
    whole: Annotated[
        bool, typer.Option("--whole", help="Everything that its pane still has.")
    ] = False,
    pair: PairOption = MAIN,
    at: AtOption = "",
    papers: PapersOption = None,
) -> None:
    """Print what a side's terminal shows.

    \b
    Example:
      podium duet screen planner --whole
    """
    door = Door(context.obj, lenient=True)
    terminal = terminal_of(pair, side)

    async def work(podium: Podium) -> TerminalPicture:
        async with found_terminals(podium, door.screen, at, papers) as terminals:
            return await terminals.capture(terminal, whole=whole)

    picture = door.run(work)
    door.screen.answer(
        picture.model_dump(mode="json"), lambda: door.screen.line("\n".join(picture.lines))
    )


def watch(
    context: typer.Context,
    pair: PairOption = MAIN,
    at: AtOption = "",
    papers: PapersOption = None,
) -> None:
    """Print how both sides stand, and whatever changes, until Ctrl-C. With --json what they show, too.

    \b
    Example:
      podium duet watch --json
    """
    door = Door(context.obj, lenient=True)
    terminal_of(pair, "planner")  # refuses what is no name
    known: dict[Side, str] = {}

    def tell(news: TerminalNews) -> None:
        state = news.state
        question = f": {shown_line(state.question, _LONGEST_SHOWN)}" if state.question else ""
        words = f"{state.terminal.side} is {state.status}{question}"
        if known.get(state.terminal.side) != words:
            known[state.terminal.side] = words
            door.screen.line(words)

    async def work(podium: Podium) -> None:
        async with (
            found_terminals(podium, door.screen, at, papers) as terminals,
            aclosing(terminals.watch(pair)) as told,
        ):
            async for news in told:
                door.screen.answer(news.model_dump(mode="json"), partial(tell, news))

    door.run(work)
