"""Folders that a person lets a duet work in: their own, not a copy, so it is asked for once and kept by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from podium.domain.duets import Pair
from podium.domain.errors import CallRefused
from podium.wiring.trust import TrustBook

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

_GRANT = "duet"


def ungranted(podium: Podium, pair: Pair) -> tuple[str, ...]:
    """Folders of the pair that nobody has granted yet."""
    book = _book(podium)
    folders = dict.fromkeys((pair.planner.cwd, pair.executer.cwd))
    return tuple(folder for folder in folders if not book.trusts(Path(folder), _GRANT))


def grant(podium: Podium, pair: Pair) -> tuple[str, ...]:
    """Let duets work in the folders of this pair from now on. Gives those that are new."""
    new, book = ungranted(podium, pair), _book(podium)
    for folder in new:
        book.trust(Path(folder), _GRANT)
    return new


def refuse_ungranted(podium: Podium, pair: Pair) -> None:
    """Raises `CallRefused` for a pair that would work in a folder which nobody granted."""
    if missing := ungranted(podium, pair):
        raise CallRefused(
            f"a duet works in your own folder, not in a copy, and nobody has granted {', '.join(map(repr, missing))}; "
            "`podium duet up --grant` does"
        )


def _book(podium: Podium) -> TrustBook:
    return TrustBook(podium.folders.user_state / "duets")
