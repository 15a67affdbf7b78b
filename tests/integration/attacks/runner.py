"""Runs attacks, as whoever one is or as an ordinary user."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from podium.sandbox import ProcessLauncher
from podium.sandbox.confining.proxy import serve_network
from tests.integration.attacks.arena import SEARCH_PATH, Arena
from tests.integration.attacks.attack import Attack
from tests.integration.attacks.kernel import have_session_keyring
from tests.integration.attacks.layouts import LAYOUTS
from tests.integration.attacks.trial import Outcome, try_attack, try_together


async def run_attacks(
    attacks: Sequence[Attack], layout_name: str, place: str, *, together: int = 1
) -> AsyncIterator[Outcome]:
    """One after the other, or so many in one arena. It stands in a folder of its own in that place."""
    have_session_keyring()
    with tempfile.TemporaryDirectory(prefix="podium-attacks-", dir=place) as folder:
        base = Path(folder).resolve()
        (base / "held-open.txt").touch()
        inherited = (os.open(base / "held-open.txt", os.O_RDWR), os.open(base, os.O_RDONLY))
        for descriptor in inherited:
            os.set_inheritable(descriptor, True)
        arena = Arena(
            base, ProcessLauncher(serve=serve_network({}), parent_env={"PATH": SEARCH_PATH})
        )
        await arena.build()
        chosen = next(layout for layout in LAYOUTS if layout.name == layout_name)
        layout = chosen(inherited)
        try:
            for attack in attacks:
                if together == 1 or attack.delivers:
                    yield await try_attack(arena, layout, attack)
            if together > 1:
                rest = [attack for attack in attacks if not attack.delivers]
                for first in range(0, len(rest), together):
                    several = rest[first : first + together]
                    for outcome in await try_together(arena, layout, several):
                        yield outcome
        finally:
            arena.clear()
            for descriptor in inherited:
                os.close(descriptor)
