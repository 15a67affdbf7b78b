"""Protocols of the operator: the classifier that reads a message, and habits, which suggest and never approve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.core.decisions import Usage
    from podium.jobs.operator.models import Message, OperatorAnswer, Reading


class Classifier(Protocol):
    """Reads messages against one pack. It decides nothing: what it gives is checked."""

    @property
    def name(self) -> str:
        """Name of the classifier that read last, where several take turns."""
        ...

    @property
    def usage(self) -> Usage:
        """Usage of all readings so far."""
        ...

    async def read(self, message: Message) -> Reading:
        """Raises `AgentLost` and its kin when a model was asked and gave no usable answer."""
        ...


class Habits(Protocol):
    """A local memory of messages and what came of them."""

    def suggestions(self, message: str, *, pack: str) -> Sequence[str]:
        """Tools that such words led to before, the most likely first, in a line each."""
        ...

    def remember(self, answer: OperatorAnswer) -> None:
        """Keep what was asked, chosen and approved. A memory that cannot be written is no trouble."""
        ...
