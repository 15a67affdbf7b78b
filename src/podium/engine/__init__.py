"""Durable runs: steps done once, waits of days, queues and schedules, on the store alone."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.engine.definition import FlowDefinition
    from podium.engine.liveness import FolderPresence
    from podium.engine.local import LocalEngine
    from podium.engine.run_engine import EngineSettings, RunEngine

__all__ = [
    "EngineSettings",
    "FlowDefinition",
    "FolderPresence",
    "LocalEngine",
    "RunEngine",
]

export_lazily(
    __name__,
    {
        "FlowDefinition": "definition",
        "EngineSettings": "run_engine",
        "RunEngine": "run_engine",
        "FolderPresence": "liveness",
        "LocalEngine": "local",
    },
)
