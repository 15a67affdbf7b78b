"""`DbosEngine`: durable runs on many machines that share one PostgreSQL."""

from __future__ import annotations

from podium.engine.dispatch import Dispatch
from podium.engine.distributed.database import DbosDatabase
from podium.engine.distributed.dispatch import DbosDispatch
from podium.engine.hosting import EngineSettings, RunEngine
from podium.ports import Clock, Ids, Presence, Store

DISTRIBUTED = EngineSettings(
    lease_seconds=6.0,
    beat_seconds=2.0,
    doubt_seconds=6.0,
    heard_seconds=3.0,
    gather_seconds=0.01,
)
"""A worker that is cut off has lost its runs after six seconds; one that is killed, after three."""


class DbosEngine(RunEngine):
    """Lets DBOS hand out the runs of queues. The store must hand queued runs to `enqueue`."""

    def __init__(
        self,
        store: Store,
        *,
        url: str,
        clock: Clock,
        ids: Ids,
        presence: Presence,
        settings: EngineSettings = DISTRIBUTED,
        host: str = "",
    ) -> None:
        """`url` is the database of the store. `host` names this machine where its own name does not."""
        self._url = url
        super().__init__(
            store, clock=clock, ids=ids, presence=presence, settings=settings, host=host
        )

    def _make_dispatch(self) -> Dispatch:
        return DbosDispatch(
            lambda: DbosDatabase(self._url),
            self._store,
            self._ownership,
            self._roster,
            host=self._host_name,
            pin_seconds=self._settings.pin_seconds,
            sweep_seconds=self._settings.tick_seconds,
            nudge=self._nudge.set,
        )
