"""Durable runs: steps done once, waits of days, queues and schedules, on the store alone."""

from podium.engine.definition import FlowDefinition
from podium.engine.local import EngineSettings, LocalEngine

__all__ = ["EngineSettings", "FlowDefinition", "LocalEngine"]
