"""Risk, and the arithmetic that shows where it comes from."""

from __future__ import annotations

from enum import IntEnum

from podium.domain.model import Noun


class Tier(IntEnum):
    """Risk, computed and never self-reported."""

    T0 = 0
    """Reads and analysis."""
    T1 = 1
    """Local artefacts that are easily undone."""
    T2 = 2
    """Changes to a repository, a schema or shared state."""
    T3 = 3
    """Words or effects that leave the machine."""
    T4 = 4
    """What cannot be taken back."""

    def __str__(self) -> str:
        return self.name


class TierTerm(Noun):
    """One line of the tier's arithmetic: the tier is the highest of them."""

    tier: Tier
    because: str
