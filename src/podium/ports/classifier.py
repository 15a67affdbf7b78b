"""The classifier: what somebody said in, what they may have meant out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.domain.gating import Usage
    from podium.domain.operating import Message, Reading


class Classifier(Protocol):
    """Reads messages against one pack. It decides nothing: what it gives is checked."""

    @property
    def name(self) -> str:
        """Who read last, where several take turns."""
        ...

    @property
    def usage(self) -> Usage:
        """What all readings so far have used."""
        ...

    async def read(self, message: Message) -> Reading:
        """Raises `AgentLost` and its kin when a model was asked and gave no usable answer."""
        ...
