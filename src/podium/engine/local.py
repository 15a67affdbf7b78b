"""`LocalEngine`: durable runs on the store of one machine, with nothing else to install."""

from __future__ import annotations

from podium.engine.dispatch import Dispatch, StoreDispatch
from podium.engine.run_engine import EngineSettings, RunEngine
from podium.ports import Clock, Ids, Presence, Store


class LocalEngine(RunEngine):
    """Hands out the runs of queues by the store alone."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        presence: Presence,
        settings: EngineSettings | None = None,
    ) -> None:
        super().__init__(
            store, clock=clock, ids=ids, presence=presence, settings=settings or EngineSettings()
        )

    def _make_dispatch(self) -> Dispatch:
        return StoreDispatch(self._store, self._ownership, self._presence)
