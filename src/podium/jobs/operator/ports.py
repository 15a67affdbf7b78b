"""Protocols and dependencies of the operator: the classifier, habits, and what a run of it uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from podium.core.packs import Pack
from podium.ports import Clock, Ids, Store, Toolbox

if TYPE_CHECKING:
    from podium.core.decisions import Usage
    from podium.jobs.operator.models import Message, OperatorAnswer, Reading

OPERATOR = "operator"
"""The flow, its queue, and the role in which its calls are made."""


@dataclass(frozen=True)
class Bench:
    """A pack, and the tools of it."""

    pack: Pack
    toolbox: Toolbox
    store: Store


@dataclass(frozen=True)
class OperatorFlowDeps:
    """Dependencies of a run of the operator."""

    store: Store
    clock: Clock
    ids: Ids
    bench_for: Callable[[str], Awaitable[Bench]]
    """The pack of this name. Raises what loading it raises."""
    approval_seconds: float
    """Seconds that people have to approve a plan."""


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
