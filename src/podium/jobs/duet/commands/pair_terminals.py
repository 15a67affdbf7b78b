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
from podium.render.text import shown_line


def found_terminals(
    podium: Podium, screen: Screen, at: str = "", papers: Path | None = None
) -> AbstractAsyncContextManager[TerminalPairs]:
    """Those at `at`; else those of the daemon that serves this project, or its own. Why a daemon is not used is told."""
    from podium.jobs.duet.project_terminals import is_served, terminals_of_project

    variables = variables_of(None)

    def tell(words: str) -> None:
        screen.stderr_line(f"podium: {words}")

    if at or is_served(podium):
        try:
            found: AbstractAsyncContextManager[TerminalPairs]
            found = typed_api().found_terminals(podium, variables, at, papers, tell=tell)
            return found
        except ToolMissing as missing:
            if at:
                raise
            tell(f"going on without the daemon of `podium duet serve`: {missing}")
    return nullcontext(terminals_of_project(podium, variables))


def typed_api() -> ModuleType:
    """Late, and only for those who installed it."""
    try:
        from podium.jobs.duet import daemon
    except ModuleNotFoundError as error:
        raise ToolMissing(
            f"this needs the package {error.name!r}: `pip install 'podium[duet]'`"
        ) from None
    return daemon


def tell_standing(screen: Screen, standing: PairStatus) -> None:
    """One pair, for people."""
    if standing.transport == "headless":
        screen.line(f"pair {standing.pair}: no terminals, each turn is a call")
        return
    if standing.trouble:
        screen.line(f"pair {standing.pair}: {standing.trouble}")
        return
    if not standing.up:
        screen.line(f"pair {standing.pair}: not up; `podium duet up` brings it up")
        return
    screen.line(
        f"tmux ready: -S {standing.socket}, session {standing.session} (planner left, executer right)"
    )
    rows = [
        (
            side.side,
            side.agent,
            side.pane,
            side.status,
            shown_line(side.keyboard.who) if side.keyboard else "podium",
            side.question or side.cwd,
        )
        for side in standing.sides
    ]
    screen.table(("SIDE", "AGENT", "PANE", "STATUS", "KEYBOARD", "WHERE"), rows)
