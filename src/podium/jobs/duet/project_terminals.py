"""Terminals of all pairs of a project behind the ports `TerminalPairs` and `PaneMirror`, and the status of each pair."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.local_sockets import local_socket, socket_path_of
from podium.core.errors import AgentLost, NotPossibleNow, TimedOut
from podium.core.terminals import Terminal, TerminalState
from podium.jobs.duet.claims import refuse_ungranted
from podium.jobs.duet.models import Pair, PairSide, PairStatus, SideStatus
from podium.jobs.duet.pairs import (
    MAIN,
    SIDES,
    PairRequest,
    kept_pair,
    pair_named,
    socket_path,
    terminal_kind,
)
from podium.ports import PaneMirror, TerminalPairs

if TYPE_CHECKING:
    from podium.agents.tui import TerminalPair
    from podium.app.app import Podium


def terminals_of_project(podium: Podium, variables: Mapping[str, str]) -> TerminalPairs:
    """Its pairs by their names: as they were brought up last, else as podium.yaml and these variables have them."""
    from podium.agents.tui import SteeredPairs
    from podium.jobs.duet.terminals import pair_held, pair_seen, pair_up

    def named(name: str) -> Pair:
        return kept_pair(podium, name) or pair_named(podium, name, PairRequest(), variables)

    def granted(name: str) -> Pair:
        pair = named(name)
        refuse_ungranted(podium, pair)
        return pair

    return SteeredPairs(
        observed=lambda name: pair_seen(podium, named(name)),
        seated=lambda name: pair_held(podium, granted(name)),
        up=lambda name: pair_up(podium, granted(name)),
    )


def mirror_of_project(podium: Podium, variables: Mapping[str, str]) -> PaneMirror:
    """Its pairs for people who look on; see `terminals_of_project` for which. Starts nothing."""
    from podium.agents.tui import MirroredPairs
    from podium.jobs.duet.terminals import pair_seen

    @asynccontextmanager
    async def hold(name: str) -> AsyncIterator[TerminalPair]:
        pair = kept_pair(podium, name) or pair_named(podium, name, PairRequest(), variables)
        async with pair_seen(podium, pair) as held:
            yield held

    return MirroredPairs(hold)


def api_socket(podium: Podium) -> Path:
    """Where the project's API is served."""
    return local_socket(podium.folders.project, podium.environ, "api")


def is_served(podium: Podium) -> bool:
    """Whether a daemon serves there, or one that was killed left its socket. Makes nothing."""
    try:
        return socket_path_of(podium.folders.project, podium.environ, "api").exists()
    except OSError:  # a folder of somebody else
        return False


def settings_digest(podium: Podium) -> str:
    """The same for processes that would start the same programs in the same places."""
    places = [str(podium.folders.user_state), str(socket_path(MAIN, podium.environ))]
    # Where programs and their logins are found. Secrets are not told from, not even by a digest that others see.
    found_by = [podium.environ.get(name, "") for name in ("PATH", "HOME")]
    told = json.dumps([podium.configuration.record(), places, found_by], sort_keys=True)
    return hashlib.sha256(told.encode(errors="replace")).hexdigest()


async def pair_standing(
    podium: Podium, pair: Pair, terminals: TerminalPairs | None = None
) -> PairStatus:
    """How a pair stands, by these terminals or the project's own. Starts nothing; why one cannot be looked at stands in its `trouble`."""
    if pair.transport == "headless":
        return PairStatus(pair=pair.name, transport="headless", up=True)

    from podium.jobs.duet.claims import as_claimed

    terminals = terminals or terminals_of_project(podium, podium.environ)
    try:
        return standing_told(podium, as_claimed(podium, pair), await terminals.states(pair.name))
    except (AgentLost, NotPossibleNow, TimedOut) as trouble:
        return PairStatus(pair=pair.name, transport="tui", trouble=str(trouble))


def absent_standing(podium: Podium, pair: Pair) -> PairStatus | None:
    """How a pair stands of which there is neither a server nor a record: told without the code that reads terminals.

    None: it has to be looked at.
    """
    from podium.jobs.duet.claims import pair_folder

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


def standing_told(podium: Podium, pair: Pair, states: Sequence[TerminalState]) -> PairStatus:
    """The pair with who sits where, and what its terminals tell of both."""
    sides = tuple(_side_standing(pair.seat(state.terminal.side), state) for state in states)
    return PairStatus(
        pair=pair.name,
        transport="tui",
        socket=str(socket_path(pair.socket, podium.environ)),
        session=pair.session,
        up=any(side.pane for side in sides),
        sides=sides,
    )


def _side_standing(seat: PairSide, state: TerminalState) -> SideStatus:
    gone = "dead" if state.pane else "down"
    return SideStatus(
        side=state.terminal.side,
        agent=seat.agent,
        pane=state.pane,
        status=gone if state.status == "gone" else state.status,
        question=state.question,
        session=state.session,
        cwd=seat.cwd,
        keyboard=state.keyboard,
    )
