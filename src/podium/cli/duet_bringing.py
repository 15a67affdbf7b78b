"""`podium duet up`, `attach` and `down`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from podium.cli.door import Door
from podium.cli.duet_pairing import MAIN, EnvFileOption, PairOption, pair_in_use, variables_of
from podium.cli.screen import Screen
from podium.cli.untrusted import shown_line
from podium.domain.duets import Pair, PairStanding
from podium.domain.errors import LockHeld, NotPossibleNow, ToolMissing
from podium.wiring import Podium
from podium.wiring.duet_grants import grant, refuse_ungranted, ungranted
from podium.wiring.duet_pairs import (
    PairWishes,
    forget_pair,
    has_a_say,
    keep_pair,
    kept_pair,
    pair_named,
    socket_path,
)


def up(
    context: typer.Context,
    planner: Annotated[
        str,
        typer.Option(
            metavar="WHO", help="claude, codex, gemini, an agent of podium.yaml, or a command."
        ),
    ] = "",
    executer: Annotated[str, typer.Option(metavar="WHO", help="The same for the executer.")] = "",
    cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where both work. Else the project.")
    ] = None,
    planner_cwd: Annotated[Path | None, typer.Option(metavar="DIR")] = None,
    executer_cwd: Annotated[Path | None, typer.Option(metavar="DIR")] = None,
    pair: PairOption = MAIN,
    socket: Annotated[str, typer.Option(metavar="NAME", help="Of the tmux server: -L NAME.")] = "",
    session: Annotated[str, typer.Option(metavar="NAME", help="Of the tmux session.")] = "",
    transport: Annotated[
        Literal["tui", "headless"] | None,
        typer.Option(help="Live terminals, or a call of the agent for each turn."),
    ] = None,
    env_file: EnvFileOption = None,
    granted: Annotated[
        bool, typer.Option("--grant", help="Let them work in these folders, which are your own.")
    ] = False,
) -> None:
    """Bring a pair up: its tmux session, two panes, two programs that are ready and know their part.

    The planner is left, the executer right. What is up already stays as it is. A duet works in your own
    folder, so each folder has to be granted once. PLANNER_CMD, PLANNER_CWD, EXECUTER_CMD, EXECUTER_CWD,
    POLI_TMUX_SOCKET and POLI_TMUX_SESSION count where no option says otherwise.

    \b
    Example:
      podium duet up --grant
      podium duet up --planner claude --executer codex --cwd ~/proj --grant
      podium duet up --env-file config/poli.env
    """
    door = Door(context.obj)
    variables = variables_of(env_file)
    wishes = PairWishes(
        planner=planner,
        executer=executer,
        cwd=str(cwd or ""),
        planner_cwd=str(planner_cwd or ""),
        executer_cwd=str(executer_cwd or ""),
        socket=socket,
        session=session,
        transport=transport,
    )

    async def work(podium: Podium) -> PairStanding:
        wanted = await _wanted(podium, pair, wishes, variables)
        _see_to_grant(podium, door.screen, wanted, granted=granted)
        standing = await _brought_up(podium, wanted)
        keep_pair(podium, wanted)
        return standing

    standing = door.run(work)
    door.screen.answer(
        standing.model_dump(mode="json"), lambda: tell_standing(door.screen, standing)
    )


def attach(
    context: typer.Context,
    pair: PairOption = MAIN,
    read_only: Annotated[
        bool, typer.Option("--read-only", "-r", help="Look on without touching anything.")
    ] = False,
) -> None:
    """Look at a pair's panes, as they are. `Ctrl-b d` leaves; the pair goes on.

    \b
    Example:
      podium duet attach -r
    """
    door = Door(context.obj, lenient=True)
    found = pair_in_use(Podium(door.configuration, os.environ), pair, variables_of(None))
    if found.transport == "headless":
        raise NotPossibleNow(
            f"pair {pair!r} has no terminals; `podium duet log` shows what it says"
        )
    socket = socket_path(found.socket, os.environ)
    if not socket.exists():
        raise NotPossibleNow(f"pair {pair!r} is not up; `podium duet up` brings it up")
    flags = ["-r"] if read_only else []
    argv = ["tmux", "-S", str(socket), "attach-session", *flags, "-t", f"={found.session}"]
    try:
        # Becomes tmux: a person's own terminal is no child to be confined.
        os.execvp(argv[0], argv)  # noqa: S606 — see above
    except FileNotFoundError:
        raise ToolMissing("'tmux' is not there; install it to look at panes") from None


def down(
    context: typer.Context,
    pair: PairOption = MAIN,
    force: Annotated[
        bool, typer.Option("--force", help="Also in the middle of a task, which then fails.")
    ] = False,
) -> None:
    """End a pair's programs and its tmux server, and remove what they kept. Harmless when it is not up.

    \b
    Example:
      podium duet down
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> Pair:
        from podium.wiring.duet_terminals import take_down

        found = pair_in_use(podium, pair, variables_of(None))
        if not force:
            await _refuse_busy(podium, pair)
        if found.transport == "tui":
            await take_down(podium, found)
        forget_pair(podium, pair)
        return found

    door.run(work)
    door.screen.answer(
        {"pair": pair, "up": False}, lambda: door.screen.line(f"pair {pair} is down")
    )


