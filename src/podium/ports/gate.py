"""The gate and the tool door: where every act is judged and receipted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from podium.domain.model import Noun
from podium.ports.store import Tx

if TYPE_CHECKING:
    from podium.domain.gating import (
        Budget,
        Call,
        Decision,
        GateContext,
        Outcome,
        Permit,
        Quota,
        Receipt,
        Refusal,
        ToolSpec,
    )
    from podium.domain.model import Json

Checkpoint = Callable[[Tx, Noun], None]
"""Writes a step's record, with this as its output, inside the transaction that makes it true."""


class Gate(Protocol):
    """Judges calls. Pure over the snapshot it is given; it never reads, waits or raises."""

    def decide(self, call: Call, context: GateContext) -> Decision:
        """Allow, deny or ask. No rule means deny; a crashed check means deny."""
        ...

    def quotas_for(self, call: Call, context: GateContext) -> tuple[Quota, ...]:
        """The quotas this call would count against."""
        ...

    def passed_over(self, real_path: str, root: str) -> bool:
        """Whether a tool that walks through folders must leave out the file at this real path."""
        ...

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Limits that hold for every run under this policy."""
        ...

    @property
    def approval_seconds(self) -> float:
        """How long a person has to answer an `ask`."""
        ...


class ToolDoor(Protocol):
    """The two halves of every call, for what Podium performs and for what a CLI performs."""

    async def request(self, call: Call) -> Permit | Refusal:
        """Judge the call in one transaction. `tool_requested` is durable before a permit is given."""
        ...

    async def look_back(self, run_id: str, step_key: str) -> None:
        """Deal with calls that a crash left open in a step, before the step is done again.

        Raises `CallInDoubt` when one of them may have happened and must not be done twice.
        """
        ...

    async def settle(
        self, permit: Permit, outcome: Outcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        """Record how a permitted call ended, consume its approval and write its receipt, in one transaction."""
        ...

    async def abandon(self, permit: Permit) -> Receipt:
        """Close an observed call whose end nobody will learn. It may have happened, so its approval is used up.

        Raises `NotPossibleNow` for what Podium performs: that is settled, or in doubt.
        """
        ...


class Toolbox(Protocol):
    """The registered tools, performed through the door."""

    def specs(self) -> Sequence[ToolSpec]: ...

    def normalise(
        self,
        tool: str,
        arguments: dict[str, Json],
        *,
        run_id: str,
        step_key: str,
        index: int,
        role: str = "",
        agent: str = "",
        provenance: tuple[str, ...] = (),
        observed: bool = False,
        root: str | None = None,
    ) -> Call:
        """Check arguments against the schema, fill defaults, resolve paths, split commands.

        `root` is the workspace the call is made in; None means the toolbox's own.

        Raises `UnknownTool` or `BadArguments`, whose words are for the agent.
        """
        ...

    async def perform(self, call: Call, checkpoint: Checkpoint | None = None) -> Outcome | Refusal:
        """Request, act, settle. A call that was settled before is not performed again."""
        ...
