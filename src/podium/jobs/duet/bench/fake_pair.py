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
from podium.testing import FakeEnclosures, FakeHookDoors, MemoryTranscripts
from podium.testing.tui_zoo import Answers, Happened, happened, zoo_command
from podium.testing.tui_zoo.answers import beside

MANNERS = {"unbracketed": "reference", "echo": "lines"}
"""How each kind takes words, where not by a bracketed paste."""
TERMS = TuiTimings(quiet_seconds=0.5)


@dataclass
class ZooSeat:
    """A program of the zoo on one side."""

    side: Side
    kind: str
    record: Path
    agent: TuiAgent

    @property
    def name(self) -> str:
        return self.side.lower()

    def happened(self) -> list[Happened]:
        """What the program says of itself: the truth."""
        return happened(self.record)

    @property
    def rests(self) -> bool:
        """Whether it is at nothing, as it says itself."""
        states = [each.text for each in self.happened() if each.what == "state"]
        return states[-1:] == ["ready"]

    def halves(self) -> int:
        """How often it stopped in the middle of a block."""
        file = Path(beside(str(self.record)))
        return file.read_bytes().count(b'"what": "half"') if file.exists() else 0


class ZooPair:
    """One or two programs, each answering in its own way. Made by `zoo_pair`."""

    def __init__(self, folder: Path, terms: TuiTimings = TERMS) -> None:
        """`folder` is private; its path must be short, since it holds a socket."""
        self._folder = folder
        kit = TuiDeps(
            launcher=ProcessLauncher(LauncherSettings(grace_seconds=1.0, linger_seconds=0.02)),
            confinement_provider=FakeEnclosures(),
            doors=FakeHookDoors(),
            transcripts=MemoryTranscripts(),
            clock=SystemClock(),
            hook_command=("true",),
            user_home=folder,
            environ={},
            end_left=end_left_server,
            timings=terms,
        )
        settings = TerminalSettings(socket=folder / "s", folder=folder / "own")
        self.terminals = TerminalPair(kit, settings)
        self.seats: list[ZooSeat] = []

    def seat(self, side: Side, kind: str, answers: Answers, **own: Json) -> ZooSeat:
        """`own` are options of the generic adapter."""
        name = side.lower()
        record = self._folder / f"{name}.jsonl"
        kept = answers.kept_in(self._folder / f"{name}.answers.json")
        options = AgentOptions(
            name=kind,
            command=zoo_command(kind, record, kept),
            options={"manner": MANNERS.get(kind, "paste"), **own},
        )
        part = primer(side, on_screen=True)
        adapter = GenericTui(options)
        agent = self.terminals.side(name, adapter, options, self._folder, part)
        self.seats.append(ZooSeat(side, kind, record, agent))
        return self.seats[-1]


@asynccontextmanager
async def zoo_pair(folder: Path, terms: TuiTimings = TERMS) -> AsyncIterator[ZooPair]:
    """A pair in a new folder, and no trace of its server afterwards. What its programs recorded stays."""
    await asyncio.to_thread(folder.mkdir, mode=0o700)
    pair = ZooPair(folder, terms)
    try:
        yield pair
    finally:
        await pair.terminals.depart()


LEG_SECONDS = 120.0


@dataclass(frozen=True)
class Theatre:
    """Plays tasks with one pair. Made by `theatre`."""

    pair: ZooPair
    engine: LocalEngine
    store: Store

    async def play(self, rounds: int) -> Run:
        """One task, until it has ended or waits for a person."""
        run = await self.engine.start(DUET, self._job(rounds).model_dump(mode="json"), task=_TASK)
        return await self.engine.finish(run.id, stop_when_waiting=True)

    async def handed_on(self, run_id: str) -> list[MessageHeard]:
        """The messages of a task that the router handed on."""
        query = EventQuery(run_id=run_id, types=("message_heard",))
        bodies = [event.body for event in await self.store.read(lambda view: view.events(query))]
        return [each for each in bodies if isinstance(each, MessageHeard) and each.routed_to]

    def _job(self, rounds: int) -> DuetJob:
        planner, executer = (
            PairSide(agent=seat.kind, cwd=str(seat.record.parent)) for seat in self.pair.seats
        )
        limits = DuetLimits(plan_seconds=LEG_SECONDS, result_seconds=LEG_SECONDS, rounds=rounds)
        return DuetJob(text=_TASK, pairs=(Pair(planner=planner, executer=executer),), limits=limits)


_TASK = "mend the roof"


@asynccontextmanager
async def theatre(pair: ZooPair) -> AsyncIterator[Theatre]:
    """Both sides of the pair are seated. Its store lies beside their records."""
    planner, executer = pair.seats
    place = planner.record.parent / "store"
    store = await SqlStore.open(place, clock=SystemClock(), ids=SystemIds())
    engine = LocalEngine(
        store, clock=SystemClock(), ids=SystemIds(), presence=FolderPresence(place / "workers")
    )
    stage = DuetSides(_chair(planner), _chair(executer))
    engine.register(FlowDefinition(DUET, play_duet(_kit(store, stage)), input_type=DuetJob))
    try:
        yield Theatre(pair, engine, store)
    finally:
        await engine.close()
        await store.close()


def _chair(seat: ZooSeat) -> DuetSide:
    player = RoleAgent(seat.name, seat.agent)
    return DuetSide(player, str(seat.record.parent), on_screen=True, keeps_conversation=True)


def _kit(store: Store, stage: DuetSides) -> DuetDeps:
    async def the_stage(pair: Pair) -> DuetSides:
        return stage

    clock = SystemClock()
    return DuetDeps(
        store=store,
        clock=clock,
        purse=BudgetTracker(store, clock),
        stage=the_stage,
        read=read_messages,
        new_nonce=lambda: secrets.token_hex(4),
    )
