"""How a pair stands, in words for people."""

from __future__ import annotations

from podium.cli.screen import Screen
from podium.domain.duets import PairStanding
from podium.telling.untrusted import shown_line


def tell_standing(screen: Screen, standing: PairStanding) -> None:
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
            each.side,
            each.agent,
            each.pane,
            each.status,
            shown_line(each.keyboard.who) if each.keyboard else "podium",
            each.question or each.cwd,
        )
        for each in standing.sides
    ]
    screen.table(("SIDE", "AGENT", "PANE", "STATUS", "KEYBOARD", "WHERE"), rows)
