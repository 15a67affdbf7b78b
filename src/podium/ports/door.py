"""The hook door: how an agent and its processes reach the tool door during one turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from podium.domain.gating import digest_of
from podium.domain.model import Json

if TYPE_CHECKING:
    from podium.domain.asking import Finish, ModelAnswer, Stop, Turn
    from podium.domain.events import ProgressKind
    from podium.domain.gating import DoorAnswer, ToolSpec

Translate = Callable[[str, dict[str, Json]], tuple[str, dict[str, Json]]]
"""Turns a CLI's own tool name and arguments into those of a registered tool."""

ANY_USE = "*"
"""Stands for every use of a tool: those of inner agents, where their CLI does not tell of them."""


def nameless_use(tool: str, arguments: dict[str, Json]) -> str:
    """The name of a use whose CLI gives it none: the same for the same tool and arguments."""
    return digest_of([tool, arguments])


class TurnDoor(Protocol):
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
    ) -> DoorAnswer:
        """May the agent's own program do this itself? `ref` is its name for this use of the tool."""
        ...

    async def settle(self, ref: str, *, ok: bool, result: Json = None, error: str = "") -> None:
        """How a permitted call ended. One that is not open, or was settled before, is let be."""
        ...

    async def perform(self, tool: str, arguments: Mapping[str, Json]) -> DoorAnswer:
        """Let Podium do it. With allow, `outcome` says how it ended."""
        ...

    @property
    def finished_with(self) -> Finish | None:
        """What the agent said with the tool `finish`, once that was performed in this turn."""
        ...

    @property
    def stopped(self) -> Stop | None:
        """The limit that this turn's calls have come to. From then on every call is denied."""
        ...

    def said_before(self, number: int, request: str) -> ModelAnswer | None:
        """The model's answer of this number from before a crash, if it was an answer to this request."""
        ...

    async def record_answer(self, answer: ModelAnswer) -> None:
        """Keep an answer of the model. On return it survives a crash.

        Raises what the journal raises: an answer that is not kept is not acted upon.
        """
        ...

    def tell(self, kind: ProgressKind, text: str) -> None:
        """Say what the agent is at, for whoever follows the run. Small pieces are put together."""
        ...


class HookDoors(Protocol):
    """Opens a door for each turn."""

    def open(
        self, turn: Turn, *, agent: str = "", translate: Translate | None = None
    ) -> AbstractAsyncContextManager[TurnDoor]:
        """While open, calls of the turn are judged, performed and receipted.

        Raises `CallInDoubt`, on entering or on leaving, when only a person can say what became of
        a call.
        """
        ...
