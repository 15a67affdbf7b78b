"""Hook doors with no socket behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from podium.domain.asking import Finish, ModelAnswer, Stop, Turn
from podium.domain.events import ProgressKind
from podium.domain.gating import DoorAnswer, Effect, ToolSpec
from podium.domain.model import Json
from podium.ports import Translate

DENIED = DoorAnswer(decision=Effect.DENY, say="no answer is prepared for this call; denied")


@dataclass
class FakeTurnDoor:
    """A door that says what it was told to say. No process can come in by it."""

    env: Mapping[str, str] = field(default_factory=dict)
    waiting_approvals: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    answers: deque[DoorAnswer] = field(default_factory=deque)
    asked: list[tuple[str, str, dict[str, Json]]] = field(default_factory=list)
    """(request or perform, tool, arguments), in order."""
    settled: dict[str, bool] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)
    """Uses that a hook may ask for at the moment."""
    told: list[tuple[ProgressKind, str]] = field(default_factory=list)
    hook_env: Mapping[str, str] = field(default_factory=dict)
    finished_with: Finish | None = None
    stopped: Stop | None = None
    remembered: dict[int, ModelAnswer] = field(default_factory=dict)
    """What the model said before a crash, and says now."""

    def said_before(self, number: int, request: str) -> ModelAnswer | None:
        known = self.remembered.get(number)
        return known if known is not None and known.request == request else None

    async def record_answer(self, answer: ModelAnswer) -> None:
        self.remembered[answer.number] = answer

    def specs(self) -> Sequence[ToolSpec]:
        return self.tools

    async def request(
        self, tool: str, arguments: Mapping[str, Json], *, ref: str = ""
    ) -> DoorAnswer:
        return self._answer("request", tool, arguments)

    async def perform(self, tool: str, arguments: Mapping[str, Json]) -> DoorAnswer:
        return self._answer("perform", tool, arguments)

    def expect(self, use: str) -> None:
        self.expected.append(use)

    def expect_no_more(self, use: str) -> None:
        if use in self.expected:
            self.expected.remove(use)

    async def settle(self, ref: str, *, ok: bool, result: Json = None, error: str = "") -> None:
        self.settled[ref] = ok

    def tell(self, kind: ProgressKind, text: str) -> None:
        self.told.append((kind, text))

    def _answer(self, how: str, tool: str, arguments: Mapping[str, Json]) -> DoorAnswer:
        self.asked.append((how, tool, dict(arguments)))
        answer = self.answers.popleft() if self.answers else DENIED
        if answer.approval_id:
            self.waiting_approvals = (*self.waiting_approvals, answer.approval_id)
        return answer


class FakeHookDoors:
    """Opens the same door for every turn, remembers the turns and counts the doors still open."""

    def __init__(
        self,
        env: Mapping[str, str] | None = None,
        waiting_approvals: tuple[str, ...] = (),
        *,
        answers: Iterable[DoorAnswer] = (),
        tools: Iterable[ToolSpec] = (),
    ) -> None:
        """`answers` are given one after the other; without one left the door denies."""
        self.door = FakeTurnDoor(dict(env or {}), waiting_approvals, tuple(tools), deque(answers))
        self.turns: list[Turn] = []
        self.opened = 0

    @asynccontextmanager
    async def open(
        self, turn: Turn, *, agent: str = "", translate: Translate | None = None
    ) -> AsyncIterator[FakeTurnDoor]:
        self.turns.append(turn)
        self.opened += 1
        try:
            yield self.door
        finally:
            self.opened -= 1
