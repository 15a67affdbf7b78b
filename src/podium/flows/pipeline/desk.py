"""What every part of the story has at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.domain.asking import Reply
from podium.flows.pipeline.checks import Check
from podium.flows.pipeline.kit import PipelineKit
from podium.flows.pipeline.spec import Stage
from podium.flows.pipeline.trip import Trip
from podium.ports import FlowContext


@dataclass(frozen=True)
class Desk:
    """The run, the house and where the run stands."""

    ctx: FlowContext
    kit: PipelineKit
    trip: Trip
    checks: tuple[Check, ...] = ()

    def trailers(self, step: str, reply: Reply | None = None) -> Mapping[str, str]:
        """What tells whose commit it is, and that it was made."""
        said = {"Podium-Run": self.trip.run_id, "Podium-Step": step}
        return said | ({"Podium-Agent": reply.agent} if reply is not None and reply.agent else {})

    def stage(self, name: str) -> Stage:
        return self.trip.job.spec.stages[name]