async def _wanted(
    podium: Podium, name: str, wishes: PairWishes, variables: Mapping[str, str]
) -> Pair:
    """The pair as it is up, where nothing else is said. Raises `NotPossibleNow` where something else is."""
    kept = kept_pair(podium, name)
    if kept is not None and not has_a_say(wishes, variables):
        return kept
    wanted = pair_named(podium, name, wishes, variables)
    if kept is None or kept == wanted or kept.transport == "headless":
        return wanted
    from podium.wiring.duet_terminals import standing_of

    if (await standing_of(podium, kept)).up:
        raise NotPossibleNow(
            f"pair {name!r} is up with other programs or folders; `podium duet down` ends it, then bring it up anew"
        )
    return wanted


async def _refuse_busy(podium: Podium, pair: str) -> None:
    from podium.usecases import see_duets

    if not podium.has_record:
        return
    for task in await see_duets(await podium.store()):
        if task.pair == pair:
            raise LockHeld(
                f"pair {pair!r} works on task {task.task_id}; `podium duet abort {task.task_id}` ends that first, "
                "or say --force"
            )


async def _brought_up(podium: Podium, pair: Pair) -> PairStanding:
    if pair.transport == "headless":
        return PairStanding(pair=pair.name, transport="headless", up=True)
    from podium.wiring.duet_terminals import bring_up

    return await bring_up(podium, pair)


def _see_to_grant(podium: Podium, screen: Screen, pair: Pair, *, granted: bool) -> None:
    missing = ungranted(podium, pair)
    if not missing:
        return
    asked = not granted and not screen.json and typer.get_text_stream("stdin").isatty()
    if asked:
        for folder in missing:
            screen.aside(f"both programs may read and change everything in {shown_line(folder)}")
        granted = typer.confirm("grant it?", err=True)
    if granted:
        grant(podium, pair)
    refuse_ungranted(podium, pair)


def tell_standing(screen: Screen, standing: PairStanding) -> None:
    """One pair, for people."""
    if standing.transport == "headless":
        screen.line(f"pair {standing.pair}: no terminals, each turn is a call")
        return
    if not standing.up:
        screen.line(f"pair {standing.pair}: not up; `podium duet up` brings it up")
        return
    screen.line(
        f"tmux ready: -S {standing.socket}, session {standing.session} (planner left, executer right)"
    )
    rows = [
        (each.side, each.agent, each.pane, each.status, each.question or each.cwd)
        for each in standing.sides
    ]
    screen.table(("SIDE", "AGENT", "PANE", "STATUS", "WHERE"), rows)
