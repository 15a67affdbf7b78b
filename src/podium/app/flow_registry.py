"""Registry of flows: name to builder, each imported when a run of it is hosted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from podium.core.job import ImportPath, all_jobs, load
from podium.ports import Flow

FlowBuilder = Callable[[Any], Awaitable[Flow]]
"""Builds a flow of the application, with the ports it uses."""

KERNEL_FLOWS: dict[str, ImportPath] = {
    "call": "podium.app.flow_builders:build_call",
    "delivery": "podium.app.flow_builders:build_delivery",
}


def flow_builders() -> dict[str, FlowBuilder]:
    """Builder of every flow, of the kernel's and of all jobs, by name."""
    paths = dict(KERNEL_FLOWS)
    for job in all_jobs():
        paths |= job.flows
    return {name: _late(paths[name]) for name in sorted(paths)}


def _late(path: ImportPath) -> FlowBuilder:
    async def build(app: Any) -> Flow:
        builder: FlowBuilder = load(path)
        return await builder(app)

    return build
