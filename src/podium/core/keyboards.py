"""The keyboard of a program on a terminal: Podium's, until a person takes it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from podium.core.model import FrozenModel, NonEmpty, UtcDatetime

HOLD_SECONDS = 900.0
MAX_HOLD_SECONDS = 14_400.0
"""Nobody keeps a keyboard for longer, however often he asks for more time."""
MAX_NAME_CHARACTERS = 200
PersonName = Annotated[NonEmpty, Field(max_length=MAX_NAME_CHARACTERS)]


class KeyboardHold(FrozenModel):
    """A person has a program's keyboard: Podium itself types nothing there meanwhile."""

    who: PersonName
    since: UtcDatetime
    until: UtcDatetime
    """It comes back by itself then."""


class KeyboardState(FrozenModel):
    """The owner of a program's keyboard."""

    hold: KeyboardHold | None = None
    """None: Podium's."""
    takes: int = 0
    """Number of times that people took it, in this life of the server."""
    stood_seconds: float = 0.0
    """Seconds for which they had it so far, without the present hold."""

    def held_seconds(self, now: UtcDatetime) -> float:
        """The same with the present hold."""
        held = (now - self.hold.since).total_seconds() if self.hold else 0.0
        return self.stood_seconds + max(held, 0.0)
