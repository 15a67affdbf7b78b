"""A run that nobody hosts goes on here, from its checkpoint."""

from __future__ import annotations

from podium.domain.work import Run
from podium.ports import Engine, Store
from podium.usecases.find_id import find_id


async def resume(store: Store, engine: Engine, run: str, *, note: str = "", by: str = "") -> Run:
    """Host the run in this process. Raises `LockHeld` while another one does.

    `note` is guidance for a run that asked a person.
    """
    run_id = await store.read(lambda view: find_id(view, "run", run))
    return await engine.resume(run_id, note=note, by=by)


async def see_through(engine: Engine, run: Run, *, wait: bool = False) -> Run:
    """Stay until the hosted run ended or needs a person; without `wait` also until it waits for somebody.

    A run that only lets time pass goes on by itself and is stayed with.
    """
    return await engine.finish(run.id, stop_when_waiting=not wait)
