"""A store with runs, approvals and receipts in it."""

from __future__ import annotations

from datetime import timedelta

from podium.core.decisions import Approval, CallRecord, CallStatus, Decision, Effect, Receipt, Tier
from podium.core.events import NoteTaken, RunSucceeded, ToolCompleted
from podium.core.work import Run, RunStatus, Signal
from podium.ports import EventQuery, Transaction
from podium.testing import FixedClock, MemoryStore, SteadyIds


class Scene:
    """A memory store, its clock and ids, and ways to put things in it."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.ids = SteadyIds(seed=7)
        self.store = MemoryStore(self.clock)

    async def add_run(self, *, status: RunStatus = RunStatus.WAITING, run_id: str = "") -> Run:
        run = Run(
            id=run_id or self.ids.new("run"),
            flow="demo",
            status=status,
            created_at=self.clock.now(),
            task="a task",
        )
        await self.store.write(lambda tx: tx.add_run(run))
        return run

    async def add_approval(
        self, run: Run, *, approvers: tuple[str, ...] = (), seconds: float = 60.0
    ) -> Approval:
        approval = Approval(
            id=self.ids.new("apr"),
            run_id=run.id,
            call_key=f"{run.id}:act:0",
            digest="sha256:x",
            tool="write_file",
            summary="write a.txt",
            tier=Tier.T2,
            approvers=approvers,
            requested_at=self.clock.now(),
            deadline=self.clock.now() + timedelta(seconds=seconds),
        )
        await self.store.write(lambda tx: tx.save_approval(approval))
        return approval

    async def add_call(self, run: Run, step: str, approval: Approval) -> CallRecord:
        """A call that was not made, since it waits for the approval."""
        now = self.clock.now()
        decision = Decision(effect=Effect.ASK, rule="writes", reason="", tier=Tier.T2)
        record = CallRecord(
            key=f"{run.id}:{step}:0",
            run_id=run.id,
            step_key=step,
            tool=approval.tool,
            digest=approval.digest,
            status=CallStatus.REFUSED,
            decision=decision,
            approval_id=approval.id,
            requested_at=now,
        )
        await self.store.write(lambda tx: tx.save_call(record))
        return record

    async def add_receipt(self, run: Run) -> Receipt:
        now = self.clock.now()

        def work(tx: Transaction) -> Receipt:
            receipt = tx.add_receipt(
                Receipt(
                    run_id=run.id,
                    number=0,
                    call_key=f"{run.id}:act:0",
                    tool="write_file",
                    digest="sha256:x",
                    status="completed",
                    tier=Tier.T1,
                    rule="writes",
                    requested_at=now,
                    settled_at=now,
                )
            )
            body = ToolCompleted(call=receipt.call_key, tool="write_file", receipt=receipt.number)
            tx.append(run.id, body)
            return receipt

        return await self.store.write(work)

    async def note(self, run: Run, text: str) -> None:
        await self.store.write(lambda tx: tx.append(run.id, NoteTaken(text=text)))

    async def end(self, run: Run) -> None:
        def work(tx: Transaction) -> None:
            tx.save_run(run.model_copy(update={"status": RunStatus.SUCCEEDED}))
            tx.append(run.id, RunSucceeded())

        await self.store.write(work)

    async def event_types(self, run: Run) -> list[str]:
        query = EventQuery(run_id=run.id)
        return [event.body.type for event in await self.store.read(lambda v: v.events(query))]

    async def signals(self, run: Run) -> list[Signal]:
        return await self.store.read(lambda view: view.signals(run.id))
