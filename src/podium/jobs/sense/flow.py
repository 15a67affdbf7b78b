"""Flow bodies: a tick that plans, and a candidate from composition to its one delivery."""

from __future__ import annotations

import hashlib
from itertools import count

from podium.core.decisions import Approval, ApprovalStatus, CallOutcome, Refusal, Tier
from podium.core.model import Json
from podium.jobs.sense.candidate_status import held_back
from podium.jobs.sense.deps import (
    CANDIDATE,
    CandidateJob,
    CandidateKit,
    SenseJob,
    SenseKit,
    Weight,
)
from podium.jobs.sense.effective_options import SENSE
from podium.jobs.sense.models import Candidate, CandidateStanding, CandidateState, Planned
from podium.jobs.sense.orders.operation_writer import with_ops
from podium.jobs.sense.orders.work_order import WorkOrder
from podium.jobs.sense.planning.planner import planned
from podium.jobs.sense.trust import TrustEntry
from podium.ports import FlowBody, FlowContext, StepContext, Toolbox


def sense(kit: SenseKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def make_plan(ctx: FlowContext, job: SenseJob) -> Json:
        result = await planned(ctx, kit, job)
        made = await ctx.now("orders")
        runs: dict[str, str] = {}
        kept_back = await held_back(ctx, kit, result.plan.candidates)
        for number, candidate in enumerate(result.plan.candidates):
            if candidate.wo_id in kept_back:
                continue
            order = order_of(candidate, result, job).model_copy(update={"created_at": made})
            runs[candidate.wo_id] = await ctx.start_child(
                "candidate",
                CANDIDATE,
                CandidateJob(
                    wo_id=candidate.wo_id, order=order, subject=candidate.subject
                ).model_dump(mode="json"),
                queue=SENSE,
                index=number,
                dedup_key=f"candidate:{candidate.subject}",
                task=f"{candidate.wo_id}: {order.title}",
            )
        return {
            "planned": result.model_dump(mode="json"),
            "runs": runs,
            "held_back": kept_back,
        }

    return make_plan


def order_of(candidate: Candidate, result: Planned, job: SenseJob) -> WorkOrder:
    """The work order a candidate stands for."""
    item, said = candidate.item, candidate.suggestion
    return WorkOrder(
        id=candidate.wo_id,
        title=said.title,
        summary=said.summary,
        type=item.type,
        target=item.target,
        priority=item.priority,
        provenance=(f"planner:{result.planner}", *job.bundle.provenance),
        tasks=said.tasks,
        ops=said.ops,
    )


LATER_SECONDS = 300.0
"""How long a delivery waits before it is tried again, when a quota is used up or the mode was lowered."""
MAX_ATTEMPTS = 300
"""A day of waiting."""
MAX_FAILURES = 12
"""An hour of trying to write."""
NEVER_SETTLED = (ApprovalStatus.PENDING, ApprovalStatus.EXPIRED)


def candidate(kit: CandidateKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def see_through(ctx: FlowContext, job: CandidateJob) -> Json:
        worded = await with_ops(
            ctx, job.order,
            writer=kit.writer, store=kit.store, purse=kit.purse, desk=kit.desk,
            options=kit.options, show=kit.show,
        )  # fmt: skip

        async def look(step: StepContext) -> Weight:
            return kit.weigh(worded.order)

        weight = await ctx.step("weigh", look, returns=Weight)
        order = worded.order.model_copy(
            update={"tier": weight.tier, "zones": weight.zones, "delivered_by": ctx.run.id}
        )
        if weight.refused:
            return _standing(ctx, order, "refused", weight.refused)
        filed = await _filed(ctx, kit, order, weight)
        if isinstance(filed, Refusal) or not filed.ok:
            state: CandidateState = "logged" if isinstance(filed, Refusal) else "refused"
            return _standing(ctx, order, state, _words(filed))
        return await _delivered(ctx, kit, order, weight)

    return see_through


async def _filed(
    ctx: FlowContext, kit: CandidateKit, order: WorkOrder, weight: Weight
) -> CallOutcome | Refusal:
    """The candidate as a file for people to review, tried again while the folder cannot be written."""

    async def act(step: StepContext) -> CallOutcome | Refusal:
        toolbox = await kit.toolbox_for(order, weight)
        arguments = {
            "wo_id": order.id,
            "path": f"{kit.options.layout.candidates}/{order.id}.yaml",
            "content": kit.order_text(order),
        }
        return await _perform(toolbox, "file_candidate", arguments, step)

    for attempt in count():
        found: CallOutcome | Refusal = await ctx.step(
            "file", act, index=attempt, returns=CallOutcome | Refusal
        )
        if isinstance(found, Refusal) or found.ok or attempt >= MAX_FAILURES:
            return found
        await ctx.sleep("file-later", index=attempt, seconds=LATER_SECONDS)
    raise AssertionError("attempts are counted without end")


async def _delivered(ctx: FlowContext, kit: CandidateKit, order: WorkOrder, weight: Weight) -> Json:
    """Asked for until it is done, or refused for good."""
    asked: str | None = None
    for attempt in count():

        async def act(step: StepContext) -> CallOutcome | Refusal:
            toolbox = await kit.toolbox_for(order, weight)
            return await _perform(toolbox, "deliver_order", _delivery(kit, order), step)

        found = await ctx.step("deliver", act, index=attempt, returns=CallOutcome | Refusal)
        if isinstance(found, CallOutcome) and found.ok:
            if asked:
                await _note_answer(ctx, kit, order, asked)
            return _standing(ctx, order, "delivered", "", kit, asked)
        if isinstance(found, CallOutcome):
            if attempt >= MAX_FAILURES:
                return _standing(ctx, order, "refused", found.error, kit, asked)
            # A full disk or a closed folder is seen to by somebody; the worker does no order twice.
            await ctx.sleep("later", index=attempt, seconds=LATER_SECONDS)
            continue
        if found.approval_id is not None:
            asked = found.approval_id
            await ctx.wait(f"approval:{asked}", index=attempt, until=found.deadline)
            answer = await _answer(ctx, kit, asked, attempt)
            if answer.status is ApprovalStatus.REJECTED:
                await _note_answer(ctx, kit, order, asked)
                return _standing(ctx, order, "rejected", answer.why, kit, asked)
            if answer.status in NEVER_SETTLED:
                return _standing(ctx, order, "expired", "nobody answered in time", kit, asked)
            continue
        # A mode that was lowered after it was filed may be raised again, and a yes must not be lost.
        passing = found.decision.rule.startswith(("quota:", "mode:sensing"))
        if passing and attempt < MAX_ATTEMPTS:
            await ctx.sleep("later", index=attempt, seconds=LATER_SECONDS)
            continue
        if asked and found.decision.rule == "mode:dry-run":
            await _note_answer(ctx, kit, order, asked)
            return _standing(ctx, order, "approved", _move_it(kit, order), kit, asked)
        return _standing(ctx, order, "refused", found.decision.reason, kit, asked)
    raise AssertionError("attempts are counted without end")


def _delivery(kit: CandidateKit, order: WorkOrder) -> dict[str, Json]:
    return {
        "wo_id": order.id,
        "path": f"{kit.options.layout.inbox}/{order.id}.yaml",
        "content": kit.order_text(order),
        "sha256": hashlib.sha256(kit.order_text(order).encode()).hexdigest(),
        "target": order.target,
        "zones": list(order.zones),
        "tier": str(order.tier),
    }


async def _perform(
    toolbox: Toolbox, tool: str, arguments: dict[str, Json], step: StepContext
) -> CallOutcome | Refusal:
    call = toolbox.normalise(
        tool, arguments, run_id=step.run_id, step_key=step.key, index=0, role=SENSE
    )
    return await toolbox.perform(call, step.checkpoint)


async def _answer(ctx: FlowContext, kit: CandidateKit, approval_id: str, attempt: int) -> Approval:
    async def look(step: StepContext) -> Approval | None:
        return await kit.store.read(lambda view: view.approval(approval_id))

    found = await ctx.step("answer", look, index=attempt, returns=Approval | None)
    if found is None:
        raise AssertionError(f"approval {approval_id} was asked for and is not there")
    return found


async def _note_answer(ctx: FlowContext, kit: CandidateKit, order: WorkOrder, asked: str) -> None:
    """Write down whether people agreed with what autonomous would have done: deliver it."""

    async def write(step: StepContext) -> None:
        approval = await kit.store.read(lambda view: view.approval(asked))
        if approval is None:
            return
        no = approval.status is ApprovalStatus.REJECTED
        by = approval.rejected_by if no else ", ".join(grant.by for grant in approval.grants)
        for zone in order.zones:
            kit.trust.add(
                TrustEntry(
                    kind="disagreed" if no else "agreed",
                    target=order.target or "-",
                    zone=zone,
                    tier=order.tier if order.tier is not None else Tier.T2,
                    wo_id=order.id,
                    by=by,
                    why=approval.why,
                    at=kit.clock.now(),
                )
            )

    await ctx.step("trust", write)


def _standing(
    ctx: FlowContext,
    order: WorkOrder,
    state: CandidateState,
    why: str = "",
    kit: CandidateKit | None = None,
    asked: str | None = None,
) -> Json:
    folder = kit.options.layout.candidates if kit else ""
    place = kit.options.layout.inbox if kit and state == "delivered" else folder
    return CandidateStanding(
        wo_id=order.id,
        state=state,
        why=why,
        run_id=ctx.run.id,
        approval_id=asked or "",
        file=f"{place}/{order.id}.yaml" if place else "",
        title=order.title,
        target=order.target,
        tier=str(order.tier) if order.tier is not None else "",
        zones=order.zones,
    ).model_dump(mode="json")


def _words(found: CallOutcome | Refusal) -> str:
    return found.decision.reason if isinstance(found, Refusal) else found.error


def _move_it(kit: CandidateKit, order: WorkOrder) -> str:
    layout = kit.options.layout
    return f"a dry run moves nothing: `mv {layout.candidates}/{order.id}.yaml {layout.inbox}/` hands it to the worker"
