"""What can be set of notices and of the chat door: who is told, and who may steer from afar."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, PositiveInt, model_validator

from podium.domain.model import NonEmpty, Noun

ConsoleRole = Literal["viewer", "operator", "approver"]
"""What somebody who comes in from afar may do: look; start and steer; answer approvals."""

_REFERENCE = re.compile(r"secret://[A-Za-z_][A-Za-z0-9_]*")


class _Strict(Noun):
    model_config = ConfigDict(strict=True)


def _must_refer(key: str, value: str) -> None:
    # Of the whole section, not of the key: a fault of a key shows its value, which may be the secret itself.
    if not _REFERENCE.fullmatch(value):
        raise ValueError(
            f"`{key}` names a variable as secret://NAME; the value itself may stand in no file"
        )


class NoticeSettings(_Strict):
    """Somebody who is told of what waits and what ended."""

    to: str
    """The variable that holds the apprise URL: it has a token in it, most often."""
    what: tuple[Literal["waits", "ended"], ...] = ("waits", "ended")
    flows: tuple[NonEmpty, ...] = ()
    """Runs of these alone. Empty: of all."""
    min_tier: Literal["T0", "T1", "T2", "T3", "T4"] = "T0"
    """Approvals of this tier and above."""
    person: Annotated[str, Field(max_length=100)] = ""
    """Who the link lets in, in approvals and events. Empty: you."""
    role: ConsoleRole = "viewer"
    """What the link lets them do with that one card."""
    link_hours: Annotated[float, Field(gt=0, le=24 * 30)] = 24.0
    """How long the link can be opened."""

    @model_validator(mode="after")
    def _to_a_variable(self) -> Self:
        _must_refer("to", self.to)
        return self


class SenderSettings(_Strict):
    """Somebody of a chat who may steer Podium."""

    person: NonEmpty
    """Their name in approvals and events."""
    roles: tuple[ConsoleRole, ...] = ()
    """Everybody who is heard may look; `operator` starts work, `approver` answers what waits."""


class _WithSecret(_Strict):
    secret: str
    """With which requests are proved, as secret://NAME."""

    @model_validator(mode="after")
    def _of_a_variable(self) -> Self:
        _must_refer("secret", self.secret)
        return self


class TelegramSettings(_WithSecret):
    """A bot's webhook. Its secret is the `secret_token` of Telegram's `setWebhook`."""

    senders: dict[NonEmpty, SenderSettings] = Field(default_factory=dict)
    """By their numbers at Telegram. Everybody else is not heard."""


class DiscordSettings(_Strict):
    """An application's interactions endpoint."""

    public_key: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]
    """With which Discord's signatures are checked; it is no secret."""
    senders: dict[NonEmpty, SenderSettings] = Field(default_factory=dict)
    """By their numbers at Discord."""


class PlainSettings(_WithSecret):
    """A door for programs of one's own."""

    senders: dict[NonEmpty, SenderSettings] = Field(default_factory=dict)


class ChatSettings(_Strict):
    """Chats from which work is started and steered. What is left out is closed."""

    telegram: TelegramSettings | None = None
    discord: DiscordSettings | None = None
    plain: PlainSettings | None = None
    per_minute: PositiveInt = 20
    """Messages of one sender that are heard in a minute."""
