"""Candidates and their approvals: found by the id of a work order, run or approval; the order shown, edited, resubmitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import AmbiguousId, UnknownId
from podium.core.work import Run
from podium.jobs.sense.job import CANDIDATE
from podium.ports import RunQuery, StoreView, Transaction

if TYPE_CHECKING:
    from podium.app.app import Podium


PAGE = 500


def candidate_runs(view: StoreView) -> Iterator[Run]:
    """Every candidate there ever was, newest first."""
    query = RunQuery(flow=CANDIDATE, limit=PAGE)
    while page := view.runs(query):
        yield from page
        query = query.model_copy(update={"before_id": page[-1].id})


def wo_id_of(run: Run) -> str:
    return str(run.input.get("wo_id", "")) if isinstance(run.input, dict) else ""


def find_candidate(view: StoreView, text: str) -> Run:
    """Find a candidate's run. Raises `UnknownId`, or `AmbiguousId` with the candidates."""
    prefix = text.strip()
    by_order = _by_order(view, prefix)
    if len(by_order) > 1:
        raise AmbiguousId("candidate", text, [wo_id_of(run) for run in by_order])
    run = by_order[0] if by_order else _by_own_id(view, prefix)
    if run is None:
        raise UnknownId("candidate", text)
    return run


def find_approval(view: StoreView, text: str) -> str:
    """Find the approval of a work order, by its id or a prefix; empty when there is none.

    Raises `AmbiguousId` for a prefix of several.
    """
    runs = _by_order(view, text.strip())
    if len(runs) > 1:
        raise AmbiguousId("candidate", text, [wo_id_of(run) for run in runs])
    approvals = view.approvals(run_id=runs[0].id) if runs else []
    pending = [approval for approval in approvals if approval.status is ApprovalStatus.PENDING]
    return next((approval.id for approval in (*pending, *approvals)), "")


def _by_order(view: StoreView, prefix: str) -> list[Run]:
    if not prefix:
        return []
    matches: dict[str, Run] = {}
    for run in candidate_runs(view):
        wo_id = wo_id_of(run)
        if wo_id == prefix:
            return [run]
        if wo_id.startswith(prefix):
            matches.setdefault(wo_id, run)
    # Whoever says a short form means what waits, not what has ended under a like name.
    waiting = [run for run in matches.values() if not run.status.ended]
    return waiting or list(matches.values())


def _by_own_id(view: StoreView, prefix: str) -> Run | None:
    runs = [view.run(run_id) for run_id in view.find_ids("run", prefix)]
    for approval_id in view.find_ids("approval", prefix):
        approval = view.approval(approval_id)
        runs.append(view.run(approval.run_id) if approval else None)
    candidates = [run for run in runs if run is not None and run.flow == CANDIDATE]
    return candidates[0] if len(candidates) == 1 else None


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
        if card.run is not None and card.run.flow != CANDIDATE:
            return "it stands in an order of the inbox: put a changed order there"
        return ""

    def edit_fields(self, card: Card) -> tuple[EditField, ...] | None:
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
            refuse_impossible,
        )

        old = card.run
        if old is None:
            raise AssertionError("a card without its run cannot be edited")
        order = edited_order(asked_order(card.approval), texts.get("order", ""))
        await refuse_impossible(podium, order)
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
