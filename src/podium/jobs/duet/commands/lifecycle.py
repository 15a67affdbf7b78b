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
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.core.errors import LockHeld, NotPossibleNow, Passing, RunMustStop, TimedOut, ToolMissing
from podium.jobs.duet.claims import grant, refuse_ungranted, ungranted
from podium.jobs.duet.commands.pair_options import (
    EnvFileOption,
    PairOption,
    open_terminals,
    pair_in_use,
    print_pair_status,
    variables_of,
)
from podium.jobs.duet.models import Pair, PairStatus
from podium.jobs.duet.pairs import (
    MAIN,
    PairRequest,
    forget_pair,
    has_a_say,
    pair_named,
    save_pair,
    saved_pair,
    socket_path,
)
from podium.jobs.duet.task_table import DuetTask
from podium.render.text import escaped_line

ENDING_SECONDS = 60.0


def up(
    context: typer.Context,
    planner: Annotated[
        str,
        typer.Option(
            metavar="WHO",
            help="Program of the planner: claude, codex, gemini, an agent of podium.yaml, or a command.",
        ),
    ] = "",
    executer: Annotated[
        str, typer.Option(metavar="WHO", help="Program of the executer, as for --planner.")
    ] = "",
    cwd: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder that both work in. Default: the project."),
    ] = None,
    planner_cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder that the planner works in.")
    ] = None,
    executer_cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder that the executer works in.")
    ] = None,
    pair: PairOption = MAIN,
    socket: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the tmux server, as for `tmux -L`.")
    ] = "",
    session: Annotated[str, typer.Option(metavar="NAME", help="Name of the tmux session.")] = "",
    transport: Annotated[
        Literal["tui", "headless"] | None,
        typer.Option(help="tui: live terminals. headless: one agent call per turn."),
    ] = None,
    env_file: EnvFileOption = None,
    granted: Annotated[
        bool, typer.Option("--grant", help="Let both programs read and change these folders.")
    ] = False,
) -> None:
    """Start a pair: a tmux session with two panes, each with a program that knows its role.

    The planner is on the left, the executer on the right. Programs that are already up are kept. A duet
    works in your own folder, so each folder has to be granted once. PLANNER_CMD, PLANNER_CWD,
    EXECUTER_CMD, EXECUTER_CWD, POLI_TMUX_SOCKET and POLI_TMUX_SESSION apply where no option is passed.

    \b
    Example:
      podium duet up --grant
      podium duet up --planner claude --executer codex --cwd ~/proj --grant
      podium duet up --env-file config/poli.env
    """
    cli = CliContext(context.obj)
    variables = variables_of(env_file)
    request = PairRequest(
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
        resolved = _resolved_pair(podium, pair, request, variables)
        _see_to_grant(podium, cli.screen, resolved, granted=granted)
        with _saved(podium, resolved):
            return await _brought_up(podium, cli.screen, resolved)

    status = cli.run(work)
    cli.screen.answer(status.model_dump(mode="json"), lambda: print_pair_status(cli.screen, status))


def attach(
    context: typer.Context,
    pair: PairOption = MAIN,
    read_only: Annotated[
        bool, typer.Option("--read-only", "-r", help="Only watch; keys have no effect.")
    ] = False,
) -> None:
    """Attach to a pair's tmux session. `Ctrl-b d` detaches; the pair keeps running.

    \b
    Example:
      podium duet attach -r
      podium duet attach --pair main
    """
    cli = CliContext(context.obj, lenient=True)
    resolved = pair_in_use(Podium(cli.configuration, os.environ), pair, variables_of(None))
    if resolved.transport == "headless":
        raise NotPossibleNow(
            f"pair {pair!r} has no terminals; see its messages with `podium duet log`"
        )
    socket = socket_path(resolved.socket, os.environ)
    if not socket.exists():
        raise NotPossibleNow(f"pair {pair!r} is not up; start it with `podium duet up`")
    if not sys.stdin.isatty():
        raise NotPossibleNow("not a terminal; print a pane with `podium duet screen SIDE`")
    flags = ["-r"] if read_only else []
    attach = ("attach-session", *flags, "-t", f"={resolved.session}")
    hint = (
        "display-message",
        "-d",
        "5000",
        "Ctrl-b o: other side · Ctrl-b d: detach, the pair keeps running",
    )
    argv = ["tmux", "-u", "-S", str(socket), *attach, ";", *hint]
    try:
        # Becomes tmux: a person's own terminal is no child to be confined.
        os.execvp(argv[0], argv)  # noqa: S606 — see above
    except FileNotFoundError:
        raise ToolMissing("'tmux' is not installed; install it to view panes") from None


def down(
    context: typer.Context,
    pair: PairOption = MAIN,
    force: Annotated[
        bool, typer.Option("--force", help="Also during a task, which is ended first.")
    ] = False,
) -> None:
    """Stop a pair's programs and its tmux server, and remove their state. Does nothing if the pair is not up.

    \b
    Example:
      podium duet down
      podium duet down --pair main --force
    """
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> Pair:
        from podium.jobs.duet.terminals import take_down

        resolved = pair_in_use(podium, pair, variables_of(None))
        for task in await _tasks_of(podium, pair):
            if not force:
                raise LockHeld(
                    f"pair {pair!r} is working on task {task.task_id}; end it with `podium duet abort {task.task_id}`, "
                    "or pass --force"
                )
            await _ended(podium, task, cli.user)
        if resolved.transport == "tui":
            await take_down(podium, resolved)
        forget_pair(podium, pair)
        return resolved

    cli.run(work)
    cli.screen.answer({"pair": pair, "up": False}, lambda: cli.screen.line(f"pair {pair} is down"))


def _resolved_pair(
    podium: Podium, name: str, request: PairRequest, variables: Mapping[str, str]
) -> Pair:
    """Return the pair as it was brought up, unless options or variables describe another."""
    saved = saved_pair(podium, name)
    if saved is not None and not has_a_say(request, variables):
        return saved
    return pair_named(podium, name, request, variables)


async def _tasks_of(podium: Podium, pair: str) -> list[DuetTask]:
    from podium.jobs.duet.task_table import list_duets

    if not podium.has_record:
        return []
    return [task for task in await list_duets(await podium.store()) if task.pair == pair]


async def _ended(podium: Podium, task: DuetTask, by: str) -> None:
    """End the task first: it would bring the pair up again."""
    from podium.app.run_control import cancel, see_through

    store, engine = await podium.store(), await podium.engine()
    run = await cancel(store, engine, task.run_id, by=by, why="its pair was taken down")
    if not run.status.ended:
        try:
            await asyncio.wait_for(see_through(engine, run, wait=True), ENDING_SECONDS)
        except TimeoutError:
            raise TimedOut(
                f"task {task.task_id} has not ended within {ENDING_SECONDS:g} s of its cancellation; see its host with `podium show {task.task_id}`"
            ) from None


@contextmanager
def _saved(podium: Podium, pair: Pair) -> Iterator[None]:
    """Save the pair before it is brought up, since a daemon reads it there; restore the previous one on failure."""
    before = saved_pair(podium, pair.name)
    save_pair(podium, pair)
    try:
        yield
    except (RunMustStop, Passing):
        # It is up in part, and its panes can be inspected.
        raise
    except BaseException:
        if before is None:
            forget_pair(podium, pair.name)
        else:
            save_pair(podium, before)
        raise


async def _brought_up(podium: Podium, screen: Screen, pair: Pair) -> PairStatus:
    if pair.transport == "headless":
        return PairStatus(pair=pair.name, transport="headless", up=True)
    from podium.jobs.duet.project_terminals import status_from_states

    async with open_terminals(podium, screen) as terminals:
        return status_from_states(podium, pair, await terminals.start(pair.name))


def _see_to_grant(podium: Podium, screen: Screen, pair: Pair, *, granted: bool) -> None:
    missing = ungranted(podium, pair)
    if not missing:
        return
    asked = not granted and not screen.json and typer.get_text_stream("stdin").isatty()
    if asked:
        for folder in missing:
            screen.stderr_line(
                f"both programs will be able to read and change everything in {escaped_line(folder)}"
            )
        granted = typer.confirm("Grant access?", err=True)
    if granted:
        grant(podium, pair)
    refuse_ungranted(podium, pair)
