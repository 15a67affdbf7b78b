"""Definition of the operator's flow, whose body is loaded by the first run of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.app.flow_builders import when_needed
from podium.engine import FlowDefinition
from podium.jobs.operator.deps import OPERATOR
from podium.jobs.operator.models import OperatorJob
from podium.ports import Flow, FlowBody

if TYPE_CHECKING:
    from podium.app.app import Podium


async def build_operator(podium: Podium) -> Flow:
    async def build() -> FlowBody:
        # Late: what reads plain words is large, and most processes host no run of it.
        from podium.jobs.operator.composition import operator_body

        return await operator_body(podium)

    return FlowDefinition(OPERATOR, when_needed(build), input_type=OperatorJob)
