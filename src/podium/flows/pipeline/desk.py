"""What every part of the story has at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.domain.asking import Reply
from podium.flows.pipeline.checks import Check, Found
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
    found: Found = field(default_factory=Found)
    """What there was at the start."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """What podium.yaml names, else what was found, before any agent came or at least in what was added."""
        named = self.kit.checks()
        return (self.found.checks or self.trip.added_checks) if named is None else named

    def trailers(self, step: str, reply: Reply | None = None) -> Mapping[str, str]:
        """What tells whose commit it is, and that it was made."""
        said = {"Podium-Run": self.trip.run_id, "Podium-Step": step}
        return said | ({"Podium-Agent": reply.agent} if reply is not None and reply.agent else {})

    def stage(self, name: str) -> Stage:
        return self.trip.job.spec.stages[name]
