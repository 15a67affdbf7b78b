"""The metrics of a worker, for Prometheus to fetch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from podium.app.app import Podium
from podium.cli.metrics_server import MetricsPage, read_address, served
from podium.ports import Store, StoreView
from podium.telemetry.event_feed import HostedFollower
from podium.telemetry.exposition import CONTENT_TYPE, Gauge, MetricFamily, StoreFigures, exposed
from podium.telemetry.metrics import HostedMetrics, gauges

READ_SECONDS = 5.0
"""Seconds a fetch waits for the store before it answers without it."""

FRESH_SECONDS = 1.0
"""Cache time of the page: frequent fetches must not cost the store more."""


@asynccontextmanager
async def metrics_page(podium: Podium, address: str) -> AsyncIterator[str]:
    """Serve `/metrics` and `/healthz` while open, and give the URL of the first.

    Open it before the worker takes its first run. `address` is `HOST:PORT`, or a port of this
    machine alone. Raises `BadInput` or `UserMustAct` when nothing can listen there.
    """
    where = read_address(address)
    store, engine = await podium.store(), await podium.engine()
    reading = await MetricsReading.open(store, engine.worker_id, store.figures)
    following = asyncio.create_task(reading.follow())
    try:
        pages = {"/metrics": reading.page, "/healthz": _healthy}
        async with served(where, pages) as listening:
            yield f"{listening.url}/metrics"
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def _healthy() -> MetricsPage:
    """Answer while the process lives; `podium_store_up` tells about the store.

    Who restarts what is not healthy would end agents in mid-turn for a database that is away.
    """
    return MetricsPage("ok\n")


class MetricsReading:
    """Metrics of one worker and its store."""

    @classmethod
    async def open(cls, store: Store, worker_id: str, figures: StoreFigures) -> MetricsReading:
        """Count from now on. `figures` are the store's own."""
        metrics = HostedMetrics()
        follower = await HostedFollower.open(store, worker_id, metrics.types, metrics.take)
        return cls(store, worker_id, figures, metrics, follower)

    def __init__(
        self,
        store: Store,
        worker_id: str,
        figures: StoreFigures,
        metrics: HostedMetrics,
        follower: HostedFollower,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._figures = figures
        self._metrics = metrics
        self._follower = follower
        self._turn = asyncio.Lock()
        self._made: tuple[float, MetricsPage] | None = None

    async def follow(self) -> None:
        """Keep the counters up until the store is closed."""
        await self._follower.follow()

    async def page(self) -> MetricsPage:
        """Everything, at most a second old. Without the store's part when it does not answer."""
        async with self._turn:
            now = asyncio.get_running_loop().time()
            if self._made is None or now - self._made[0] > FRESH_SECONDS:
                self._made = now, MetricsPage(await self._text(), CONTENT_TYPE)
            return self._made[1]

    async def _text(self) -> str:
        read = await self._read()
        up = Gauge("podium_store_up", "1 if the store answered this request, otherwise 0.")
        up.put(amount=read is not None)
        families = [up, *(read or ()), *self._metrics.families()]
        return exposed(families) + self._figures.exposed()

    async def _read(self) -> list[MetricFamily] | None:
        """Read the store's metrics; None when it does not answer."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await self._store.read(self._families)
        except Exception:
            # Whatever it is, the page says that the store is not up, and shows what needs none.
            return None

    def _families(self, view: StoreView) -> list[MetricFamily]:
        lag = Gauge("podium_event_lag_seconds", "Age of the oldest event that is not counted yet.")
        unread = self._follower.unread(view)
        age = (view.now() - unread.at).total_seconds() if unread is not None else 0.0
        lag.put(amount=max(age, 0.0))
        return [*gauges(view, self._worker_id), lag]
