"""`/api/v1/agents`: who can be asked."""

from __future__ import annotations

from fastapi import APIRouter

from podium.app.agent_status import Standing, agent_statuses
from podium.core.model import FrozenModel
from podium.web.access.authentication import Viewer
from podium.web.context import CurrentContext

router = APIRouter(tags=["agents"])


class AgentListed(FrozenModel):
    ready: bool
    standing: Standing


class AgentsListed(FrozenModel):
    agents: tuple[AgentListed, ...]


@router.get("/agents")
async def list_agents(context: CurrentContext, person: Viewer) -> AgentsListed:
    """The agents of podium.yaml and the known programs it does not name: installed, logged in, gated by what."""
    statuses = await agent_statuses(context.podium)
    return AgentsListed(
        agents=tuple(AgentListed(ready=one.ready, standing=one) for one in statuses)
    )
