"""Habits: what was asked and chosen before, as suggestions and never as approvals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.domain.operating import OperatorAnswer


class Habits(Protocol):
    """A local memory of messages and what came of them."""

    def suggestions(self, message: str, *, pack: str) -> Sequence[str]:
        """Tools that such words led to before, the most likely first, in a line each."""
        ...

    def remember(self, answer: OperatorAnswer) -> None:
        """Keep what was asked, chosen and approved. A memory that cannot be written is no trouble."""
        ...
