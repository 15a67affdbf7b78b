"""How risky a wish is: computed from registry, domain, arguments and where the words came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from podium.core.decisions import Tier, TierTerm
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, floor_tier
from podium.jobs.operator.models import Wish

ASKS_A_PERSON = Tier.T2
"""From here on a plan waits for an approval, whatever the policy allows."""
MANY = 50
"""A list longer than this changes many things at once."""


def terms_of(tool: PackTool, arguments: Mapping[str, Json], pack: Pack) -> tuple[TierTerm, ...]:
    """Every line of the arithmetic for one call; its tier is the highest of them."""
    return tuple(_terms(tool, arguments, pack))


def raised(terms: Sequence[TierTerm], provenance: Sequence[str]) -> tuple[TierTerm, ...]:
    """The terms, and one more where words of strangers led to the call."""
    if not provenance or not terms:
        return tuple(terms)
    inherent = highest(terms)
    tier = Tier(min(inherent + 1, Tier.T4))
    because = f"{inherent} raised by one: {', '.join(provenance)} led to it"
    return (*terms, TierTerm(tier=tier, because=because))


def highest(terms: Sequence[TierTerm]) -> Tier:
    """Nothing known is the worst."""
    return max((term.tier for term in terms), default=Tier.T4)


def reason_of(terms: Sequence[TierTerm]) -> str:
    """The arithmetic in one line, the highest first."""
    tier = highest(terms)
    ordered = sorted(dict.fromkeys(terms), key=lambda term: -term.tier)
    said = "; ".join(f"{term.tier}: {term.because}" for term in ordered)
    return f"{tier} = max({said})" if len(ordered) > 1 else said


def tools_of(wish: Wish, pack: Pack) -> tuple[PackTool, ...]:
    """The tools a wish comes to: itself, or those of a skill."""
    tool, skill = pack.tool(wish.tool), pack.skill(wish.tool)
    if tool is not None:
        return (tool,)
    found = (pack.tool(step.tool) for step in (skill.steps if skill else ()))
    return tuple(each for each in found if each is not None)


def terms_of_wishes(
    wishes: Sequence[Wish], pack: Pack, provenance: Sequence[str]
) -> tuple[TierTerm, ...]:
    found: list[TierTerm] = []
    for wish in wishes:
        for tool in tools_of(wish, pack):
            found += terms_of(tool, wish.arguments, pack)
    return raised(list(dict.fromkeys(found)), provenance)


def _terms(tool: PackTool, arguments: Mapping[str, Json], pack: Pack) -> Iterator[TierTerm]:
    yield TierTerm(tier=tool.tier, because=f"{tool.name} is registered as {tool.tier}")
    floor, because = floor_tier(pack.registry, tool.name)
    yield TierTerm(tier=floor, because=because)
    for name, value in arguments.items():
        if isinstance(value, list) and len(value) > MANY:
            yield TierTerm(tier=Tier.T2, because=f"{name!r} has {len(value)} entries at once")
        if _holds_secret(value):
            yield TierTerm(tier=Tier.T2, because=f"{name!r} is given a secret")


def _holds_secret(value: Json) -> bool:
    if isinstance(value, str):
        return "secret://" in value
    if isinstance(value, dict):
        return any(map(_holds_secret, value.values()))
    return isinstance(value, list) and any(map(_holds_secret, value))
