"""Settings of notices and of the chat interface: who is notified, and who may command from a chat."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, PositiveInt, model_validator

from podium.core.model import FrozenModel, NonEmpty

ConsoleRole = Literal["viewer", "operator", "approver"]
"""Permissions of somebody who comes in from afar: look; start and steer; answer approvals."""

_REFERENCE = re.compile(r"secret://[A-Za-z_][A-Za-z0-9_]*")


class _Strict(FrozenModel):
    model_config = ConfigDict(strict=True)


def require_reference(key: str, value: str) -> None:
    """Raise `ValueError` for a value that is not `secret://NAME`."""
    # Of the whole section, not of the key: a fault of a key shows its value, which may be the secret itself.
    if not _REFERENCE.fullmatch(value):
        raise ValueError(
            f"`{key}` must name a variable as secret://NAME; the value itself must not be in a file"
        )


class NoticeSettings(_Strict):
    """One receiver of notices."""

    to: str
    """Variable with the apprise URL, as `secret://NAME`."""
    what: tuple[Literal["waits", "ended"], ...] = ("waits", "ended")
    """`waits`: something waits for a person; `ended`: a run has ended."""
    flows: tuple[NonEmpty, ...] = ()
    """Only for runs of these flows. Empty: all."""
    min_tier: Literal["T0", "T1", "T2", "T3", "T4"] = "T0"
    """Only for approvals of this tier and above."""
    person: Annotated[str, Field(max_length=100)] = ""
    """Name on answers given by the link. Empty: yours."""
    role: ConsoleRole = "viewer"
    """Permission of the link: `viewer` looks, `approver` answers."""
    link_hours: Annotated[float, Field(gt=0, le=24 * 30)] = 24.0
    """Hours until the link expires."""

    @model_validator(mode="after")
    def _to_a_variable(self) -> Self:
        require_reference("to", self.to)
        return self


class SenderSettings(_Strict):
    """A person who may use Podium from a chat."""

    person: NonEmpty
    """Name in approvals and events."""
    roles: tuple[ConsoleRole, ...] = ()
    """`operator` may start work, `approver` may answer approvals. Everybody listed may look."""


class _WithSecret(_Strict):
    secret: str
    """Variable with the secret that signs requests, as `secret://NAME`."""

    @model_validator(mode="after")
    def _of_a_variable(self) -> Self:
        require_reference("secret", self.secret)
        return self


class TelegramSettings(_WithSecret):
    """A bot's webhook. Its secret is the `secret_token` of Telegram's `setWebhook`."""

    senders: dict[NonEmpty, SenderSettings] = Field(default_factory=dict)
    """People by their Telegram user id. Everybody else is ignored."""


class DiscordSettings(_Strict):
    """An application's interactions endpoint."""

    public_key: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]
    """Public key of the Discord application; not a secret."""
    senders: dict[NonEmpty, SenderSettings] = Field(default_factory=dict)
    """People by their Discord user id. Everybody else is ignored."""


class PlainSettings(_WithSecret):
    """An endpoint for your own programs."""

    senders: dict[NonEmpty, SenderSettings] = Field(default_factory=dict)
    """People by the name that the program sends."""


class ChatSettings(_Strict):
    """Chats that may start work and answer approvals. A chat that is not set is disabled."""

    telegram: TelegramSettings | None = None
    """A Telegram bot."""
    discord: DiscordSettings | None = None
    """A Discord application."""
    plain: PlainSettings | None = None
    """Your own programs."""
    per_minute: PositiveInt = 20
    """Maximum number of messages from one sender in a minute."""
