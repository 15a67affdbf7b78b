"""Gate, toolbox, tool door and hook server: the ports that judge every act."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from podium.core.model import FrozenModel, Json, digest_of
from podium.ports.store import Transaction

if TYPE_CHECKING:
    from podium.core.decisions import (
        Budget,
        Call,
        CallOutcome,
        Decision,
        GateContext,
        HookAnswer,
        Permit,
        Quota,
        Receipt,
        Refusal,
        ToolSpec,
    )
    from podium.core.events import ProgressKind
    from podium.core.model import Json
    from podium.core.turns import Finish, ModelAnswer, Turn, TurnStop


Checkpoint = Callable[[Transaction, FrozenModel], None]
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
        """Tell whether a tool that walks through folders must leave out the file at this real path."""
        ...

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Limits that hold for every run under this policy."""
        ...

    @property
    def approval_seconds(self) -> float:
        """Time for a person to answer an `ask`."""
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
        self, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None = None
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

    async def perform(
        self, call: Call, checkpoint: Checkpoint | None = None
    ) -> CallOutcome | Refusal:
        """Request, act, settle. A call that was settled before is not performed again."""
        ...


Translate = Callable[[str, dict[str, Json]], tuple[str, dict[str, Json]]]
"""Turns a CLI's own tool name and arguments into those of a registered tool."""

ANY_USE = "*"
"""Stands for every use of a tool: those of inner agents, where their CLI does not tell of them."""


def nameless_use(tool: str, arguments: dict[str, Json]) -> str:
    """The name of a use whose CLI gives it none: the same for the same tool and arguments."""
    return digest_of([tool, arguments])


class HookDoor(Protocol):
    """A turn's door, open for as long as the turn lasts.

    Processes come in by the socket that `env` names, the agent itself by the methods; both are
    judged, performed and receipted alike. Whatever goes wrong, the answer is a denial.
    """

    @property
    def env(self) -> Mapping[str, str]:
        """Variables for the agent's own program: with them it may ask, tell and let Podium act."""
        ...

    @property
    def hook_env(self) -> Mapping[str, str]:
        """Variables for a CLI's hook. Whoever has them may ask, for uses that are expected."""
        ...

    def expect(self, use: str) -> None:
        """The CLI itself tells of this use of a tool: its hook may ask for it, once.

        Questions about parts of it are asked for by `use#PART`.
        """
        ...

    def expect_no_more(self, use: str) -> None:
        """Nothing is left to be asked about one use by this name."""
        ...

    @property
    def waiting_approvals(self) -> tuple[str, ...]:
        """Approvals that calls of this turn were told to wait for."""
        ...

    def specs(self) -> Sequence[ToolSpec]:
        """The tools this turn is shown, with their schemas as models are shown them."""
        ...

    async def request(
        self, tool: str, arguments: Mapping[str, Json], *, ref: str = ""
    ) -> HookAnswer:
        """May the agent's own program do this itself? `ref` is its name for this use of the tool."""
        ...

    async def settle(self, ref: str, *, ok: bool, result: Json = None, error: str = "") -> None:
        """Settle a permitted call. One that is not open, or was settled before, is let be."""
        ...

    async def perform(self, tool: str, arguments: Mapping[str, Json]) -> HookAnswer:
        """Let Podium do it. With allow, `outcome` says how it ended."""
        ...

    @property
    def finished_with(self) -> Finish | None:
        """The agent's message with the tool `finish`, once that was performed in this turn."""
        ...

    @property
    def stopped(self) -> TurnStop | None:
        """The limit that this turn's calls have come to. From then on every call is denied."""
        ...

    def recorded_answer(self, number: int, request: str) -> ModelAnswer | None:
        """The model's answer of this number from before a crash, if it was an answer to this request."""
        ...

    async def record_answer(self, answer: ModelAnswer) -> None:
        """Keep an answer of the model. On return it survives a crash.

        Raises what the journal raises: an answer that is not kept is not acted upon.
        """
        ...

    def report_progress(self, kind: ProgressKind, text: str) -> None:
        """Say what the agent is at, for whoever follows the run. Small pieces are put together."""
        ...


class HookServers(Protocol):
    """Opens a door for each turn."""

    def open(
        self, turn: Turn, *, agent: str = "", translate: Translate | None = None
    ) -> AbstractAsyncContextManager[HookDoor]:
        """While open, calls of the turn are judged, performed and receipted.

        Raises `CallInDoubt`, on entering or on leaving, when only a person can say what became of
        a call.
        """
        ...
