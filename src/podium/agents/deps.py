"""Dependencies of every agent that is a program, and its settings in podium.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from podium.core.errors import ConfigProblem
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.ports import Agent, Clock, ConfinementProvider, HookServers, Launcher, Transcripts


class AgentOptions(FrozenModel):
    """One agent, as podium.yaml has it."""

    name: NonEmpty
    model: str = ""
    """Name of the model. Empty: the medium's default."""
    base_url: str = ""
    """Address of its model. Empty: the medium's own provider."""
    command: tuple[NonEmpty, ...] = ()
    """The command that starts its program, if not the usual one."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables set for its processes. Secrets stand as `secret://NAME`; the launcher resolves them."""
    options: dict[str, Json] = Field(default_factory=dict)
    """Options of its medium alone; checked by it."""


@dataclass(frozen=True)
class AgentDeps:
    """The ports and places an agent's program is run with."""

    launcher: Launcher
    confinement_provider: ConfinementProvider
    doors: HookServers
    transcripts: Transcripts
    clock: Clock
    hook_command: tuple[str, ...]
    """The command that a CLI runs as its tool hook. It needs the variables of `TurnDoor.env`."""
    homes: Path
    """Private homes are made in it, one for each run and agent."""
    user_home: Path
    """The home whose logins are copied into them."""
    environ: Mapping[str, str]
    """The person's environment, for finding programs and configured homes. Never handed on."""
    toolbox_command: tuple[str, ...] = ()
    """The command that an MCP-only CLI starts as its server. It needs the variables of `TurnDoor.env`."""
    redact_json: Callable[[str], str] = str
    """Serialised JSON without its secrets, for what an agent of ours keeps itself."""


AgentMaker = Callable[[AgentDeps], Agent]
"""Makes an agent of a program's own, with the kit that it is run with."""


def option_problems(error: ValidationError) -> list[ConfigProblem]:
    """Return one problem for each invalid option of an agent."""
    return [
        ConfigProblem(issue["msg"], key=".".join(map(str, issue["loc"])))
        for issue in error.errors(include_url=False, include_input=False)
    ]


def problems_line(error: ValidationError) -> str:
    """Return the same on one line."""
    return "; ".join(
        f"{problem.key or 'options'}: {problem.problem}" for problem in option_problems(error)
    )
