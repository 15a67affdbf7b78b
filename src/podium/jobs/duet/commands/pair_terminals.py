"""Terminals that a subcommand talks to (remote, daemon or this process), and the status table of a pair."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from types import ModuleType

from podium.app.app import Podium
from podium.cli.screen import Screen
from podium.core.errors import ToolMissing
from podium.jobs.duet.commands.pair_options import variables_of
from podium.jobs.duet.models import PairStatus
from podium.ports import TerminalPairs
from podium.render.text import escaped_line


def open_terminals(
    podium: Podium, screen: Screen, at: str = "", certificates: Path | None = None
) -> AbstractAsyncContextManager[TerminalPairs]:
    """Open the terminals at `at`; else those of the project's daemon, or its own. Prints why a daemon is not used."""
    from podium.jobs.duet.project_terminals import is_served, terminals_of_project

    variables = variables_of(None)

    def notify(message: str) -> None:
        screen.stderr_line(f"podium: {message}")

    if at or is_served(podium):
        try:
            opened: AbstractAsyncContextManager[TerminalPairs]
            opened = typed_api().open_terminals(podium, variables, at, certificates, notify=notify)
            return opened
        except ToolMissing as missing:
            if at:
                raise
            notify(f"going on without the daemon of `podium duet serve`: {missing}")
    return nullcontext(terminals_of_project(podium, variables))


def typed_api() -> ModuleType:
    """Import the gRPC client and server, an optional extra."""
    try:
        from podium.jobs.duet import daemon
    except ModuleNotFoundError as error:
        raise ToolMissing(
            f"package {error.name!r} is not installed; run `pip install 'podium[duet]'`"
        ) from None
    return daemon


def print_pair_status(screen: Screen, status: PairStatus) -> None:
    """Print one pair."""
    if status.transport == "headless":
        screen.line(f"pair {status.pair}: no terminals, each turn is a call")
        return
    if status.trouble:
        screen.line(f"pair {status.pair}: {status.trouble}")
        return
    if not status.up:
        screen.line(f"pair {status.pair}: not up; start it with `podium duet up`")
        return
    screen.line(
        f"tmux ready: -S {status.socket}, session {status.session} (planner left, executer right)"
    )
    rows = [
        (
            side.side,
            side.agent,
            side.pane,
            side.status,
            escaped_line(side.keyboard.who) if side.keyboard else "podium",
            side.question or side.cwd,
        )
        for side in status.sides
    ]
    screen.table(("SIDE", "AGENT", "PANE", "STATUS", "KEYBOARD", "WHERE"), rows)
