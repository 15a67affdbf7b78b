"""A source that nobody has trusted: nothing is started and nobody is asked."""

from __future__ import annotations

from podium.bridge.sources.asked import AskedSource
from podium.bridge.sources.kit import NotSensed, SourceKit, without_login
from podium.domain.model import Json
from podium.domain.sensing import Condition

NOT_TRUSTED = "nobody has trusted podium.yaml as it is now; read it, then say `podium trust`"


class UntrustedSource(AskedSource):
    """Stands where a command or an address would be, and says what a person has to do."""

    def __init__(self, kit: SourceKit, name: str, wish: str) -> None:
        """`wish` is the command or the address that the project's file names."""
        super().__init__(kit, name, without_login(wish))

    async def _ask(self) -> tuple[Condition, str, Json]:
        raise NotSensed("unreadable", NOT_TRUSTED)
