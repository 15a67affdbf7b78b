"""Registry of flows: name to builder, each imported when a run of it is hosted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from podium.ports import Flow, FlowBody

if TYPE_CHECKING:
    from podium.app.app import Podium


FlowBuilder = Callable[["Podium"], Awaitable[Flow]]
"""Gives a flow its kit of ports. Imports the flow late: most commands host none."""


async def _rehearsal(podium: Podium) -> Flow:
    from podium.jobs.rehearsal.composition import build_rehearsal

    return await build_rehearsal(podium)


async def _call(podium: Podium) -> Flow:
    from podium.app.flow_builders import build_call

    return await build_call(podium)


async def _delivery(podium: Podium) -> Flow:
    from podium.app.flow_builders import build_delivery

    return await build_delivery(podium)


async def _pipeline(podium: Podium) -> Flow:
    from podium.jobs.pipeline.composition import build_pipeline

    return await build_pipeline(podium)


async def _playbook(podium: Podium) -> Flow:
    from podium.jobs.playbook.composition import build_playbook

    return await build_playbook(podium)


async def _duet(podium: Podium) -> Flow:
    from podium.jobs.duet.composition import build_duet

    return await build_duet(podium)


async def _operator(podium: Podium) -> Flow:
    from podium.app.flow_builders import when_needed
    from podium.engine import FlowDefinition
    from podium.jobs.operator.deps import OPERATOR
    from podium.jobs.operator.models import OperatorJob

    async def build() -> FlowBody:
        # Late: what reads plain words is large, and most processes host no run of it.
        from podium.jobs.operator.composition import operator_body

        return await operator_body(podium)

    return FlowDefinition(OPERATOR, when_needed(build), input_type=OperatorJob)


async def _sense(podium: Podium) -> Flow:
    from podium.jobs.sense.composition import build_sense

    return await build_sense(podium)


async def _candidate(podium: Podium) -> Flow:
    from podium.jobs.sense.composition import build_candidate

    return await build_candidate(podium)


async def _work_order(podium: Podium) -> Flow:
    from podium.jobs.sense.orders.worker import build_work_order

    return await build_work_order(podium)


FLOWS: dict[str, FlowBuilder] = {
    "call": _call,
    "candidate": _candidate,
    "delivery": _delivery,
    "duet": _duet,
    "operator": _operator,
    "pipeline": _pipeline,
    "playbook": _playbook,
    "rehearsal": _rehearsal,
    "sense": _sense,
    "work_order": _work_order,
}
"""Name → builder."""
