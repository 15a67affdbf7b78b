"""Who answers, said before anything is asked."""

from __future__ import annotations

from podium import __version__
from podium.domain.model import Noun


class Greeting(Noun):
    """Which Podium it is. Two with the same one do the same."""

    version: str = __version__
    settings: str = ""
    """Digest of the settings that it was started with."""
