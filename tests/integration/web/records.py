"""A project in which something has happened: runs, steps, calls, approvals, receipts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from podium.app.app import Podium
from podium.core.decisions import (
    Approval,
    CallOutcome,
    CallRecord,
    CallStatus,
    Decision,
    Effect,
    Receipt,
    Tier,
    Usage,
    counts_of,
)
from podium.core.events import (
    ApprovalRequested,
    BranchDelivered,
    NoteTaken,
    RunFailed,
    RunStarted,
    RunSucceeded,
    StepCompleted,
    StepStarted,
)
from podium.core.work import Failure, Run, RunStatus, StepRecord, StepStatus
from podium.ports import Transaction


@dataclass
class Past:
    """Ids of what happened."""

    done: str
    failed: str
    waiting: str
    approval: str


async def a_past(podium: Podium) -> Past:
    """One run that succeeded, one that failed, and one that waits for a person."""
    store, now = await podium.store(), podium.clock.now()
    new = podium.ids.new
    past = Past(new("run"), new("run"), new("run"), new("apr"))
    key = f"{past.waiting}:write#0:0123456789ab.1"
    decision = Decision(effect=Effect.ASK, rule="r", reason="because", tier=Tier.T2)

    def a_run(run_id: str, status: RunStatus, **more: object) -> Run:
        ended = now if status.ended else None
        payload = {"task": f"task of {status}", "created_at": now, "finished_at": ended, **more}
        return Run.model_validate({"id": run_id, "flow": "steps", "status": status, **payload})

    def work(tx: Transaction) -> None:
        tx.add_run(a_run(past.done, RunStatus.SUCCEEDED, result={"fine": True}))
        tx.add_run(
            a_run(past.failed, RunStatus.FAILED, failure=Failure(kind="ToolBroke", message="no"))
        )
        tx.add_run(a_run(past.waiting, RunStatus.WAITING, queue="default", waiting_for="approval"))
        for run_id in (past.done, past.failed, past.waiting):
            tx.append(run_id, RunStarted(owner="somebody", fence=1))
        for number in range(5):
            step = f"work#{number}"
            tx.append(past.done, StepStarted(step=step))
            tx.append(past.done, StepCompleted(step=step))
            tx.save_step(
                StepRecord(
                    run_id=past.done,
                    key=step,
                    status=StepStatus.COMPLETED,
                    ordinal=number,
                    output=number,
                    started_at=now,
                    finished_at=now,
                )
            )
        tx.append(past.done, BranchDelivered(branch="podium/x", commit="abc"))
        tx.append(past.done, RunSucceeded(result={"fine": True}))
        tx.append(past.failed, NoteTaken(text="<script>alert(1)</script>\x1b[31m"))
        tx.append(past.failed, RunFailed(failure=Failure(kind="ToolBroke", message="no")))
        for counter, amount in counts_of(Usage(usd=1.5, turns=2), past.done, "work#0", now):
            tx.count(counter, now, amount)
        tx.save_call(
            CallRecord(
                key=key,
                run_id=past.waiting,
                step_key="write#0",
                tool="write_file",
                digest="sha256:0",
                status=CallStatus.IN_DOUBT,
                decision=decision,
                arguments={"path": "a.txt", "content": "x"},
                outcome=CallOutcome(ok=True),
                requested_at=now,
            )
        )
        tx.save_approval(
            Approval(
                id=past.approval,
                run_id=past.waiting,
                call_key=key,
                digest="sha256:0",
                tool="write_file",
                summary="write a.txt",
                arguments={"path": "a.txt", "content": "x"},
                tier=Tier.T2,
                requested_at=now,
                deadline=now + timedelta(days=1),
            )
        )
        tx.append(
            past.waiting,
            ApprovalRequested(
                approval_id=past.approval,
                call=key,
                tool="write_file",
                summary="write a.txt",
                digest="sha256:0",
                tier="T2",
                deadline=now + timedelta(days=1),
            ),
        )
        tx.add_receipt(
            Receipt(
                run_id=past.done,
                number=0,
                call_key=f"{past.done}:work#0:0123456789ab.1",
                tool="write_file",
                digest="sha256:1",
                status="completed",
                tier=Tier.T1,
                rule="r",
                requested_at=now,
                settled_at=now,
            )
        )

    await store.write(work)
    return past
