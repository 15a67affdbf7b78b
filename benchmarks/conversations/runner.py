"""Play a corpus through the operator's service: each session in an office of its own, nothing is performed by it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.conversations.corpus import Corpus, Session, Turn
from benchmarks.conversations.records import World, write_rows, write_runs
from benchmarks.conversations.scoring import Judge, Resolve, Score, scored
from podium.app.app import Podium
from podium.app.packs import open_pack
from podium.config.configuration import load_configuration
from podium.core.model import Json
from podium.core.packs import Pack
from podium.jobs.operator.composition import (
    OperatorSetup,
    build_conversation,
    build_operator,
)
from podium.jobs.operator.models import OperatorMode
from podium.jobs.operator.session import Session as OperatorSession
from podium.ports import Transaction
from podium.testing import FixedClock


async def play(corpus: Corpus, folder: Path, *, follow_ups: bool = True) -> list[Score]:
    """Score every message, or the first of each session alone."""
    scores: list[Score] = []
    for packs in dict.fromkeys(session.packs for session in corpus.sessions):
        sessions = [session for session in corpus.sessions if session.packs == packs]
        if "podium" in packs:
            for session in sessions:
                async with _office(corpus, folder / session.id, packs) as office:
                    await write_runs(
                        await office.podium.store(), list(World(session.records).runs())
                    )
                    scores += await office.score(session, follow_ups)
        else:
            async with _office(corpus, folder / "-".join(packs), packs) as office:
                for session in sessions:
                    scores += await office.score(session, follow_ups)
    order = {session.id: place for place, session in enumerate(corpus.sessions)}
    return sorted(scores, key=lambda score: (order[score.session], score.number))


@asynccontextmanager
async def _office(corpus: Corpus, folder: Path, packs: tuple[str, ...]) -> AsyncIterator[Office]:
    project, home = folder / "project", folder / "home"
    project.mkdir(parents=True)
    environ = {"HOME": str(home), "PODIUM_HOME": str(home), "PODIUM_USER": "office"}
    podium = Podium(
        load_configuration(environ, project=project), environ, clock=FixedClock(corpus.now)
    )
    try:
        opened = [open_pack(podium, name) for name in packs]
        if "roofing" in packs:
            # The first look makes the tables.
            operator = await build_operator(podium, OperatorSetup("roofing", classifier="embedded"))
            await operator.process("os.health_check", "execute")
        yield Office(podium, corpus, opened)
    finally:
        await podium.close()


class Office:
    """A project with the records of one session at a time, and the operator it talks to."""

    def __init__(self, podium: Podium, corpus: Corpus, packs: Sequence[Pack]) -> None:
        self.podium, self._corpus, self._packs = podium, corpus, packs

    async def score(self, session: Session, follow_ups: bool) -> list[Score]:
        world = World(session.records)
        if "roofing" in session.packs:
            state = self.podium.folders.state / "packs" / "roofing"
            write_rows(state / "roofing.db", world.rows(self._corpus.now))
        names = tuple(pack.name for pack in self._packs)
        setup = OperatorSetup(names, classifier="embedded")
        memory = HeldSession(OperatorSession(person="office", name=session.id))
        conversation = await build_conversation(self.podium, setup, memory)
        scores = []
        turns = session.turns if follow_ups else session.turns[:1]
        for number, turn in enumerate(turns, 1):
            began = time.perf_counter()
            answer = await conversation.process(turn.text, OperatorMode.PLAN)
            seconds = time.perf_counter() - began
            judge = Judge(self._packs, turn, _resolver(world, session.turns), world.owner_of)
            scores.append(scored(judge, answer, session, number, seconds))
        return scores


class HeldSession:
    """The memory of one conversation, which nobody else goes on with."""

    def __init__(self, session: OperatorSession) -> None:
        self._session = session

    async def load(self) -> OperatorSession:
        return self._session

    async def keep(self, before: OperatorSession, session: OperatorSession) -> None:
        self._session = session

    def save(self, tx: Transaction, before: OperatorSession, session: OperatorSession) -> None:
        self._session = session


def _resolver(world: World, turns: Sequence[Turn]) -> Resolve:
    def resolve(value: Json) -> Json:
        if isinstance(value, list):
            return [resolve(part) for part in value]
        return world.resolved(value)

    return resolve
