"""Risk tier of an intent, computed from registry, domain, arguments and the provenance of the message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from podium.core.decisions import Tier, TierTerm
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, floor_tier
from podium.jobs.operator.models import ToolIntent

ASKS_A_PERSON = Tier.T2
"""Tier from which a plan waits for an approval, whatever the policy allows."""
MANY = 50
"""Entries of a list above which a call changes many things at once."""


def tool_arithmetic(
    tool: PackTool, arguments: Mapping[str, Json], pack: Pack
) -> tuple[TierTerm, ...]:
    """Every line of the arithmetic for one call; its tier is the highest of them."""
    return tuple(_arithmetic(tool, arguments, pack))


def raised(arithmetic: Sequence[TierTerm], provenance: Sequence[str]) -> tuple[TierTerm, ...]:
    """Return the arithmetic, with one more term where untrusted text led to the call."""
    if not provenance or not arithmetic:
        return tuple(arithmetic)
    inherent = highest(arithmetic)
    tier = Tier(min(inherent + 1, Tier.T4))
    because = f"{inherent} raised by one: {', '.join(provenance)} led to it"
    return (*arithmetic, TierTerm(tier=tier, because=because))


def highest(arithmetic: Sequence[TierTerm]) -> Tier:
    """Return the highest tier; T4 for an empty arithmetic."""
    return max((term.tier for term in arithmetic), default=Tier.T4)


def reason_of(arithmetic: Sequence[TierTerm]) -> str:
    """The arithmetic in one line, the highest first."""
    tier = highest(arithmetic)
    ordered = sorted(dict.fromkeys(arithmetic), key=lambda term: -term.tier)
    reasons = "; ".join(f"{term.tier}: {term.because}" for term in ordered)
    return f"{tier} = max({reasons})" if len(ordered) > 1 else reasons


def tools_of(intent: ToolIntent, pack: Pack) -> tuple[PackTool, ...]:
    """The tools an intent comes to: itself, or those of a skill."""
    tool, skill = pack.tool(intent.tool), pack.skill(intent.tool)
    if tool is not None:
        return (tool,)
    tools = (pack.tool(step.tool) for step in (skill.steps if skill else ()))
    return tuple(tool for tool in tools if tool is not None)


def intents_arithmetic(
    intents: Sequence[ToolIntent], pack: Pack, provenance: Sequence[str]
) -> tuple[TierTerm, ...]:
    arithmetic: list[TierTerm] = []
    for intent in intents:
        for tool in tools_of(intent, pack):
            arithmetic += tool_arithmetic(tool, intent.arguments, pack)
    return raised(list(dict.fromkeys(arithmetic)), provenance)


def _arithmetic(tool: PackTool, arguments: Mapping[str, Json], pack: Pack) -> Iterator[TierTerm]:
    yield TierTerm(tier=tool.tier, because=f"{tool.name} is registered as {tool.tier}")
    floor, because = floor_tier(pack.registry, tool.name)
    yield TierTerm(tier=floor, because=because)
    for name, value in arguments.items():
        if isinstance(value, list) and len(value) > MANY:
            yield TierTerm(tier=Tier.T2, because=f"{name!r} has {len(value)} entries at once")
        if _holds_secret(value):
            yield TierTerm(tier=Tier.T2, because=f"{name!r} contains a secret")


def _holds_secret(value: Json) -> bool:
    if isinstance(value, str):
        return "secret://" in value
    if isinstance(value, dict):
        return any(map(_holds_secret, value.values()))
    return isinstance(value, list) and any(map(_holds_secret, value))
