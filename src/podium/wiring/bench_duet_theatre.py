"""The duet's own flow on an engine and a store of its own, played by a pair of the zoo."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from podium.agents.contract.messages import read_messages
from podium.domain.duets import DUET, DuetJob, DuetLimits, Pair, Seat
from podium.domain.events import MessageHeard
from podium.domain.work import Run
from podium.engine import FlowDefinition, FolderPresence, LocalEngine
from podium.flows import Player, Purse
from podium.flows.duet import Chair, DuetKit, Stage, play_duet
from podium.journal import SqlStore
from podium.ports import EventQuery, Store
from podium.wiring.bench_duet_stage import ZooPair, ZooSeat
from podium.wiring.clock import SystemClock, SystemIds

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
            Seat(agent=seat.kind, cwd=str(seat.record.parent)) for seat in self.pair.seats
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
    stage = Stage(_chair(planner), _chair(executer))
    engine.register(FlowDefinition(DUET, play_duet(_kit(store, stage)), input_type=DuetJob))
    try:
        yield Theatre(pair, engine, store)
    finally:
        await engine.close()
        await store.close()


def _chair(seat: ZooSeat) -> Chair:
    player = Player(seat.name, seat.agent)
    return Chair(player, str(seat.record.parent), on_screen=True, keeps_conversation=True)


def _kit(store: Store, stage: Stage) -> DuetKit:
    async def the_stage(pair: Pair) -> Stage:
        return stage

    clock = SystemClock()
    return DuetKit(
        store=store,
        clock=clock,
        purse=Purse(store, clock),
        stage=the_stage,
        read=read_messages,
        new_nonce=lambda: secrets.token_hex(4),
    )
