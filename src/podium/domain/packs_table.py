"""The domain table of a pack: which row a tool falls under, and how risky that makes it at least."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from podium.domain.gating import Tier
from podium.domain.packs import DomainRow, PackRegistry


class Fit(NamedTuple):
    """A row's pattern that fits a tool's name. Of two, the greater one has the say."""

    exact: bool
    literal_length: int
    """How many characters of the name the pattern spells out."""
    tier: Tier
    """Between patterns that say equally much, the riskier row is believed."""
    pattern: str
    row: DomainRow

    @property
    def specificity(self) -> tuple[bool, int]:
        return self.exact, self.literal_length


def fits(registry: PackRegistry, tool_name: str) -> list[Fit]:
    """Every pattern that fits the name, the most specific first."""
    return sorted(_fits(registry, tool_name), key=lambda fit: fit[:3], reverse=True)


def most_specific(registry: PackRegistry, tool_name: str) -> DomainRow | None:
    """The row whose pattern fits best. None: no pattern fits."""
    found = fits(registry, tool_name)
    return found[0].row if found else None


def floor_tier(registry: PackRegistry, tool_name: str) -> tuple[Tier, str]:
    """The lowest tier a tool of this name can have, and why. A name under no row is taken for T4."""
    for example in registry.tier_examples:
        if example.tool == tool_name:
            return example.tier, f"the tier table has {tool_name} as {example.tier}"
    found = fits(registry, tool_name)
    if not found:
        return Tier.T4, f"no domain has {tool_name}"
    best = found[0]
    return best.tier, f"domain {best.row.name} ({best.pattern}) is {best.tier} by default"


def _fits(registry: PackRegistry, tool_name: str) -> Iterator[Fit]:
    for row in registry.domains:
        for pattern in row.patterns:
            if fnmatchcase(tool_name, pattern):
                literal = len(pattern.replace("*", "").replace("?", ""))
                yield Fit(pattern == tool_name, literal, row.default_tier, pattern, row)
