"""A store in which a process hosts runs, event by event."""

from __future__ import annotations

from datetime import timedelta

from podium.core.events import EventBody, RunQueued, RunStarted
from podium.core.work import Run, RunStatus
from podium.ports import Transaction
from podium.telemetry.event_feed import HostedFollower, Taker
from podium.testing import FixedClock, MemoryStore, SteadyIds

ME = "wrk_me"


class HostedHarness:
    """Runs on a memory store, and the follower that is looked at."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.ids = SteadyIds(seed=3)
        self.store = MemoryStore(self.clock)

    async def follow(self, take: Taker, types: tuple[str, ...]) -> HostedFollower:
        return await HostedFollower.open(self.store, ME, types, take)

    async def queue(self, *, flow: str = "pipeline", parent_id: str | None = None) -> Run:
        run = Run(
            id=self.ids.new("run"),
            flow=flow,
            status=RunStatus.QUEUED,
            queue="default",
            parent_id=parent_id,
            created_at=self.clock.now(),
        )

        def add(tx: Transaction) -> None:
            tx.add_run(run)
            tx.append(run.id, RunQueued(flow=flow, flow_version=1, queue="default"))

        await self.store.write(add)
        return run

    async def start(self, run: Run, *, owner: str = ME, fence: int = 1) -> None:
        await self.say(run, RunStarted(owner=owner, fence=fence))

    async def say(self, run: Run, *bodies: EventBody, after: timedelta | None = None) -> None:
        """Let time pass, then append these at once."""
        self.clock.advance((after or timedelta()).total_seconds())

        def append(tx: Transaction) -> None:
            for body in bodies:
                tx.append(run.id, body)

        await self.store.write(append)
