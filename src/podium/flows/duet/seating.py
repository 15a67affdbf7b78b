"""Which pair does a task: the first that no other task holds."""

from __future__ import annotations

from podium.domain.duets import DUET, DuetJob, Pair
from podium.domain.errors import LockHeld
from podium.domain.events import PairSeated
from podium.domain.ids import short_id
from podium.flows.duet.kit import DuetKit
from podium.ports import FlowContext, RunQuery, Step, Tx, View

SEAT = "seat"
MOST_RUNS = 10_000


async def seated(ctx: FlowContext, kit: DuetKit, job: DuetJob) -> Pair:
    """A pair that is this task's alone until its run has ended. Raises `LockHeld` when none is free."""

    async def take(step: Step) -> Pair:
        changes = kit.store.changes()
        while (pair := await kit.store.write(lambda tx: _taken(tx, step, job))) is None:
            if not job.patient:
                raise await kit.store.read(lambda view: _held(view, step.run_id))
            await anext(changes)
        return pair

    pair = await ctx.step(SEAT, take, returns=Pair)
    # Not a step: a task that had ended and goes on may find another one there.
    changes = kit.store.changes()
    while held := await kit.store.read(lambda view: _held_by_other(view, ctx.run.id, pair)):
        if not job.patient:
            raise held
        await anext(changes)
    return pair


def holders(view: View, but_not: str = "") -> dict[str, str]:
    """Pairs that are at work: name → id of the run that holds it."""
    found: dict[str, str] = {}
    for run in view.runs(RunQuery(flow=DUET, limit=MOST_RUNS)):
        step = None if run.status.ended or run.id == but_not else view.step(run.id, SEAT)
        output = step.output if step is not None else None
        if isinstance(output, dict):
            found[str(output.get("name"))] = run.id
    return found


def _taken(tx: Tx, step: Step, job: DuetJob) -> Pair | None:
    """Look and take in one transaction: of two tasks only one gets the pair."""
    busy = holders(tx)
    pair = next((each for each in job.pairs if each.name not in busy), None)
    if pair is None:
        return None
    tx.append(
        step.run_id,
        PairSeated(
            pair=pair.name,
            planner=pair.planner.agent,
            executer=pair.executer.agent,
            transport=pair.transport,
        ),
    )
    step.checkpoint(tx, pair)
    return pair


def _held_by_other(view: View, run_id: str, pair: Pair) -> LockHeld | None:
    return _held(view, run_id) if pair.name in holders(view, but_not=run_id) else None


def _held(view: View, run_id: str) -> LockHeld:
    told = ", ".join(
        f"{name!r} works on task {short_id(holder)}"
        for name, holder in holders(view, but_not=run_id).items()
    )
    return LockHeld(
        f"no pair is free: {told}; wait for it, `podium duet queue add` the task, end that one with "
        "`podium duet abort TASK`, or go on with it by `podium resume TASK` where nobody works on it"
    )
