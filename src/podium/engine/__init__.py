"""Durable runs: steps done once, waits of days, queues and schedules, on the store alone."""

from podium.engine.definition import FlowDefinition
from podium.engine.hosting import EngineSettings, RunEngine
from podium.engine.liveness import FolderPresence
from podium.engine.local import LocalEngine

__all__ = ["EngineSettings", "FlowDefinition", "FolderPresence", "LocalEngine", "RunEngine"]
