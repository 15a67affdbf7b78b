"""Drafts in the order their tools demand, and otherwise in the order they were said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from podium.domain.errors import PlanRejected
from podium.domain.model import Json
from podium.domain.operating import PlannedDependency
from podium.flows.operator.skills.drafting import Draft


def ordered(drafts: Sequence[Draft]) -> list[Draft]:
    """The same drafts, predecessors first. Raises `PlanRejected` for a circle, naming it."""
    waiting, placed = list(drafts), list[Draft]()
    while waiting:
        done = {draft.key for draft in placed}
        ready = next((each for each in waiting if _before(each, drafts) <= done), None)
        if ready is None:
            circle = " → ".join(dict.fromkeys(each.tool.name for each in waiting))
            raise PlanRejected(f"these tools wait for each other: {circle}")
        waiting.remove(ready)
        placed.append(ready)
    return placed


def dependencies(drafts: Sequence[Draft]) -> tuple[PlannedDependency, ...]:
    """Which tool had to come before which, and why."""
    names = {draft.tool.name for draft in drafts}
    found = {
        (draft.tool.name, each.tool): each.reason
        for draft in drafts
        for each in draft.tool.depends_on
        if each.tool in names and each.tool != draft.tool.name
    }
    return tuple(
        PlannedDependency(tool=tool, depends_on=before, reason=reason)
        for (tool, before), reason in found.items()
    )


def joined(drafts: Sequence[Draft]) -> list[Draft]:
    """Drafts whose missing arguments are taken from the results of those before them."""
    return [_joined(draft, drafts[:place], drafts) for place, draft in enumerate(drafts)]


def _joined(draft: Draft, earlier: Sequence[Draft], drafts: Sequence[Draft]) -> Draft:
    arguments = dict(draft.arguments)
    for dependency in draft.tool.depends_on:
        sources = [each for each in earlier if each.tool.name == dependency.tool]
        if not sources:
            continue
        source = _partner(draft, sources, drafts)
        for argument, field in dependency.fills.items():
            if argument not in arguments:
                reference: Json = {"$from": [source.key, field]}
                arguments[argument] = reference
    return replace(draft, arguments=arguments)


def _partner(draft: Draft, sources: Sequence[Draft], drafts: Sequence[Draft]) -> Draft:
    """The first with the first, the second with the second; else the nearest."""
    alike = [each for each in drafts if each.tool.name == draft.tool.name]
    if len(alike) == len(sources):
        return sources[alike.index(draft)]
    return sources[-1]


def _before(draft: Draft, drafts: Sequence[Draft]) -> set[str]:
    wanted = {each.tool for each in draft.tool.depends_on}
    declared = {each.key for each in drafts if each.tool.name in wanted and each.key != draft.key}
    return declared | set(draft.after)
