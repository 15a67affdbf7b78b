"""What can be set of notices and of the chat door: who is told, and who may steer from afar."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, PositiveFloat, PositiveInt

from podium.domain.model import NonEmpty, Noun

ConsoleRole = Literal["viewer", "operator", "approver"]
"""What somebody who comes in from afar may do: look; start and steer; answer approvals."""

SecretName = Annotated[str, Field(pattern=r"^secret://[A-Za-z_][A-Za-z0-9_]*$")]
"""`secret://NAME`; the value itself may stand in no file."""


class _Strict(Noun):
    model_config = ConfigDict(strict=True)


class NoticeSettings(_Strict):
    """Somebody who is told of what waits and what ended."""

    to: SecretName
    """The variable that holds the apprise URL: it has a token in it, most often."""
    what: tuple[Literal["waits", "ended"], ...] = ("waits", "ended")
    flows: tuple[NonEmpty, ...] = ()
    """Runs of these alone. Empty: of all."""
    min_tier: Literal["T0", "T1", "T2", "T3", "T4"] = "T0"
    """Approvals of this tier and above."""
    person: str = ""
    """Who the link lets in, in approvals and events. Empty: you."""
    role: ConsoleRole = "viewer"
    """What the link lets them do with that one card."""
    link_hours: PositiveFloat = 24.0
    """How long the link can be opened."""


class SenderSettings(_Strict):
    """Somebody of a chat who may steer Podium."""

    person: NonEmpty
    """Their name in approvals and events."""
    roles: tuple[ConsoleRole, ...] = ()
    """Everybody who is heard may look; `operator` starts work, `approver` answers what waits."""


class TelegramSettings(_Strict):
    """A bot's webhook."""

    secret: SecretName
    """What Telegram sends with every update: `secret_token` of its `setWebhook`."""
    senders: dict[NonEmpty, SenderSettings] = Field(default_factory=dict)
    """By their numbers at Telegram. Everybody else is not heard."""


class DiscordSettings(_Strict):
    """An application's interactions endpoint."""

    public_key: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]
    """With which Discord's signatures are checked; it is no secret."""
    senders: dict[NonEmpty, SenderSettings] = Field(default_factory=dict)
    """By their numbers at Discord."""


class PlainSettings(_Strict):
    """A door for programs of one's own."""

    secret: SecretName
    """With which requests are signed."""
    senders: dict[NonEmpty, SenderSettings] = Field(default_factory=dict)


class ChatSettings(_Strict):
    """Chats from which work is started and steered. What is left out is closed."""

    telegram: TelegramSettings | None = None
    discord: DiscordSettings | None = None
    plain: PlainSettings | None = None
    per_minute: PositiveInt = 20
    """Messages of one sender that are heard in a minute."""
