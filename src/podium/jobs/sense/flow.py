"""Flow bodies: a tick that plans, and a candidate from composition to its one delivery."""

from __future__ import annotations

import hashlib
from itertools import count

from podium.core.decisions import Approval, ApprovalStatus, CallOutcome, Refusal, Tier
from podium.core.model import Json
from podium.jobs.sense.candidate_status import held_back
from podium.jobs.sense.deps import CandidateDeps, CandidateJob, SenseDeps, SenseJob, Weight
from podium.jobs.sense.job import CANDIDATE, SENSE
from podium.jobs.sense.models import Candidate, CandidateState, CandidateStatus, Planned
from podium.jobs.sense.orders.operation_writer import with_ops
from podium.jobs.sense.orders.work_order import WorkOrder
from podium.jobs.sense.planning.planner import planned
from podium.jobs.sense.trust import TrustEntry
from podium.ports import FlowBody, FlowContext, StepContext, Toolbox


def sense(deps: SenseDeps) -> FlowBody:
    """Build the flow with its dependencies."""

    async def make_plan(ctx: FlowContext, job: SenseJob) -> Json:
        result = await planned(ctx, deps, job)
        made = await ctx.now("orders")
        runs: dict[str, str] = {}
        withheld = await held_back(ctx, deps, result.plan.candidates)
        for number, candidate in enumerate(result.plan.candidates):
            if candidate.wo_id in withheld:
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
            "held_back": withheld,
        }

    return make_plan


def order_of(candidate: Candidate, result: Planned, job: SenseJob) -> WorkOrder:
    """The work order a candidate stands for."""
    item, suggestion = candidate.item, candidate.suggestion
    return WorkOrder(
        id=candidate.wo_id,
        title=suggestion.title,
        summary=suggestion.summary,
        type=item.type,
        target=item.target,
        priority=item.priority,
        provenance=(f"planner:{result.planner}", *job.bundle.provenance),
        tasks=suggestion.tasks,
        ops=suggestion.ops,
    )


LATER_SECONDS = 300.0
"""Seconds before a delivery is tried again, when a quota is used up or the mode was lowered."""
MAX_ATTEMPTS = 300
"""A day of waiting."""
MAX_FAILURES = 12
"""An hour of trying to write."""
NEVER_SETTLED = (ApprovalStatus.PENDING, ApprovalStatus.EXPIRED)


def candidate(deps: CandidateDeps) -> FlowBody:
    """Build the flow with its dependencies."""

    async def see_through(ctx: FlowContext, job: CandidateJob) -> Json:
        worded = await with_ops(
            ctx, job.order,
            writer=deps.writer, store=deps.store, budget=deps.budget, workspace=deps.workspace,
            options=deps.options, show=deps.show,
        )  # fmt: skip

        async def look(step: StepContext) -> Weight:
            return deps.weigh(worded.order)

        weight = await ctx.step("weigh", look, returns=Weight)
        order = worded.order.model_copy(
            update={"tier": weight.tier, "zones": weight.zones, "delivered_by": ctx.run.id}
        )
        if weight.refused:
            return _status(ctx, order, "refused", weight.refused)
        filed = await _filed(ctx, deps, order, weight)
        if isinstance(filed, Refusal) or not filed.ok:
            state: CandidateState = "logged" if isinstance(filed, Refusal) else "refused"
            return _status(ctx, order, state, _error_text(filed))
        return await _delivered(ctx, deps, order, weight)

    return see_through


async def _filed(
    ctx: FlowContext, deps: CandidateDeps, order: WorkOrder, weight: Weight
) -> CallOutcome | Refusal:
    """The candidate as a file for people to review, tried again while the folder cannot be written."""

    async def act(step: StepContext) -> CallOutcome | Refusal:
        toolbox = await deps.toolbox_for(order, weight)
        arguments = {
            "wo_id": order.id,
            "path": f"{deps.options.layout.candidates}/{order.id}.yaml",
            "content": deps.order_text(order),
        }
        return await _perform(toolbox, "file_candidate", arguments, step)

    for attempt in count():
        outcome: CallOutcome | Refusal = await ctx.step(
            "file", act, index=attempt, returns=CallOutcome | Refusal
        )
        if isinstance(outcome, Refusal) or outcome.ok or attempt >= MAX_FAILURES:
            return outcome
        await ctx.sleep("file-later", index=attempt, seconds=LATER_SECONDS)
    raise AssertionError("attempts are counted without end")


