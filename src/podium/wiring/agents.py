"""Agents by name: what `agents:` and `roles:` in podium.yaml say becomes a player that can be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from podium.domain.errors import BadInput
from podium.flows import Player
from podium.ports import Agent, HookDoors

if TYPE_CHECKING:
    from podium.wiring.podium import Podium
    from podium.wiring.settings import AgentSettings

AgentBuilder = Callable[["Podium", str, "AgentSettings", HookDoors], Agent]
"""Builds the agent of a name, whose calls pass these doors."""


async def players_by_role(podium: Podium) -> Callable[[str], Player]:
    """Gives the player of a role. Each is made when it is first asked for.

    What it gives raises `BadInput` for a role or an agent that podium.yaml does not have, and
    `NotPossibleNow` for an agent whose variables nobody has trusted.
    """
    doors = await podium.hook_doors()

    @cache
    def player_for(role: str) -> Player:
        known = podium.settings.roles
        if role not in known:
            raise BadInput(f"podium.yaml has no role {role!r}; roles: {_listed(known)}")
        name = known[role].agent
        agent = build_agent(podium, name, doors)
        return Player(
            role=role,
            agent=agent,
            allowed_tools=known[role].allowed_tools,
            timeout_seconds=podium.settings.agents[name].timeout_seconds,
        )

    return player_for


def build_agent(podium: Podium, name: str, doors: HookDoors) -> Agent:
    """The agent that podium.yaml calls `name`."""
    settings = podium.settings.agents.get(name)
    if settings is None:
        known = _listed(podium.settings.agents)
        raise BadInput(f"podium.yaml has no agent {name!r}; agents: {known}")
    build = KINDS.get(settings.kind)
    if build is None:
        raise BadInput(
            f"agent {name!r}: this Podium has no agents of kind {settings.kind!r}; "
            f"kinds: {_listed(KINDS)}"
        )
    return build(podium, name, settings, doors)


def _scripted(podium: Podium, name: str, settings: AgentSettings, doors: HookDoors) -> Agent:
    from podium.agents import AgentScript, ScriptedAgent
    from podium.wiring.parsing import read_located

    if not settings.script:
        raise BadInput(f"agent {name!r} is scripted: name its file with `script:` in podium.yaml")
    script = read_located(podium.folders.project / settings.script).validated(AgentScript)
    return ScriptedAgent(
        name,
        script,
        podium.launcher,
        doors,
        env=podium.configuration.env_of(name),
        model=settings.model or "script",
    )


KINDS: Mapping[str, AgentBuilder] = {"scripted": _scripted}
"""Kind → builder. A new medium is a builder and a line here."""


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "none"
