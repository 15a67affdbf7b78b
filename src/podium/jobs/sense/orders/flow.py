"""Flow body of a work order: claimed from the inbox, performed operation by operation, answered, put away."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TypeVar

from podium.core.decisions import Approval, CallOutcome, PlanPosition, Refusal
from podium.core.errors import (
    NO_SPACE,
    BadArguments,
    BridgeUnusable,
    NotPossibleNow,
    PlanFailed,
    StoreFull,
    UnknownTool,
)
from podium.core.model import Json
from podium.jobs.sense.deps import WORKER, Weight, WorkerDeps
from podium.jobs.sense.orders.operation_writer import Worded, with_ops
from podium.jobs.sense.orders.release import (
    BEGINNING,
    answer_to,
    free_name,
    op_results,
    release,
    take_name,
    was_done,
)
from podium.jobs.sense.orders.work_order import (
    Ack,
    AckStatus,
    Claim,
    OpenedOrder,
    Operation,
    OrderJob,
    WorkOrder,
)
from podium.jobs.sense.ports import Shelf
from podium.jobs.sense.trust import TrustEntry
from podium.ports import FlowBody, FlowContext, StepContext, StoreView, Transaction

T = TypeVar("T")

MAX_CRASHES = 10
"""An operation that was begun so often and never ended has brought its worker down each time."""
ANOTHER_ID = "if this is different work, choose another `id` and send it again"
_NO_SPACE = os.strerror(errno.ENOSPC)
"""In an operation's error: trying again would only fill up what is left."""
BACKOFF_SECONDS = 2.0
"""Before the second try; each further one waits twice as long."""


class Poisonous(Exception):
    """The order cannot be done; says why, under which status it is put away, and which operation stopped it."""

    def __init__(self, status: AckStatus, why: str, op: int = 0) -> None:
        super().__init__(why)
        self.status = status
        self.op = op


def work_order(deps: WorkerDeps) -> FlowBody:
    """Build the flow with its dependencies."""

    async def carry_out(ctx: FlowContext, job: OrderJob) -> Json:
        order, poison = job.order, None
        try:
            order = await _usable(ctx, deps, job)
            await _weighed(ctx, deps, order)
            approval = await _released(ctx, deps, job)
            for number, op in enumerate(order.ops, start=1):
                await _do(ctx, deps, op, number, approval, order)
        except Poisonous as error:
            poison = error
        ack = await _answered(ctx, deps, job, order, poison)
        await _put_away(ctx, deps, job, "parked" if poison else "done", ack.error)
        if poison:
            # The order has its answer; the run must not pass for one that met its goal.
            raise PlanFailed(f"order {ack.wo_id!r} is {ack.status}: {ack.error}")
        return ack.model_dump(mode="json")

    return carry_out


async def _usable(ctx: FlowContext, deps: WorkerDeps, job: OrderJob) -> WorkOrder:
    """Return the order with operations to perform. Raises `Poisonous`."""
    order = job.order
    if order is None or job.fault:
        raise Poisonous("parked", job.fault or "the file contains no work order")
    if before := await ctx.step("seen", partial(_duplicate_reason, deps, order)):
        raise Poisonous("duplicate", before)
    options = deps.options
    for looked in count():
        worded = await with_ops(
            ctx, order,
            writer=deps.writer if not looked else None, store=deps.store, budget=deps.budget, workspace=deps.workspace,
            options=options, show=deps.show,
        )  # fmt: skip
        order = worded.order
        if order.ops:
            return order
        if not order.tasks:
            raise Poisonous("parked", "the order has neither `ops` nor `tasks`; add one of them")
        path = f"{options.layout.claimed}/{job.claim}"
        await ctx.ask_person(
            "ops",
            f"order {order.id!r} has no `ops`{_why_none(worded)}; write them to {path!r}, then run "
            f"`podium resume {ctx.run.id}`",
            index=looked,
        )
        opened = await ctx.step(
            "open-again", partial(_opened, deps, job), index=looked, returns=OpenedOrder
        )
        if opened.fault or opened.order is None or opened.order.id != order.id:
            raise Poisonous("parked", opened.fault or "the file now contains another order")
        order = opened.order
    raise AssertionError("looks are counted without end")


def _why_none(worded: Worded) -> str:
    return f", and none could be planned ({worded.cannot})" if worded.cannot else ""


