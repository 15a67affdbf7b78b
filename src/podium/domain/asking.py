"""Talking to agents: a turn goes in, a reply comes out."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from podium.domain.gating import Usage
from podium.domain.model import Json, Moment, NonEmpty, Noun


class TurnLimits(Noun):
    """What one turn may take. None means no limit of that kind."""

    seconds: float | None = 600.0
    tokens: int | None = None
    usd: float | None = None
    turns: int | None = None


PayloadFound = Literal["none", "native", "strict", "repaired"]
"""How a payload was found: not at all, by the medium's own schema, as plain JSON, or mended."""


class Turn(Noun):
    """One question to an agent, complete in itself."""

    run_id: str
    step_key: str
    role: NonEmpty
    prompt: str
    workspace: str
    """Folder the agent works in."""
    session: str | None = None
    """Conversation to continue; None starts a fresh one."""
    limits: TurnLimits = TurnLimits()
    allowed_tools: tuple[str, ...] | None = None
    """Names of tools its calls may ask for. None: all that the gate allows."""
    own_tools: tuple[str, ...] | None = None
    """What the agent may use of its own beside files and shell, such as `web_search`. None: nothing more."""
    contract: type[BaseModel] | None = None
    """What the payload of the reply must validate as. None: words are enough."""
    provenance: tuple[str, ...] = ()
    """Untrusted sources that led to the turn."""
    asking: int = 0
    """Which asking of the step this is: what is wished for again in a later one is done again."""


class Reply(Noun):
    """What an agent answered, validated."""

    text: str
    payload: Json = None
    found: PayloadFound = "none"
    usage: Usage = Usage()
    agent: str = ""
    model: str = ""
    version: str = ""
    """Of the program that answered, where it is one."""
    session: str | None = None
    seconds: float = 0.0
    transcript: str | None = None
    """Path of what was really said, line by line."""
    untold: tuple[str, ...] = ()
    """Refusals whose reason its protocol could not carry. They go into the next prompt."""
    warnings: tuple[str, ...] = ()
    """What a person should know of the answer, such as a version nobody has tried."""
    waiting_approvals: tuple[str, ...] = Field(default=())
    """Approvals this turn's calls were told to wait for."""
    approval_deadlines: dict[str, Moment] = Field(default_factory=dict)
    """Until when each of them can be answered. Filled in by whoever asked the turn."""
