"""What every event has in common."""

from __future__ import annotations

from podium.domain.model import Noun


class EventBody(Noun):
    """What happened. The envelope says when, to which run, and in which order."""

    type: str
    version: int = 1