async def _duplicate_reason(deps: WorkerDeps, order: WorkOrder, step: StepContext) -> str:
    """Return the reason why an order of this name must not be done now; empty if it may, and then its name is taken."""
    before = await asyncio.to_thread(answer_to, deps.inbox, order.id)
    if before is not None and before.status == "done":
        # Also by this very run: it was answered under a record that is gone.
        return (
            f"order {order.id!r} was already done at {before.finished_at.isoformat()}; {ANOTHER_ID}"
        )
    now = deps.clock.now()
    mine = await deps.store.write(lambda tx: take_name(tx, order.id, step.run_id, now))
    return "" if mine else f"another order {order.id!r} is in progress or was done; {ANOTHER_ID}"


async def _opened(deps: WorkerDeps, job: OrderJob, step: StepContext) -> OpenedOrder:
    return await asyncio.to_thread(lambda: deps.inbox.open(_claim(deps, job, step.run_id)))


async def _weighed(ctx: FlowContext, deps: WorkerDeps, order: WorkOrder) -> None:
    """Weigh the order. Raises `Poisonous` if any of its operations could never be done."""

    async def look(step: StepContext) -> Weight:
        return deps.weigh(order)

    weight = await ctx.step("weigh", look, returns=Weight)
    if weight.refused:
        raise Poisonous("refused", weight.refused, weight.refused_op)


async def _released(ctx: FlowContext, deps: WorkerDeps, job: OrderJob) -> Approval | None:
    """Return the approval under which it was delivered, valid for exactly these operations."""

    async def look(step: StepContext) -> Approval | None:
        entries = await asyncio.to_thread(deps.trust.entries)
        return await deps.store.write(lambda tx: release(tx, deps, job, step.run_id, entries))

    return await ctx.step("release", look, returns=Approval | None)


async def _do(
    ctx: FlowContext,
    deps: WorkerDeps,
    op: Operation,
    number: int,
    approval: Approval | None,
    order: WorkOrder,
) -> None:
    """Perform the operation, in a few attempts. Raises `Poisonous` if it cannot be done."""
    tries = 0
    for attempt in count():
        name = f"call.again-{attempt}" if attempt else "call"
        act = partial(_act, deps, op, number, approval, order)
        outcome = await ctx.step(name, act, index=number, returns=CallOutcome | Refusal)
        if isinstance(outcome, Refusal):
            if outcome.approval_id is None:
                why = f"op {number} ({op.line}): {outcome.decision.reason}"
                raise Poisonous("refused", why, number)
            wait = number * 1_000 + attempt
            await ctx.wait(f"approval:{outcome.approval_id}", index=wait, until=outcome.deadline)
            if attempt > deps.options.most_tries + MAX_CRASHES:
                why = f"op {number} ({op.line}): nobody approved it in time"
                raise Poisonous("refused", why, number)
            continue
        if outcome.ok:
            return
        tries += 1
        if outcome.unknown or not _may_be_repeated(deps, op) or _NO_SPACE in outcome.error:
            raise Poisonous("failed", f"op {number} ({op.line}) failed: {outcome.error}", number)
        if tries >= deps.options.most_tries:
            why = f"op {number} ({op.line}) failed {tries} times: {outcome.error}"
            raise Poisonous("failed", why, number)
        seconds = BACKOFF_SECONDS * 2 ** (tries - 1)
        await ctx.sleep("again", index=number * 1_000 + attempt, seconds=seconds)
    raise AssertionError("attempts are counted without end")


def _may_be_repeated(deps: WorkerDeps, op: Operation) -> bool:
    """True if the operation can be tried again safely. A command may have had an effect."""
    tool, _ = op.call
    return any(spec.name == tool and spec.idempotent for spec in deps.toolbox.specs())


async def _act(
    deps: WorkerDeps,
    op: Operation,
    number: int,
    approval: Approval | None,
    order: WorkOrder,
    step: StepContext,
) -> CallOutcome | Refusal:
    crashed = await deps.store.write(lambda tx: _begun(deps, tx, step))
    if crashed > MAX_CRASHES:
        return CallOutcome(ok=False, error=f"started {crashed} times; its worker died each time")
    try:
        deps.store.require_space()
    except StoreFull as full:
        # An answer, so that whoever sent the order knows: it may be sent again.
        return CallOutcome(ok=False, error=f"not started: {_NO_SPACE}: {full}")
    toolbox = deps.toolbox
    tool, arguments = op.call
    # What an agent made of words was led to by whatever that agent read.
    composed = tuple(source for source in order.provenance if source.startswith("agent:"))
    try:
        call = toolbox.normalise(
            tool, arguments,
            run_id=step.run_id, step_key=step.key, index=0, role=WORKER, provenance=composed,
        )  # fmt: skip
    except (BadArguments, UnknownTool) as error:
        return CallOutcome(ok=False, error=str(error))
    position = PlanPosition(step=number, approval_id=approval.id if approval else None)
    return await toolbox.perform(call.model_copy(update={"plan": position}), step.checkpoint)


