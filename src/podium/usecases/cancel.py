"""The wish that a run ends."""

from __future__ import annotations

from podium.domain.work import Run
from podium.ports import Engine, Store
from podium.usecases.find_id import find_id


async def cancel(store: Store, engine: Engine, run: str, *, by: str, why: str = "") -> Run:
    """Wish a run ended, whichever process hosts it. The wish is durable on return."""
    run_id = await store.read(lambda view: find_id(view, "run", run))
    return await engine.cancel(run_id, by=by, why=why)
