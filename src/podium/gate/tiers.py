"""The arithmetic of risk: every term that counts, the tier as the highest of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from podium.domain.gating import Access, Tier, TierTerm
from podium.domain.model import Json
from podium.gate.facts import Facts
from podium.gate.places import HARMLESS_PATHS, Touch, ZoneSet, relative_to

_SECRET = re.compile(r"secret://(\w*)")


class Arithmetic:
    """How risky a call is, and why."""

    def __init__(self, terms: tuple[TierTerm, ...], provenance: tuple[str, ...] = ()) -> None:
        self.terms = terms
        self.provenance = provenance
        self.inherent = max((term.tier for term in terms), default=Tier.T4)
        """The tier by what the call does, whoever led to it. Nothing known is the worst."""
        self.tier = Tier(min(self.inherent + 1, Tier.T4)) if provenance else self.inherent
        """Untrusted sources make a call one tier riskier, up to the highest."""

    @property
    def shown(self) -> tuple[TierTerm, ...]:
        if not self.provenance:
            return self.terms
        because = f"{self.inherent} raised by one: {', '.join(self.provenance)} led to it"
        return (*self.terms, TierTerm(tier=self.tier, because=because))

    @property
    def main_reason(self) -> str:
        return next((term.because for term in self.shown if term.tier == self.tier), "not known")

    def plus(self, terms: Sequence[TierTerm]) -> Arithmetic:
        return Arithmetic((*self.terms, *terms), self.provenance) if terms else self


def add_up(facts: Facts, zones: ZoneSet) -> Arithmetic:
    """The terms that a call's tool, paths and commands give."""
    return Arithmetic(tuple(_terms(facts, zones)), facts.call.provenance)


def _terms(facts: Facts, zones: ZoneSet) -> Iterator[TierTerm]:
    tool = facts.context.tool
    if tool is not None:
        yield TierTerm(tier=tool.tier, because=f"{tool.name} is registered as {tool.tier}")
        if tool.tier_argument is not None:
            yield _handed_on(facts.call.arguments.get(tool.tier_argument))
    if facts.refusal is not None:
        yield TierTerm(tier=facts.refusal.tier, because=facts.refusal.reason)
    for touch in facts.path_touches:
        if touch.access is Access.DELETE:
            yield TierTerm(tier=Tier.T2, because=f"removes {touch.given!r}")
    confined = facts.context.confined and facts.starts_commands
    for touch in facts.touches():
        yield from _place_terms(touch, zones, facts.context.root, confined=confined)
    for use in facts.uses:
        yield from use.terms
    for name in dict.fromkeys(_secrets(facts.call.arguments)):
        yield TierTerm(tier=Tier.T2, because=f"is given the secret {name!r}")


def _handed_on(tier: Json) -> TierTerm:
    """What is handed on is as risky as it was found to be; what was not found out is the worst."""
    if isinstance(tier, str) and tier in Tier.__members__:
        return TierTerm(tier=Tier[tier], because=f"what it hands on adds up to {tier}")
    return TierTerm(tier=Tier.T4, because="what it hands on adds up to nobody knows what")


def _place_terms(touch: Touch, zones: ZoneSet, root: str, *, confined: bool) -> Iterator[TierTerm]:
    """A confined command finds nothing outside but what is there for everybody."""
    if not confined and any(
        relative_to(path, root) is None and path not in HARMLESS_PATHS for path in touch.paths
    ):
        yield TierTerm(tier=Tier.T2, because=f"{touch.given!r} is outside the workspace")
    for zone in zones.near(touch, root):
        tier = zone.write_tier if touch.may_write else zone.read_tier
        if tier is not None and zone.holds(touch, root):
            yield TierTerm(tier=tier, because=f"{touch.given!r} lies in zone {zone.name!r}")
        elif not confined and zone.lies_below(touch, root):
            because = f"{touch.given!r} with all beneath it may reach into zone {zone.name!r}"
            yield TierTerm(tier=max(Tier.T2, tier or Tier.T2), because=because)


def _secrets(value: Json) -> Iterator[str]:
    """Names of the secrets that texts in a value stand for."""
    if isinstance(value, str):
        if "secret://" in value:
            yield from _SECRET.findall(value)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secrets(name)
            yield from _secrets(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _secrets(inner)
