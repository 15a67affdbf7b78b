"""One click: say yes to a candidate that waits, and see its delivery through."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing, suppress
from functools import partial

from podium.domain.approvals import Approver
from podium.domain.errors import LockHeld, NotPossibleNow
from podium.domain.gating import ApprovalStatus
from podium.domain.work import Run
from podium.ports import Clock, Engine, Ids, Store, View
from podium.usecases.approve import approve
from podium.usecases.find_candidate import find_candidate
from podium.usecases.list_candidates import StandingOf


async def say_yes_to_candidate(
    store: Store,
    clock: Clock,
    ids: Ids,
    text: str,
    *,
    by: Approver | str,
    groups: Mapping[str, tuple[str, ...]],
    asked: str = "",
) -> Run:
    """The run of the candidate that was meant, with a yes where it waited for one.

    With `asked` the yes is for that approval alone, whatever waits by now.
    """
    run = await store.read(partial(_meant, text))
    waiting = await store.read(partial(_pending, run.id))
    if waiting and not run.status.ended:
        await approve(store, clock, ids, asked or waiting, by=by, groups=groups)
    return run


async def deliver(store: Store, engine: Engine, run: Run, stands: StandingOf) -> None:
    """See the run through here, or beside whoever has it, until it no longer goes on by itself.

    A quota that is used up is not waited for.
    """
    with suppress(LockHeld, NotPossibleNow):  # another process has it just now, or it has ended
        await engine.resume(run.id)
    changes = store.changes()
    async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
        async for _ in changes:
            if await store.read(partial(_is_at_rest, run.id, stands)):
                return


def _is_at_rest(run_id: str, stands: StandingOf, view: View) -> bool:
    run = view.run(run_id)
    return run is None or stands(view, run) is not None


def _meant(text: str, view: View) -> Run:
    return find_candidate(view, text)


def _pending(run_id: str, view: View) -> str:
    found = view.approvals(run_id=run_id, statuses=(ApprovalStatus.PENDING,), limit=1)
    return found[0].id if found else ""
