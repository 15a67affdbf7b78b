"""Pair of fake programs on a tmux server of its own, and the duet's flow on an engine and store of its own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.contract.messages import read_messages
from podium.agents.deps import AgentOptions
from podium.agents.tui import GenericTui, TerminalPair, TerminalSettings, TuiAgent, TuiDeps
from podium.agents.tui.adapter import TuiTimings
from podium.agents.turn_step import RoleAgent
from podium.core.model import Json
from podium.core.turns import Side
from podium.core.work import Run
from podium.engine import FlowDefinition, FolderPresence, LocalEngine
from podium.jobs.duet import DuetDeps, DuetSide, DuetSides, play_duet, primer
from podium.jobs.duet.events import MessageHeard
from podium.jobs.duet.models import DUET, DuetJob, DuetLimits, Pair, PairSide
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import EventQuery, Store
from podium.sandbox import LauncherSettings, ProcessLauncher, end_left_server
from podium.store import SqlStore
from podium.testing import FakeConfinementProvider, FakeHookDoors, MemoryTranscripts
from podium.testing.fake_tuis import Happened, ScriptedAnswers, happened, tui_command
from podium.testing.fake_tuis.answers import events_file

MANNERS = {"unbracketed": "reference", "echo": "lines"}
"""Input manner of each kind that does not take a bracketed paste."""
TIMINGS = TuiTimings(quiet_seconds=0.5)


@dataclass
class FakeSide:
    """A fake TUI on one side of a pair."""

    side: Side
    kind: str
    record: Path
    agent: TuiAgent

    @property
    def name(self) -> str:
        return self.side.lower()

    def happened(self) -> list[Happened]:
        """Read the program's own record: the truth."""
        return happened(self.record)

    @property
    def rests(self) -> bool:
        """True if the program itself reports that it is ready."""
        states = [event.text for event in self.happened() if event.what == "state"]
        return states[-1:] == ["ready"]

    def halves(self) -> int:
        """Count its stops in the middle of a block."""
        file = Path(events_file(str(self.record)))
        return file.read_bytes().count(b'"what": "half"') if file.exists() else 0


class FakePair:
    """One or two fake TUIs, each answering in its own way. Made by `open_fake_pair`."""

    def __init__(self, folder: Path, timings: TuiTimings = TIMINGS) -> None:
        """`folder` is private; its path must be short, since it holds a socket."""
        self._folder = folder
        tui_deps = TuiDeps(
            launcher=ProcessLauncher(LauncherSettings(grace_seconds=1.0, linger_seconds=0.02)),
            confinement_provider=FakeConfinementProvider(),
            doors=FakeHookDoors(),
            transcripts=MemoryTranscripts(),
            clock=SystemClock(),
            hook_command=("true",),
            user_home=folder,
            environ={},
            end_left=end_left_server,
            timings=timings,
        )
        settings = TerminalSettings(socket=folder / "s", folder=folder / "own")
        self.terminals = TerminalPair(tui_deps, settings)
        self.sides: list[FakeSide] = []

    def add_side(self, side: Side, kind: str, answers: ScriptedAnswers, **own: Json) -> FakeSide:
        """`own` are options of the generic adapter."""
        name = side.lower()
        record = self._folder / f"{name}.jsonl"
        answers_file = answers.write_to(self._folder / f"{name}.answers.json")
        options = AgentOptions(
            name=kind,
            command=tui_command(kind, record, answers_file),
            options={"manner": MANNERS.get(kind, "paste"), **own},
        )
        part = primer(side, on_screen=True)
        adapter = GenericTui(options)
        agent = self.terminals.side(name, adapter, options, self._folder, part)
        self.sides.append(FakeSide(side, kind, record, agent))
        return self.sides[-1]


@asynccontextmanager
async def open_fake_pair(folder: Path, timings: TuiTimings = TIMINGS) -> AsyncIterator[FakePair]:
    """Open a pair in a new folder. Its server is gone afterwards; the programs' records stay."""
    await asyncio.to_thread(folder.mkdir, mode=0o700)
    pair = FakePair(folder, timings)
    try:
        yield pair
    finally:
        await pair.terminals.depart()


HOP_SECONDS = 120.0


@dataclass(frozen=True)
class PairRunner:
    """Runs tasks with one pair. Made by `open_runner`."""

    pair: FakePair
    engine: LocalEngine
    store: Store

    async def play(self, rounds: int) -> Run:
        """Run one task until it has ended or waits for a person."""
        run = await self.engine.start(DUET, self._job(rounds).model_dump(mode="json"), task=_TASK)
        return await self.engine.finish(run.id, stop_when_waiting=True)

    async def handed_on(self, run_id: str) -> list[MessageHeard]:
        """List the messages of a task that the router handed on."""
        query = EventQuery(run_id=run_id, types=("message_heard",))
        bodies = [event.body for event in await self.store.read(lambda view: view.events(query))]
        return [body for body in bodies if isinstance(body, MessageHeard) and body.routed_to]

    def _job(self, rounds: int) -> DuetJob:
        planner, executer = (
            PairSide(agent=side.kind, cwd=str(side.record.parent)) for side in self.pair.sides
        )
        limits = DuetLimits(plan_seconds=HOP_SECONDS, result_seconds=HOP_SECONDS, rounds=rounds)
        return DuetJob(text=_TASK, pairs=(Pair(planner=planner, executer=executer),), limits=limits)


_TASK = "mend the roof"


@asynccontextmanager
async def open_runner(pair: FakePair) -> AsyncIterator[PairRunner]:
    """Open a runner for a pair with both sides. Its store is next to their records."""
    planner, executer = pair.sides
    store_folder = planner.record.parent / "store"
    store = await SqlStore.open(store_folder, clock=SystemClock(), ids=SystemIds())
    engine = LocalEngine(
        store,
        clock=SystemClock(),
        ids=SystemIds(),
        presence=FolderPresence(store_folder / "workers"),
    )
    sides = DuetSides(_duet_side(planner), _duet_side(executer))
    engine.register(FlowDefinition(DUET, play_duet(_duet_deps(store, sides)), input_type=DuetJob))
    try:
        yield PairRunner(pair, engine, store)
    finally:
        await engine.close()
        await store.close()


def _duet_side(side: FakeSide) -> DuetSide:
    role_agent = RoleAgent(side.name, side.agent)
    return DuetSide(role_agent, str(side.record.parent), on_screen=True, keeps_conversation=True)


def _duet_deps(store: Store, sides: DuetSides) -> DuetDeps:
    async def prepare_sides(pair: Pair) -> DuetSides:
        return sides

    clock = SystemClock()
    return DuetDeps(
        store=store,
        clock=clock,
        budget_tracker=BudgetTracker(store, clock),
        prepare_sides=prepare_sides,
        read=read_messages,
        new_nonce=lambda: secrets.token_hex(4),
    )
