"""Being turned away at the door, before any handler."""

from __future__ import annotations

from podium.domain.errors import PodiumError


class NotLetIn(PodiumError):
    """Nobody known asks."""


class NotAllowed(PodiumError):
    """Somebody known asks for what their role does not cover."""


class TurnedAway(PodiumError):
    """Whoever asks, it is not answered: too much, too often, too slowly, or from a place that is not ours."""

    def __init__(self, code: int, message: str, *, retry_after_seconds: int = 0) -> None:
        super().__init__(message)
        self.code = code
        """The HTTP status."""
        self.retry_after_seconds = retry_after_seconds
        """When it is worth asking again; 0 where time changes nothing."""
