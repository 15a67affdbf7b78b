"""How pairs stand, as their terminals tell."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.domain.duets import Pair, PairStanding, Seat, SideStanding
from podium.domain.errors import AgentLost, NotPossibleNow, TimedOut
from podium.domain.terminals import Terminal, TerminalState
from podium.ports import Terminals
from podium.wiring.duet_pairs import SIDES, socket_path, terminal_kind

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


async def pair_standing(
    podium: Podium, pair: Pair, terminals: Terminals | None = None
) -> PairStanding:
    """How a pair stands, by these terminals or the project's own. Starts nothing; why one cannot be looked at stands in its `trouble`."""
    if pair.transport == "headless":
        return PairStanding(pair=pair.name, transport="headless", up=True)
    from podium.wiring.duet_api import terminals_of_project
    from podium.wiring.duet_claims import as_claimed

    terminals = terminals or terminals_of_project(podium, podium.environ)
    try:
        return standing_told(podium, as_claimed(podium, pair), await terminals.states(pair.name))
    except (AgentLost, NotPossibleNow, TimedOut) as trouble:
        return PairStanding(pair=pair.name, transport="tui", trouble=str(trouble))


def absent_standing(podium: Podium, pair: Pair) -> PairStanding | None:
    """How a pair stands of which there is neither a server nor a record: told without the code that reads terminals.

    None: it has to be looked at.
    """
    from podium.wiring.duet_claims import pair_folder

    if pair.transport == "headless":
        return None
    places = (socket_path(pair.socket, podium.environ), pair_folder(podium, pair))
    if any(os.path.lexists(place) for place in places):
        return None
    states = [
        TerminalState(
            terminal=Terminal(pair=pair.name, side=side),
            agent=terminal_kind(podium, side, pair.seat(side)),
            status="gone",
        )
        for side in SIDES
    ]
    return standing_told(podium, pair, states)


def standing_told(podium: Podium, pair: Pair, states: Sequence[TerminalState]) -> PairStanding:
    """The pair with who sits where, and what its terminals tell of both."""
    sides = tuple(_side_standing(pair.seat(each.terminal.side), each) for each in states)
    return PairStanding(
        pair=pair.name,
        transport="tui",
        socket=str(socket_path(pair.socket, podium.environ)),
        session=pair.session,
        up=any(each.pane for each in sides),
        sides=sides,
    )


def _side_standing(seat: Seat, state: TerminalState) -> SideStanding:
    gone = "dead" if state.pane else "down"
    return SideStanding(
        side=state.terminal.side,
        agent=seat.agent,
        pane=state.pane,
        status=gone if state.status == "gone" else state.status,
        question=state.question,
        session=state.session,
        cwd=seat.cwd,
        keyboard=state.keyboard,
    )
