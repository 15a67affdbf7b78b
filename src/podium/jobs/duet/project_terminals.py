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
    pair_named,
    saved_pair,
    socket_path,
    terminal_kind,
)
from podium.ports import PaneMirror, TerminalPairs

if TYPE_CHECKING:
    from podium.agents.tui import TerminalPair
    from podium.app.app import Podium


def terminals_of_project(podium: Podium, variables: Mapping[str, str]) -> TerminalPairs:
    """Build access to pairs by name: as they were brought up last, else as podium.yaml and these variables say."""
    from podium.agents.tui import SteeredPairs
    from podium.jobs.duet.terminals import observed_pair, pair_held, pair_up

    def named(name: str) -> Pair:
        return saved_pair(podium, name) or pair_named(podium, name, PairRequest(), variables)

    def granted(name: str) -> Pair:
        pair = named(name)
        refuse_ungranted(podium, pair)
        return pair

    return SteeredPairs(
        observed=lambda name: observed_pair(podium, named(name)),
        seated=lambda name: pair_held(podium, granted(name)),
        up=lambda name: pair_up(podium, granted(name)),
    )


def mirror_of_project(podium: Podium, variables: Mapping[str, str]) -> PaneMirror:
    """Build the mirror of panes, with the same pairs as `terminals_of_project`. Starts nothing."""
    from podium.agents.tui import MirroredPairs
    from podium.jobs.duet.terminals import observed_pair

    @asynccontextmanager
    async def hold(name: str) -> AsyncIterator[TerminalPair]:
        pair = saved_pair(podium, name) or pair_named(podium, name, PairRequest(), variables)
        async with observed_pair(podium, pair) as held:
            yield held

    return MirroredPairs(hold)


def api_socket(podium: Podium) -> Path:
    """Return the socket of the project's API."""
    return local_socket(podium.folders.project, podium.environ, "api")


def is_served(podium: Podium) -> bool:
    """Check if a daemon serves the project, or a killed one left its socket. Creates nothing."""
    try:
        return socket_path_of(podium.folders.project, podium.environ, "api").exists()
    except OSError:  # a folder of somebody else
        return False


def settings_digest(podium: Podium) -> str:
    """Hash the settings: equal for processes that would start the same programs in the same folders."""
    paths = [str(podium.folders.user_state), str(socket_path(MAIN, podium.environ))]
    # Lookup of programs and logins. No secrets: others see the digest.
    search_variables = [podium.environ.get(name, "") for name in ("PATH", "HOME")]
    document = json.dumps([podium.configuration.record(), paths, search_variables], sort_keys=True)
    return hashlib.sha256(document.encode(errors="replace")).hexdigest()


async def pair_status(
    podium: Podium, pair: Pair, terminals: TerminalPairs | None = None
) -> PairStatus:
    """Read the status of a pair by these terminals or the project's own. Starts nothing; errors become its `trouble`."""
    if pair.transport == "headless":
        return PairStatus(pair=pair.name, transport="headless", up=True)

    from podium.jobs.duet.claims import as_claimed

    terminals = terminals or terminals_of_project(podium, podium.environ)
    try:
        return status_from_states(
            podium, as_claimed(podium, pair), await terminals.states(pair.name)
        )
    except (AgentLost, NotPossibleNow, TimedOut) as error:
        return PairStatus(pair=pair.name, transport="tui", trouble=str(error))


def absent_pair_status(podium: Podium, pair: Pair) -> PairStatus | None:
    """Return the status of a pair without server or record, without importing the code that reads terminals.

    None: it has one of these and must be read.
    """
    from podium.jobs.duet.claims import pair_folder

    if pair.transport == "headless":
        return None
    paths = (socket_path(pair.socket, podium.environ), pair_folder(podium, pair))
    if any(os.path.lexists(path) for path in paths):
        return None
    states = [
        TerminalState(
            terminal=Terminal(pair=pair.name, side=side),
            agent=terminal_kind(podium, side, pair.slot(side)),
            status="gone",
        )
        for side in SIDES
    ]
    return status_from_states(podium, pair, states)


def status_from_states(podium: Podium, pair: Pair, states: Sequence[TerminalState]) -> PairStatus:
    """Combine the pair's settings with the states of its terminals."""
    sides = tuple(_side_status(pair.slot(state.terminal.side), state) for state in states)
    return PairStatus(
        pair=pair.name,
        transport="tui",
        socket=str(socket_path(pair.socket, podium.environ)),
        session=pair.session,
        up=any(side.pane for side in sides),
        sides=sides,
    )


def _side_status(slot: PairSide, state: TerminalState) -> SideStatus:
    gone = "dead" if state.pane else "down"
    return SideStatus(
        side=state.terminal.side,
        agent=slot.agent,
        pane=state.pane,
        status=gone if state.status == "gone" else state.status,
        question=state.question,
        session=state.session,
        cwd=slot.cwd,
        keyboard=state.keyboard,
    )
