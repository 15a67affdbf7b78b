"""Talking to agents: a turn goes in, a reply comes out."""

from __future__ import annotations

from pydantic import Field

from podium.domain.gating import Usage
from podium.domain.model import Json, Moment, NonEmpty, Noun


class TurnLimits(Noun):
    """What one turn may take. None means no limit of that kind."""

    seconds: float | None = 600.0
    tokens: int | None = None
    usd: float | None = None
    turns: int | None = None


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


class Reply(Noun):
    """What an agent answered, validated."""

    text: str
    payload: Json = None
    usage: Usage = Usage()
    agent: str = ""
    model: str = ""
    session: str | None = None
    seconds: float = 0.0
    waiting_approvals: tuple[str, ...] = Field(default=())
    """Approvals this turn's calls were told to wait for."""
    approval_deadlines: dict[str, Moment] = Field(default_factory=dict)
    """Until when each of them can be answered. Filled in by whoever asked the turn."""