def _begun(deps: WorkerDeps, tx: Transaction, step: StepContext) -> int:
    counter = f"order-op:{step.idempotency_key}"
    tx.count(counter, deps.clock.now())
    return int(tx.counted(counter, BEGINNING))


async def _answered(
    ctx: FlowContext,
    deps: WorkerDeps,
    job: OrderJob,
    order: WorkOrder | None,
    poison: Poisonous | None,
) -> Ack:
    """Say in the outbox how it ended, and in the book of trust if it ended badly."""

    async def write(step: StepContext) -> Ack:
        wo_id = await _written(deps, partial(_addressee, deps, job, order))
        ack = await deps.store.read(partial(_ack, deps, step.run_id, wo_id, order, poison))
        if ack.status != "duplicate":
            await _written(deps, partial(_acknowledge, deps, job, ack))
        if order is not None and ack.status != "done":
            now = deps.clock.now()
            await deps.store.write(lambda tx: free_name(tx, order.id, step.run_id, now))
        if order is not None and ack.status in ("failed", "refused"):
            await _written(deps, partial(_incident, deps, order, ack))
        return ack

    return await ctx.step("ack", write, returns=Ack)


def _addressee(deps: WorkerDeps, job: OrderJob, order: WorkOrder | None) -> str:
    """Return the name of the answer. A file that cannot be done never hides that an order of its id was."""
    if order is None:
        return job.file
    return job.file if job.fault and was_done(deps.inbox, order.id) else order.id


def _ack(
    deps: WorkerDeps,
    run_id: str,
    wo_id: str,
    order: WorkOrder | None,
    poison: Poisonous | None,
    view: StoreView,
) -> Ack:
    run, why = view.run(run_id), str(poison or "")
    stopped = poison.op if poison else 0
    return Ack(
        wo_id=wo_id,
        status=poison.status if poison else "done",
        title=order.title if order else "",
        target=order.target if order else "",
        error=why,
        run_id=run_id,
        worker=run.owner or "" if run else "",
        ops=op_results(view, run_id, order.ops, stopped=stopped, why=why) if order else (),
        finished_at=deps.clock.now(),
    )


def _acknowledge(deps: WorkerDeps, job: OrderJob, ack: Ack) -> None:
    deps.inbox.acknowledge(ack)
    if ack.status == "done" and answer_to(deps.inbox, job.file) is not None:
        # What was said of this file while no id could be read in it is no longer so.
        deps.inbox.acknowledge(ack.model_copy(update={"wo_id": job.file}))


def _incident(deps: WorkerDeps, order: WorkOrder, ack: Ack) -> None:
    for zone in order.zones:
        deps.trust.add(
            TrustEntry(
                kind="incident",
                target=order.target or "-",
                zone=zone,
                wo_id=order.id,
                why=ack.error,
                at=ack.finished_at,
            )
        )


async def _put_away(
    ctx: FlowContext, deps: WorkerDeps, job: OrderJob, shelf: Shelf, why: str
) -> None:
    async def move(step: StepContext) -> str:
        def put_away() -> str:
            return deps.inbox.put_away(_claim(deps, job, step.run_id), shelf, why)

        return await _written(deps, put_away)

    await ctx.step("put-away", move)


def _claim(deps: WorkerDeps, job: OrderJob, run_id: str) -> Claim:
    """The claimed file, found by its run: its name may stand in the record without what looked like a secret."""
    claims = deps.inbox.claims()
    recorded = Claim(name=job.claim, file=job.file, run_id=run_id, worker="")
    return next((claim for claim in claims if claim.run_id == run_id), recorded)


async def _written(deps: WorkerDeps, write: Callable[[], T]) -> T:
    """Write to a folder, on a full disk in space that was kept back for it.

    What cannot be written now is written later: the order was done, and must be answered.
    """
    while True:
        try:
            return await asyncio.to_thread(write)
        except (NotPossibleNow, OSError) as error:
            if not (_is_full(error) and deps.store.release_reserve()):
                raise BridgeUnusable(str(error)) from error


def _is_full(error: BaseException) -> bool:
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in NO_SPACE
