"""Log of a run: events followed or paged, steps, and transcripts of turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.id_lookup import find_id
from podium.core.errors import NotPossibleNow, UnknownId
from podium.core.events import Event
from podium.core.work import StepRecord
from podium.platform.safe_open import read_start
from podium.ports import EventQuery, Store, StoreView

if TYPE_CHECKING:
    from podium.app.app import Podium


PAGE = 500


async def follow_logs(
    store: Store, run: str, *, follow: bool = False, after_seq: int = 0
) -> AsyncIterator[Event]:
    """Yield a run's events in order; with `follow` until the run has ended, whoever hosts it.

    Raises `UnknownId` or `AmbiguousId` before the first event.
    """
    run_id = await store.read(lambda view: find_id(view, "run", run))
    changes = store.changes()
    async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
        async for _ in changes:
            more = True
            while more:
                events, ended = await store.read(partial(_page, run_id, after_seq))
                for event in events:
                    yield event
                    after_seq = event.seq
                more = len(events) == PAGE
            if ended or not follow:
                return


def _page(run_id: str, after_seq: int, view: StoreView) -> tuple[list[Event], bool]:
    """The next events, and whether the run had ended when they were read."""
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", run_id)
    query = EventQuery(run_id=run_id, after_seq=after_seq, limit=PAGE)
    return view.events(query), run.status.ended


async def list_events(
    store: Store, *, after: int = 0, limit: int, types: Sequence[str] = ()
) -> list[Event]:
    """Events of all runs behind this position."""
    query = EventQuery(after_position=after, types=tuple(types), limit=limit)
    return await store.read(lambda view: view.events(query))


async def list_run_events(
    store: Store, run: str, *, after: int = 0, limit: int, types: Sequence[str] = ()
) -> list[Event]:
    """Events of one run behind this `seq`. Raises `UnknownId` or `AmbiguousId`."""

    def look(view: StoreView) -> list[Event]:
        run_id = find_id(view, "run", run)
        query = EventQuery(run_id=run_id, after_seq=after, types=tuple(types), limit=limit)
        return view.events(query)

    return await store.read(look)


async def list_steps(store: Store, run: str, *, after: int = -1, limit: int) -> list[StepRecord]:
    """Steps behind this ordinal, in their order. Raises `UnknownId` or `AmbiguousId`."""

    def look(view: StoreView) -> list[StepRecord]:
        return view.steps(find_id(view, "run", run), after=after, limit=limit)

    return await store.read(look)


MAX_BYTES = 400_000


async def transcript_of(podium: Podium, run_id: str, name: str) -> tuple[str, bool]:
    """The beginning of a transcript of a run, and whether that is not all of it.

    Raises `UnknownId` for any other file.
    """
    folder = podium.folders.state / "runs" / run_id / "replies"
    return await asyncio.to_thread(_read, folder, name)


def _read(folder: Path, name: str) -> tuple[str, bool]:
    # Only what is listed there: a name is never followed as a path.
    if not folder.is_dir() or name not in {path.name for path in folder.iterdir()}:
        raise UnknownId("transcript", name)
    try:
        content = read_start(folder / name, MAX_BYTES + 1)
    except OSError as error:
        raise NotPossibleNow(f"transcript {name!r} cannot be read ({error.strerror})") from None
    return content[:MAX_BYTES].decode(errors="replace"), len(content) > MAX_BYTES
