"""Approvals of candidates: the work order that each hands over, shown, edited and resubmitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podium.app.inbox import (
    Card,
    CardKind,
    EditField,
    JobApprovals,
    OrderOperation,
    OrderSummary,
    Resubmitted,
)
from podium.app.resubmission import resubmit
from podium.app.work_request import ASKED_BY
from podium.core.approvals import Approver
from podium.core.decisions import Approval
from podium.core.errors import BadInput
from podium.core.work import Run
from podium.jobs.sense.candidate_lookup import find_approval
from podium.jobs.sense.job import CANDIDATE, WORK_ORDER
from podium.ports import StoreView, Transaction

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.jobs.sense.orders.work_order import WorkOrder


class CandidateApprovals(JobApprovals):
    """Approvals that candidates and work orders ask for."""

    kinds = {CANDIDATE: CardKind.CANDIDATE}  # noqa: RUF012 - never written

    def find(self, view: StoreView, text: str) -> str:
        return find_approval(view, text)

    def order(self, approval: Approval) -> OrderSummary | None:
        from podium.jobs.sense.orders.work_order import order_in

        order = order_in(approval)
        if order is None:
            return None
        calls = ((op.line, *op.call) for op in order.ops)
        return OrderSummary(
            id=order.id,
            title=order.title,
            target=order.target,
            zones=order.zones,
            priority=order.priority,
            summary=order.summary,
            tasks=order.tasks,
            operations=tuple(
                OrderOperation(line=line, tool=tool, arguments=arguments)
                for line, tool, arguments in calls
            ),
        )

    def why_not_editable(self, card: Card) -> str:
        if card.run is not None and card.run.flow == WORK_ORDER:
            return "it belongs to a work order in the inbox; put a changed order there instead"
        return super().why_not_editable(card)

    def edit_fields(self, card: Card) -> tuple[EditField, ...] | None:
        if card.kind is not CardKind.CANDIDATE:
            return None
        from podium.jobs.sense.orders.work_order import asked_order, editable_text

        text = editable_text(asked_order(card.approval))
        return (EditField(name="order", label="The order, as YAML", text=text),)

    async def resubmit(
        self, podium: Podium, card: Card, texts: Mapping[str, str], by: Approver
    ) -> Resubmitted:
        from podium.jobs.sense import SENSE, CandidateJob
        from podium.jobs.sense.orders.work_order import (
            asked_order,
            edited_order,
        )

        old = card.run
        if old is None:
            raise AssertionError("a card without its run cannot be edited")
        order = edited_order(asked_order(card.approval), texts.get("order", ""))
        await _refuse_impossible(podium, order)
        job = CandidateJob(wo_id=order.id, order=order, subject=str(old.input.get("subject", "")))

        async def begin(run_id: str, along: Callable[[Transaction], None]) -> Run:
            engine = await podium.hosting_engine()
            return await engine.start(
                CANDIDATE,
                job.model_dump(mode="json"),
                task=f"{order.id}: {order.title}",
                queue=old.queue or SENSE,
                settings={**old.settings, ASKED_BY: by.name},
                run_id=run_id,
                along=along,
            )

        store, approval = await podium.store(), card.approval.id
        return await resubmit(store, podium.clock, podium.ids, approval, by=by, begin=begin)

    async def next_step(self, podium: Podium, run: Run, *, granted: bool) -> str | None:
        if run.flow != CANDIDATE:
            return None
        from podium.jobs.sense.candidate_report import next_of_candidate

        return await next_of_candidate(podium, run, yes=granted)


async def _refuse_impossible(podium: Podium, order: WorkOrder) -> None:
    """Raise `BadInput` for operations that could never be done, by the gate that will judge them."""
    from podium.jobs.sense.composition import sense_options
    from podium.jobs.sense.orders.worker import weigher

    if not order.ops:
        return
    weigh = await weigher(podium, sense_options(podium))
    if refused := weigh(order).refused:
        raise BadInput(f"the order cannot be executed: {refused}")
