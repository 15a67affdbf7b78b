"""Telling people who look at nothing: where a notice goes, and how far each place was told."""

from __future__ import annotations

from typing import Protocol

from podium.core.model import Noun


class NoticePart(Noun):
    """One thing that is told."""

    text: str
    """Lines for people, with words of agents in them: never to be taken for markup."""
    link: str = ""
    """Where it can be answered or seen. Podium's own words, to be shown as they are."""


class Notice(Noun):
    """What is told in one message."""

    title: str
    parts: tuple[NoticePart, ...]


class Told(Noun):
    """What became of a message."""

    done: bool
    why: str = ""
    """Why it was not taken, without secrets."""
    in_doubt: bool = False
    """It may have arrived all the same: the line went away before the answer."""


class Outlet(Protocol):
    """A place where people are told: a chat, a mailbox, a phone."""

    @property
    def name(self) -> str:
        """How a person calls it. Holds no secret."""
        ...

    async def tell(self, notice: Notice) -> Told:
        """Hand over one message, in bounded time. Never raises for what the other side does."""
        ...


class ToldMark(Noun):
    """How far an outlet was told, as positions in the journal."""

    told: int
    """Everything up to here is done with."""
    telling: int = 0
    """Above `told`: a message about what lies between was begun, and nobody knows what became of it."""


class ToldBook(Protocol):
    """Remembers the marks over restarts. All methods are quick and may block."""

    def mark(self, outlet: str) -> ToldMark | None:
        """None: nothing is remembered of it."""
        ...

    def save(self, outlet: str, mark: ToldMark) -> None:
        """On return it survives a crash."""
        ...
