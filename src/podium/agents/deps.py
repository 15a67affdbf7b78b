"""What every agent that is a program needs of the house, and what podium.yaml says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from podium.core.model import FrozenModel, Json, NonEmpty
from podium.ports import Agent, Clock, ConfinementProvider, HookServers, Launcher, Transcripts


class AgentOptions(FrozenModel):
    """One agent, as podium.yaml has it."""

    name: NonEmpty
    model: str = ""
    """What it thinks with. Empty: the medium's own choice."""
    base_url: str = ""
    """Where its model is served. Empty: the medium's own provider."""
    command: tuple[NonEmpty, ...] = ()
    """How its program is started when not as usual."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables set for its processes. Secrets stand as `secret://NAME`; the launcher resolves them."""
    options: dict[str, Json] = Field(default_factory=dict)
    """What only its medium knows; checked by it."""


@dataclass(frozen=True)
class AgentDeps:
    """The ports and places an agent's program is run with."""

    launcher: Launcher
    confinement_provider: ConfinementProvider
    doors: HookServers
    transcripts: Transcripts
    clock: Clock
    hook_command: tuple[str, ...]
    """What a CLI runs as its tool hook. It needs the variables of `TurnDoor.env`."""
    homes: Path
    """Private homes are made in it, one for each run and agent."""
    user_home: Path
    """Whose logins are copied into them."""
    environ: Mapping[str, str]
    """The person's environment, for finding programs and configured homes. Never handed on."""
    toolbox_command: tuple[str, ...] = ()
    """What a CLI without hands starts as its MCP server. It needs the variables of `TurnDoor.env`."""
    redact_json: Callable[[str], str] = str
    """Serialised JSON without its secrets, for what an agent of ours keeps itself."""


AgentMaker = Callable[[AgentDeps], Agent]
"""Makes an agent of a program's own, with the kit that it is run with."""
