"""The pairs of a project for the typed API, and where it is served."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podium.domain.duets import Pair
from podium.ports import Mirror, Terminals
from podium.wiring.duet_grants import refuse_ungranted
from podium.wiring.duet_pairs import MAIN, PairWishes, kept_pair, pair_named, socket_path
from podium.wiring.local_sockets import local_socket, socket_place

if TYPE_CHECKING:
    from podium.agents.tui import TerminalPair
    from podium.wiring.podium import Podium


def terminals_of_project(podium: Podium, variables: Mapping[str, str]) -> Terminals:
    """Its pairs by their names: as they were brought up last, else as podium.yaml and these variables have them."""
    from podium.agents.tui import SteeredPairs
    from podium.wiring.duet_terminals import pair_held, pair_seen, pair_up

    def named(name: str) -> Pair:
        return kept_pair(podium, name) or pair_named(podium, name, PairWishes(), variables)

    def granted(name: str) -> Pair:
        pair = named(name)
        refuse_ungranted(podium, pair)
        return pair

    return SteeredPairs(
        seen=lambda name: pair_seen(podium, named(name)),
        seated=lambda name: pair_held(podium, granted(name)),
        up=lambda name: pair_up(podium, granted(name)),
    )


def mirror_of_project(podium: Podium, variables: Mapping[str, str]) -> Mirror:
    """Its pairs for people who look on; see `terminals_of_project` for which. Starts nothing."""
    from podium.agents.tui import MirroredPairs
    from podium.wiring.duet_terminals import pair_seen

    @asynccontextmanager
    async def hold(name: str) -> AsyncIterator[TerminalPair]:
        pair = kept_pair(podium, name) or pair_named(podium, name, PairWishes(), variables)
        async with pair_seen(podium, pair) as held:
            yield held

    return MirroredPairs(hold)


def api_socket(podium: Podium) -> Path:
    """Where the project's API is served."""
    return local_socket(podium, "api")


def is_served(podium: Podium) -> bool:
    """Whether a daemon serves there, or one that was killed left its socket. Makes nothing."""
    try:
        return socket_place(podium, "api").exists()
    except OSError:  # a folder of somebody else
        return False


def settings_digest(podium: Podium) -> str:
    """The same for processes that would start the same programs in the same places."""
    places = [str(podium.folders.user_state), str(socket_path(MAIN, podium.environ))]
    # Where programs and their logins are found. Secrets are not told from, not even by a digest that others see.
    found_by = [podium.environ.get(name, "") for name in ("PATH", "HOME")]
    told = json.dumps([podium.configuration.record(), places, found_by], sort_keys=True)
    return hashlib.sha256(told.encode(errors="replace")).hexdigest()
