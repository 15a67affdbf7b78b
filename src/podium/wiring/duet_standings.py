"""How pairs stand, as their terminals tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.domain.duets import Pair, PairStanding, Seat, SideStanding
from podium.domain.errors import AgentLost, NotPossibleNow, TimedOut
from podium.domain.terminals import TerminalState
from podium.ports import Terminals
from podium.wiring.duet_pairs import socket_path

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
