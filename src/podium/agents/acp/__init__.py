"""Agents that speak the Agent Client Protocol: any of them, by its command line."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.agents.acp.agent import AcpAgent

__all__ = [
    "AcpAgent",
]

export_lazily(
    __name__,
    {
        "AcpAgent": "agent",
    },
)
