"""Telling people who look at nothing: where a notice goes, and how far each place was told."""

from __future__ import annotations

from typing import Protocol

from podium.core.model import FrozenModel


class NoticeItem(FrozenModel):
    """One thing that is told."""

    text: str
    """Lines for people, with words of agents in them: never to be taken for markup."""
    link: str = ""
    """URL at which it can be answered or seen. Podium's own text, to be shown as it is."""


class Notice(FrozenModel):
    """The content of one message."""

    title: str
    parts: tuple[NoticeItem, ...]


class DeliveryStatus(FrozenModel):
    """Outcome of a delivery."""

    done: bool
    why: str = ""
    """The reason why it was not taken, without secrets."""
    in_doubt: bool = False
    """It may have arrived all the same: the line went away before the answer."""


class NoticeChannel(Protocol):
    """A place where people are told: a chat, a mailbox, a phone."""

    @property
    def name(self) -> str:
        """The name that people use. Holds no secret."""
        ...

    async def send(self, notice: Notice) -> DeliveryStatus:
        """Hand over one message, in bounded time. Never raises for what the other side does."""
        ...


class DeliveryPosition(FrozenModel):
    """Progress of an outlet, as positions in the journal."""

    told: int
    """Everything up to here is done with."""
    telling: int = 0
    """Above `told`: a message about what lies between was begun, and nobody knows what became of it."""


class DeliveryLog(Protocol):
    """Remembers the marks over restarts. All methods are quick and may block."""

    def position(self, outlet: str) -> DeliveryPosition | None:
        """None: nothing is remembered of it."""
        ...

    def save(self, outlet: str, position: DeliveryPosition) -> None:
        """On return it survives a crash."""
        ...
