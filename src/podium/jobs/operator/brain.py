"""Layer 3, the brain: a plan that may run is handed to the durable engine, and looked after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from podium.core.decisions import Approval, CallRecord, CallStatus, Receipt
from podium.core.model import Json
from podium.core.packs import Pack
from podium.core.work import Run
from podium.jobs.operator.deps import OPERATOR
from podium.jobs.operator.models import CallResult, OperatorJob, RunPlan
from podium.jobs.operator.plan_approval import put_to_people
from podium.jobs.operator.quality_gate import must_be_sound
from podium.ports import Clock, Engine, Ids, Store, StoreView, Transaction


@dataclass(frozen=True)
class Brain:
    """Starts runs of the operator. It performs nothing itself."""

    engine: Engine
    store: Store
    clock: Clock
    ids: Ids
    approval_seconds: float
    settings: dict[str, Json]
    """Settings that the runs record."""
    queue: str
    """Queue of the runs that workers perform."""

    async def begin(
        self,
        job: OperatorJob,
        pack: Pack,
        *,
        queued: bool,
        run_id: str | None = None,
        along: Callable[[Transaction], None] | None = None,
    ) -> tuple[Run, Approval | None]:
        """Store the run, and the question to people where the plan needs one. Both are durable on return.

        The run asks by itself too, whoever hosts it; the question is the same one. Raises
        `PlanNotGated` for a plan that no approval could release.
        """
        must_be_sound(job.plan, pack, max_tool_calls=job.max_tool_calls)
        run = await self.engine.start(
            OPERATOR,
            job.model_dump(mode="json"),
            task=job.plan.message[:500],
            queue=self.queue if queued else None,
            settings=self.settings,
            run_id=run_id,
            along=along,
        )
        approval = await put_to_people(self, job, run.id) if job.plan.requires_approval else None
        return run, approval

    async def look(self, run_id: str, plan: RunPlan) -> tuple[CallResult, ...]:
        """Read the progress of a plan from its receipts."""
        return await self.store.read(lambda view: results_of(view, run_id, plan))


def results_of(view: StoreView, run_id: str, plan: RunPlan) -> tuple[CallResult, ...]:
    """One line for each call of the plan. Without a receipt none is completed."""
    receipts = {receipt.number: receipt for receipt in view.receipts(run_id)}
    records: dict[int, CallRecord] = {}
    for record in view.calls(run_id):
        number = record.step_key.rpartition("#")[2]
        if record.status is not CallStatus.REFUSED and number.isdecimal():
            records[int(number)] = record
    return tuple(
        _result(step.number, step.tool, records.get(step.number), receipts) for step in plan.steps
    )


def _ended_as(receipt: Receipt) -> Literal["completed", "failed", "in_doubt"]:
    if receipt.status == "abandoned" or receipt.status == "rolled_back":
        return "failed"
    return receipt.status


def _result(
    number: int, tool: str, record: CallRecord | None, receipts: dict[int, Receipt]
) -> CallResult:
    receipt = receipts.get(record.receipt_number or 0) if record else None
    if record is None or receipt is None:
        return CallResult(number=number, tool=tool, status="skipped")
    seconds = record.outcome.duration_seconds if record.outcome else 0.0
    return CallResult(
        number=number,
        tool=tool,
        status=_ended_as(receipt),
        receipt=receipt.number,
        fields=receipt.fields,
        error=receipt.error,
        usd=receipt.usage.usd,
        seconds=round(seconds, 3),
        approved_by=receipt.approved_by,
    )
