"""Fakes of the launcher, of confinements and of the hook server: nothing is started, no socket is opened."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from podium.core.decisions import Effect, HookAnswer, ToolSpec
from podium.core.errors import ToolMissing
from podium.core.events import ProgressKind
from podium.core.model import Json
from podium.core.processes import Confinement, FolderConfinement, ProcessExit, ProcessSpec
from podium.core.turns import Finish, ModelAnswer, Turn, TurnStop
from podium.ports import Translate

PreparedEnd = ProcessExit | Callable[[ProcessSpec], ProcessExit] | None
"""End of a process: a result, a function of its spawn, or None: it runs until it is ended."""


class FakeProcess:
    """A process that exists on paper."""

    def __init__(self, pid: int, spawn: ProcessSpec, prepared: PreparedEnd) -> None:
        self._pid = pid
        self.received = spawn.stdin
        self.input_open = spawn.interactive
        self._ended: asyncio.Future[ProcessExit] = asyncio.get_running_loop().create_future()
        if prepared is not None:
            self._ended.set_result(prepared(spawn) if callable(prepared) else prepared)
        elif spawn.limits.seconds is not None:
            # No time passes here, so a process that would never end meets its limit at once.
            self._ended.set_result(_killed(seconds=spawn.limits.seconds, timed_out=True))

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def alive(self) -> bool:
        return not self._ended.done()

    async def lines(self, *, ends: bool = False) -> AsyncIterator[bytes]:
        """The prepared stdout, line by line; then nothing until the process has ended."""
        if self._ended.done():
            for line in self._ended.result().stdout.splitlines(ends):
                yield line
        await self.wait()

    async def send(self, data: bytes) -> None:
        self.received += data

    def close_input(self) -> None:
        self.input_open = False

    async def wait(self) -> ProcessExit:
        return await asyncio.shield(self._ended)

    async def end(self, grace_seconds: float = 5.0) -> ProcessExit:
        if self.alive:
            self._ended.set_result(_killed(cancelled=True))
        return await self.wait()


class FakeLauncher:
    """Ends each process as the table says by its argv, and remembers every spawn.

    The longest entry that the argv begins with answers, so `("git",)` stands for all of git.
    """

    def __init__(self, ends: Mapping[tuple[str, ...], PreparedEnd] | None = None) -> None:
        self._ends = dict(ends or {})
        self._pids = itertools.count(1000)
        self.spawns: list[ProcessSpec] = []
        self.processes: list[FakeProcess] = []

    async def start(self, spawn: ProcessSpec) -> FakeProcess:
        prepared = self._end_of(spawn)
        self.spawns.append(spawn)
        self.processes.append(FakeProcess(next(self._pids), spawn, prepared))
        return self.processes[-1]

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        process = await self.start(spawn)
        try:
            return await process.wait()
        finally:
            await process.end()

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        """Return its argv unchanged."""
        self._end_of(spawn)
        self.spawns.append(spawn)
        return spawn.argv

    def _end_of(self, spawn: ProcessSpec) -> PreparedEnd:
        for length in range(len(spawn.argv), 0, -1):
            if spawn.argv[:length] in self._ends:
                return self._ends[spawn.argv[:length]]
        raise ToolMissing(
            f"{spawn.argv[0]!r} is not in this launcher's table; add an entry for {spawn.argv!r}"
        )


def _killed(seconds: float = 0.0, timed_out: bool = False, cancelled: bool = False) -> ProcessExit:
    return ProcessExit(
        exit_code=None,
        signal=signal.SIGTERM,
        seconds=seconds,
        timed_out=timed_out,
        cancelled=cancelled,
    )


class FakeConfinementProvider:
    """Gives the same answer for every folder, and remembers which were asked for."""

    def __init__(
        self, confinement: Confinement | None = None, held: FolderConfinement | None = None
    ) -> None:
        """Without a confinement nothing is confined."""
        self._confinement = confinement or Confinement()
        self._held = held
        self.asked: list[str] = []

    async def confinement(self, root: str) -> Confinement:
        self.asked.append(root)
        return self._confinement

    def held(self, root: str) -> FolderConfinement | None:
        return self._held


DENIED = HookAnswer(decision=Effect.DENY, say="no answer is prepared for this call; denied")


@dataclass
class FakeTurnDoor:
    """Hook door with prepared answers. No process can connect to it."""

    env: Mapping[str, str] = field(default_factory=dict)
    waiting_approvals: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    answers: deque[HookAnswer] = field(default_factory=deque)
    asked: list[tuple[str, str, dict[str, Json]]] = field(default_factory=list)
    """(request or perform, tool, arguments), in order."""
    settled: dict[str, bool] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)
    """Uses that a hook may ask for at the moment."""
    progress: list[tuple[ProgressKind, str]] = field(default_factory=list)
    hook_env: Mapping[str, str] = field(default_factory=dict)
    finished_with: Finish | None = None
    stopped: TurnStop | None = None
    remembered: dict[int, ModelAnswer] = field(default_factory=dict)
    """Answers of the model from before a crash, and from now."""

    def recorded_answer(self, number: int, request: str) -> ModelAnswer | None:
        answer = self.remembered.get(number)
        return answer if answer is not None and answer.request == request else None

    async def record_answer(self, answer: ModelAnswer) -> None:
        self.remembered[answer.number] = answer

    def specs(self) -> Sequence[ToolSpec]:
        return self.tools

    async def request(
        self, tool: str, arguments: Mapping[str, Json], *, ref: str = ""
    ) -> HookAnswer:
        return self._answer("request", tool, arguments)

    async def perform(self, tool: str, arguments: Mapping[str, Json]) -> HookAnswer:
        return self._answer("perform", tool, arguments)

    def expect(self, use: str) -> None:
        self.expected.append(use)

    def expect_no_more(self, use: str) -> None:
        if use in self.expected:
            self.expected.remove(use)

    async def settle(self, ref: str, *, ok: bool, result: Json = None, error: str = "") -> None:
        self.settled[ref] = ok

    def report_progress(self, kind: ProgressKind, text: str) -> None:
        self.progress.append((kind, text))

    def _answer(self, how: str, tool: str, arguments: Mapping[str, Json]) -> HookAnswer:
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
        answers: Iterable[HookAnswer] = (),
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
