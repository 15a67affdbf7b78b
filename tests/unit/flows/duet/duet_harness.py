"""A duet of two fakes, on an engine and a store in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.contract.messages import read_messages
from podium.agents.turn_step import RoleAgent
from podium.core.events import AnyEvent
from podium.core.turns import Address, MessageBlock, MessageType, Reply, Turn, block_of
from podium.core.work import Run
from podium.engine import EngineSettings, FlowDefinition, FolderPresence, LocalEngine
from podium.jobs.duet import DuetDeps, DuetSide, DuetSides, play_duet
from podium.jobs.duet.models import DUET, DuetJob, DuetLimits, Pair, PairSide
from podium.ports import EventQuery
from podium.testing import FakeAgent, FixedClock, MemoryStore, SteadyIds

Answer = Callable[[Turn], Reply]


def pair(name: str = "main") -> Pair:
    seat = PairSide(agent="fake", cwd="/w")
    return Pair(name=name, planner=seat, executer=seat)


def says(
    kind: MessageType, to: Address, body: str, before: str = "", after: str = ""
) -> Callable[[Turn], Reply]:
    """Answers with this block, under the id of its turn."""

    def answer(turn: Turn) -> Reply:
        assert turn.awaits is not None
        message = MessageBlock(to=to, type=kind, id=turn.awaits.id, body=body)
        return Reply(text=f"{before}\n{block_of(message)}\n{after}".strip(), session="s1")

    return answer


def plans(body: str = "1. do it") -> Answer:
    return says("plan", "EXECUTER", body)


def results(body: str = "it is done") -> Answer:
    return says("result", "PLANNER", body)


class Hall:
    """Two fakes on a stage. Opened again it is another process on the same store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FixedClock()
        self.store = MemoryStore(self.clock)
        self.planner = FakeAgent(name="planner")
        self.executer = FakeAgent(name="executer")
        self.on_screen = False
        self.keeps_conversation = True
        self.allowed_tools: tuple[str, ...] | None = None
        self._nonces = iter(f"{number:08x}" for number in range(0xA0, 0xFFFF))
        self._ids = SteadyIds()
        self._engines: list[LocalEngine] = []

    def cast(self, planner: list[Any], executer: list[Any]) -> None:
        self.planner = FakeAgent(planner, name="planner")
        self.executer = FakeAgent(executer, name="executer")

    def open(self) -> LocalEngine:
        engine = LocalEngine(
            self.store,
            clock=self.clock,
            ids=self._ids,
            presence=FolderPresence(self.folder),
            settings=EngineSettings(tick_seconds=0.02),
        )
        engine.register(FlowDefinition(DUET, play_duet(self._deps()), input_type=DuetJob))
        self._engines.append(engine)
        return engine

    async def play(self, *pairs: Pair, **limits: Any) -> Run:
        """One task to its end."""
        engine = self.open()
        job = DuetJob(text="tidy up", pairs=pairs or (pair(),), limits=DuetLimits(**limits))
        run = await engine.start(DUET, job.model_dump(mode="json"))
        return await engine.finish(run.id)

    async def stop(self, engine: LocalEngine) -> None:
        self._engines.remove(engine)
        await engine.close()

    async def close(self) -> None:
        for engine in self._engines:
            await engine.close()
        await self.store.close()

    async def events(self, run: Run, *types: str) -> list[AnyEvent]:
        query = EventQuery(run_id=run.id, types=types)
        return [event.body for event in await self.store.read(lambda view: view.events(query))]

    def _deps(self) -> DuetDeps:
        async def stage(pair: Pair) -> DuetSides:
            return DuetSides(self._chair(self.planner), self._chair(self.executer))

        return DuetDeps(
            store=self.store,
            clock=self.clock,
            budget_tracker=BudgetTracker(self.store, self.clock),
            prepare_sides=stage,
            read=read_messages,
            new_nonce=lambda: next(self._nonces),
        )

    def _chair(self, agent: FakeAgent) -> DuetSide:
        role_agent = RoleAgent(agent.name, agent, self.allowed_tools)
        return DuetSide(role_agent, "/w", self.on_screen, self.keeps_conversation)
