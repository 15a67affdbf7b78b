"""Composition of the flow that sees one candidate through."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from podium.core.decisions import Tier
from podium.jobs.sense import (
    CandidateDeps,
    SenseOptions,
    Weight,
    candidate,
)
from podium.jobs.sense.orders.work_order import WorkOrder, order_text
from podium.jobs.sense.trust import granted_tier
from podium.ports import FlowBody, Toolbox

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.policy import RuleGate
from podium.jobs.sense.composition import (
    current_trust,
    empty_workspace,
    sense_options,
    todays_mode,
    trust_of,
)
from podium.jobs.sense.orders.worker import viewer, weigher, writer_of


async def build_candidate(podium: Podium) -> FlowBody:
    """Build the flow that takes one candidate from approval to its result."""
    options = sense_options(podium)
    deps = CandidateDeps(
        store=await podium.store(),
        clock=podium.clock,
        options=options,
        weigh=await weigher(podium, options),
        toolbox_for=_sense_toolboxes(podium, options),
        order_text=order_text,
        trust=trust_of(podium),
        writer=await writer_of(podium, options),
        show=await viewer(podium, options),
        budget=await podium.budget_tracker(),
        workspace=empty_workspace(podium),
    )
    return candidate(deps)


def _sense_toolboxes(
    podium: Podium, options: SenseOptions
) -> Callable[[WorkOrder, Weight], Awaitable[Toolbox]]:
    """The loop's two tools, behind a gate that knows today's mode and what autonomy was granted."""
    from podium.config.policy_layers import build_gate
    from podium.jobs.sense.operations import sense_tools
    from podium.jobs.sense.orders.policy import earned_layer, sense_layer
    from podium.tools import Registry

    registry = Registry(sense_tools(options.layout.inbox, options.layout.candidates))
    own = sense_layer(options)
    plain = build_gate(podium.configuration, (own,))

    @lru_cache(maxsize=64)
    def earned_gate(target: str, zones: tuple[str, ...], granted: Tier) -> RuleGate:
        return build_gate(podium.configuration, (own, earned_layer(target, zones, granted)))

    def gate_for(order: WorkOrder) -> RuleGate:
        granted = granted_tier(current_trust(podium), order.target, order.zones)
        return plain if granted is None else earned_gate(order.target, order.zones, granted)

    async def toolbox_for(order: WorkOrder, weight: Weight) -> Toolbox:
        gate = await asyncio.to_thread(gate_for, order)
        mode = todays_mode(podium)
        door = await podium.tool_door(registry=registry, gate=gate, mode=mode)
        return podium.toolbox_behind(door, registry=registry, gate=gate)

    return toolbox_for
