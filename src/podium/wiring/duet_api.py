"""The pairs of a project for the typed API, and where it is served."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podium.ports import Mirror, Terminals
from podium.wiring.duet_grants import refuse_ungranted
from podium.wiring.duet_pairs import PairWishes, kept_pair, pair_named
from podium.wiring.duet_terminals import pair_held, pair_seen
from podium.wiring.local_sockets import local_socket

if TYPE_CHECKING:
    from podium.agents.tui import TerminalPair
    from podium.wiring.podium import Podium


def terminals_of_project(podium: Podium, variables: Mapping[str, str]) -> Terminals:
    """Its pairs by their names: as they were brought up last, else as podium.yaml and these variables have them."""
    from podium.agents.tui import SteeredPairs

    @asynccontextmanager
    async def hold(name: str) -> AsyncIterator[TerminalPair]:
        pair = kept_pair(podium, name) or pair_named(podium, name, PairWishes(), variables)
        refuse_ungranted(podium, pair)
        async with pair_held(podium, pair) as held:
            yield held

    return SteeredPairs(hold)


def mirror_of_project(podium: Podium, variables: Mapping[str, str]) -> Mirror:
    """Its pairs for people who look on; see `terminals_of_project` for which. Starts nothing."""
    from podium.agents.tui import MirroredPairs

    @asynccontextmanager
    async def hold(name: str) -> AsyncIterator[TerminalPair]:
        pair = kept_pair(podium, name) or pair_named(podium, name, PairWishes(), variables)
        async with pair_seen(podium, pair) as held:
            yield held

    return MirroredPairs(hold)


def api_socket(podium: Podium) -> Path:
    """Where the project's API is served."""
    return local_socket(podium, "api")
