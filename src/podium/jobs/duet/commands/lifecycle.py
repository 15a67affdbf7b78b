"""Subcommands `up`, `attach` and `down`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from podium.app.app import Podium
from podium.cli.context import Door
from podium.cli.screen import Screen
from podium.core.errors import LockHeld, NotPossibleNow, Passing, RunMustStop, TimedOut, ToolMissing
from podium.jobs.duet.claims import grant, refuse_ungranted, ungranted
from podium.jobs.duet.commands.pair_options import (
    MAIN,
    EnvFileOption,
    PairOption,
    pair_in_use,
    variables_of,
)
from podium.jobs.duet.commands.pair_terminals import found_terminals, tell_standing
from podium.jobs.duet.models import Pair, PairStatus
from podium.jobs.duet.pairs import (
    PairRequest,
    forget_pair,
    has_a_say,
    keep_pair,
    kept_pair,
    pair_named,
    socket_path,
)
from podium.jobs.duet.task_table import DuetTask
from podium.render.text import shown_line

ENDING_SECONDS = 60.0


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
    planner_cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the planner works.")
    ] = None,
    executer_cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the executer works.")
    ] = None,
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
    wishes = PairRequest(
        planner=planner,
        executer=executer,
        cwd=str(cwd or ""),
        planner_cwd=str(planner_cwd or ""),
        executer_cwd=str(executer_cwd or ""),
        socket=socket,
        session=session,
        transport=transport,
    )

    async def work(podium: Podium) -> PairStatus:
        wanted = _wanted(podium, pair, wishes, variables)
        _see_to_grant(podium, door.screen, wanted, granted=granted)
        with _kept(podium, wanted):
            return await _brought_up(podium, door.screen, wanted)

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
    if not sys.stdin.isatty():
        raise NotPossibleNow("attaching needs a terminal; `podium duet screen SIDE` prints one")
    flags = ["-r"] if read_only else []
    attach = ("attach-session", *flags, "-t", f"={found.session}")
    hint = (
        "display-message",
        "-d",
        "5000",
        "Ctrl-b o: the other side · Ctrl-b d: leave, the pair goes on",
    )
    argv = ["tmux", "-u", "-S", str(socket), *attach, ";", *hint]
    try:
        # Becomes tmux: a person's own terminal is no child to be confined.
        os.execvp(argv[0], argv)  # noqa: S606 — see above
    except FileNotFoundError:
        raise ToolMissing("'tmux' is not there; install it to look at panes") from None


def down(
    context: typer.Context,
    pair: PairOption = MAIN,
    force: Annotated[
        bool, typer.Option("--force", help="Also in the middle of a task, which is ended first.")
    ] = False,
) -> None:
    """End a pair's programs and its tmux server, and remove what they kept. Harmless when it is not up.

    \b
    Example:
      podium duet down
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> Pair:
        from podium.jobs.duet.terminals import take_down

        found = pair_in_use(podium, pair, variables_of(None))
        for task in await _tasks_of(podium, pair):
            if not force:
                raise LockHeld(
                    f"pair {pair!r} works on task {task.task_id}; `podium duet abort {task.task_id}` ends that first, "
                    "or say --force"
                )
            await _ended(podium, task, door.user)
        if found.transport == "tui":
            await take_down(podium, found)
        forget_pair(podium, pair)
        return found

    door.run(work)
    door.screen.answer(
        {"pair": pair, "up": False}, lambda: door.screen.line(f"pair {pair} is down")
    )


def _wanted(podium: Podium, name: str, wishes: PairRequest, variables: Mapping[str, str]) -> Pair:
    """The pair as it was brought up, where nothing else is said."""
    kept = kept_pair(podium, name)
    if kept is not None and not has_a_say(wishes, variables):
        return kept
    return pair_named(podium, name, wishes, variables)


async def _tasks_of(podium: Podium, pair: str) -> list[DuetTask]:
    from podium.jobs.duet.task_table import see_duets

    if not podium.has_record:
        return []
    return [task for task in await see_duets(await podium.store()) if task.pair == pair]


async def _ended(podium: Podium, task: DuetTask, by: str) -> None:
    """First the task, which would else bring the pair up again."""
    from podium.app.run_control import cancel, see_through

    store, engine = await podium.store(), await podium.engine()
    run = await cancel(store, engine, task.run_id, by=by, why="its pair was taken down")
    if not run.status.ended:
        try:
            await asyncio.wait_for(see_through(engine, run, wait=True), ENDING_SECONDS)
        except TimeoutError:
            raise TimedOut(
                f"task {task.task_id} was told to end and has not yet; `podium show {task.task_id}` says who hosts it"
            ) from None


@contextmanager
def _kept(podium: Podium, pair: Pair) -> Iterator[None]:
    """Remember the pair before it is brought up, since a daemon knows it from there; what was refused is forgotten."""
    before = kept_pair(podium, pair.name)
    keep_pair(podium, pair)
    try:
        yield
    except (RunMustStop, Passing):
        # It did not come up whole, but its panes can be looked at.
        raise
    except BaseException:
        if before is None:
            forget_pair(podium, pair.name)
        else:
            keep_pair(podium, before)
        raise


async def _brought_up(podium: Podium, screen: Screen, pair: Pair) -> PairStatus:
    if pair.transport == "headless":
        return PairStatus(pair=pair.name, transport="headless", up=True)
    from podium.jobs.duet.project_terminals import standing_told

    async with found_terminals(podium, screen) as terminals:
        return standing_told(podium, pair, await terminals.start(pair.name))


def _see_to_grant(podium: Podium, screen: Screen, pair: Pair, *, granted: bool) -> None:
    missing = ungranted(podium, pair)
    if not missing:
        return
    asked = not granted and not screen.json and typer.get_text_stream("stdin").isatty()
    if asked:
        for folder in missing:
            screen.stderr_line(
                f"both programs may read and change everything in {shown_line(folder)}"
            )
        granted = typer.confirm("grant it?", err=True)
    if granted:
        grant(podium, pair)
    refuse_ungranted(podium, pair)