async def _delivered(
    ctx: FlowContext, deps: CandidateDeps, order: WorkOrder, weight: Weight
) -> Json:
    """Ask for the delivery until it is done, or refused for good."""
    asked: str | None = None
    for attempt in count():

        async def act(step: StepContext) -> CallOutcome | Refusal:
            toolbox = await deps.toolbox_for(order, weight)
            return await _perform(toolbox, "deliver_order", _delivery(deps, order), step)

        outcome = await ctx.step("deliver", act, index=attempt, returns=CallOutcome | Refusal)
        if isinstance(outcome, CallOutcome) and outcome.ok:
            if asked:
                await _note_answer(ctx, deps, order, asked)
            return _status(ctx, order, "delivered", "", deps, asked)
        if isinstance(outcome, CallOutcome):
            if attempt >= MAX_FAILURES:
                return _status(ctx, order, "refused", outcome.error, deps, asked)
            # A full disk or a closed folder is seen to by somebody; the worker does no order twice.
            await ctx.sleep("later", index=attempt, seconds=LATER_SECONDS)
            continue
        if outcome.approval_id is not None:
            asked = outcome.approval_id
            await ctx.wait(f"approval:{asked}", index=attempt, until=outcome.deadline)
            answer = await _answer(ctx, deps, asked, attempt)
            if answer.status is ApprovalStatus.REJECTED:
                await _note_answer(ctx, deps, order, asked)
                return _status(ctx, order, "rejected", answer.why, deps, asked)
            if answer.status in NEVER_SETTLED:
                return _status(ctx, order, "expired", "nobody answered in time", deps, asked)
            continue
        # A mode that was lowered after it was filed may be raised again, and a yes must not be lost.
        passing = outcome.decision.rule.startswith(("quota:", "mode:sensing"))
        if passing and attempt < MAX_ATTEMPTS:
            await ctx.sleep("later", index=attempt, seconds=LATER_SECONDS)
            continue
        if asked and outcome.decision.rule == "mode:dry-run":
            await _note_answer(ctx, deps, order, asked)
            return _status(ctx, order, "approved", _move_it(deps, order), deps, asked)
        return _status(ctx, order, "refused", outcome.decision.reason, deps, asked)
    raise AssertionError("attempts are counted without end")


def _delivery(deps: CandidateDeps, order: WorkOrder) -> dict[str, Json]:
    return {
        "wo_id": order.id,
        "path": f"{deps.options.layout.inbox}/{order.id}.yaml",
        "content": deps.order_text(order),
        "sha256": hashlib.sha256(deps.order_text(order).encode()).hexdigest(),
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


async def _answer(
    ctx: FlowContext, deps: CandidateDeps, approval_id: str, attempt: int
) -> Approval:
    async def look(step: StepContext) -> Approval | None:
        return await deps.store.read(lambda view: view.approval(approval_id))

    approval = await ctx.step("answer", look, index=attempt, returns=Approval | None)
    if approval is None:
        raise AssertionError(f"approval {approval_id} was asked for and is not there")
    return approval


async def _note_answer(ctx: FlowContext, deps: CandidateDeps, order: WorkOrder, asked: str) -> None:
    """Write down whether people agreed with what autonomous would have done: deliver it."""

    async def write(step: StepContext) -> None:
        approval = await deps.store.read(lambda view: view.approval(asked))
        if approval is None:
            return
        no = approval.status is ApprovalStatus.REJECTED
        by = approval.rejected_by if no else ", ".join(grant.by for grant in approval.grants)
        for zone in order.zones:
            deps.trust.add(
                TrustEntry(
                    kind="disagreed" if no else "agreed",
                    target=order.target or "-",
                    zone=zone,
                    tier=order.tier if order.tier is not None else Tier.T2,
                    wo_id=order.id,
                    by=by,
                    why=approval.why,
                    at=deps.clock.now(),
                )
            )

    await ctx.step("trust", write)


def _status(
    ctx: FlowContext,
    order: WorkOrder,
    state: CandidateState,
    why: str = "",
    deps: CandidateDeps | None = None,
    asked: str | None = None,
) -> Json:
    folder = deps.options.layout.candidates if deps else ""
    folder_of_file = deps.options.layout.inbox if deps and state == "delivered" else folder
    return CandidateStatus(
        wo_id=order.id,
        state=state,
        why=why,
        run_id=ctx.run.id,
        approval_id=asked or "",
        file=f"{folder_of_file}/{order.id}.yaml" if folder_of_file else "",
        title=order.title,
        target=order.target,
        tier=str(order.tier) if order.tier is not None else "",
        zones=order.zones,
    ).model_dump(mode="json")


def _error_text(outcome: CallOutcome | Refusal) -> str:
    return outcome.decision.reason if isinstance(outcome, Refusal) else outcome.error


def _move_it(deps: CandidateDeps, order: WorkOrder) -> str:
    layout = deps.options.layout
    return f"a dry run moves nothing; hand it to the worker with `mv {layout.candidates}/{order.id}.yaml {layout.inbox}/`"
