"""The eye of `podium top`: what is shown while the database is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from podium.app.workload import WorkloadSnapshot, WorkWatch
from podium.cli.commands.top import LiveSnapshot
from podium.core.errors import StoreBusy, StoreUnusable
from podium.engine import FolderPresence, LocalEngine
from podium.ports import Engine
from podium.testing import FixedClock, MemoryStore, SteadyIds, retry_until
from podium.testing.clock import START_TIME

EARLIER = WorkloadSnapshot(at=START_TIME - timedelta(hours=1))


class Trouble:
    """Gives an engine, unless something is wrong."""

    def __init__(self, engine: Engine) -> None:
        self.error: Exception | None = None
        self.back = asyncio.Event()
        self.back.set()
        self._engine = engine

    async def engine(self) -> Engine:
        await self.back.wait()
        if self.error is not None:
            raise self.error
        return self._engine


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    yield store
    await store.close()


@pytest.fixture
def trouble(store: MemoryStore, tmp_path: Path) -> Trouble:
    presence = FolderPresence(tmp_path)
    return Trouble(LocalEngine(store, clock=FixedClock(), ids=SteadyIds(), presence=presence))


def an_eye(store: MemoryStore, trouble: Trouble, patience_seconds: float = 0.01) -> LiveSnapshot:
    watch = WorkWatch(store, trouble.engine, [])
    return LiveSnapshot(watch, EARLIER, patience_seconds=patience_seconds)


async def test_what_is_seen_is_new_while_nothing_is_wrong(
    store: MemoryStore, trouble: Trouble
) -> None:
    eye = an_eye(store, trouble, patience_seconds=60)
    await eye.look(unless=asyncio.Event())
    assert (eye.snapshot.at, eye.away) == (START_TIME, "")


async def test_what_was_seen_last_stays_with_the_reason_while_an_error_passes(
    store: MemoryStore, trouble: Trouble
) -> None:
    eye = an_eye(store, trouble, patience_seconds=60)
    trouble.error = StoreBusy("locked for 20 s")
    await eye.look(unless=asyncio.Event())
    assert eye.snapshot is EARLIER
    assert eye.away.startswith("locked for 20 s; data is from 20")
    trouble.error = None
    await eye.look(unless=asyncio.Event())
    assert (eye.snapshot.at, eye.away) == (START_TIME, "")


async def test_slow_look_is_reported_and_continued(store: MemoryStore, trouble: Trouble) -> None:
    eye = an_eye(store, trouble)
    trouble.back.clear()
    for _ in range(2):
        await eye.look(unless=asyncio.Event())
        assert eye.away.startswith("the database does not respond; data is from 20")
    trouble.back.set()

    async def is_new() -> bool:
        await eye.look(unless=asyncio.Event())
        return eye.snapshot.at == START_TIME

    await retry_until(is_new)
    assert eye.away == ""


async def test_an_error_that_does_not_pass_is_raised(store: MemoryStore, trouble: Trouble) -> None:
    trouble.error = StoreUnusable("podium.db", "it is damaged", "restore a backup")
    with pytest.raises(StoreUnusable, match="damaged"):
        await an_eye(store, trouble, patience_seconds=60).look(unless=asyncio.Event())


async def test_nobody_waits_for_a_look_who_wants_to_leave(
    store: MemoryStore, trouble: Trouble
) -> None:
    trouble.back.clear()
    leaving = asyncio.Event()
    asyncio.get_running_loop().call_soon(leaving.set)
    eye = an_eye(store, trouble, patience_seconds=3600)
    await eye.look(unless=leaving)
    assert eye.snapshot.at != START_TIME
    eye.close()
