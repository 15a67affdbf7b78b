"""Inbox tender: every file in the inbox becomes one run, whichever process dies in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from podium.core.errors import BadInput, PodiumError
from podium.core.ids import minted_at, short_id
from podium.core.model import Json, json_of
from podium.core.work import Run, RunStatus
from podium.jobs.sense.job import WORK_ORDER
from podium.jobs.sense.options import ORDERS
from podium.jobs.sense.orders.release import BEGINNING, answer_to, free_name, op_results
from podium.jobs.sense.orders.work_order import Ack, Claim, OrderJob, WorkOrder
from podium.jobs.sense.ports import OrderInbox, Shelf
from podium.ports import Engine, Ids, Store, StoreView, Transaction

OPENED = "inbox:opened"
RECORD_GONE = (
    "a worker claimed it, but the record of its run is lost, so its progress is unknown; check it, and move it back to "
    "the inbox if it still has to be done"
)
IN_PLAIN_TEXT = "it contains a secret in plain text; let the program read a variable instead"
PAUSE_SECONDS = 1.0
"""Seconds between two looks at the folder. A look is one system call when nothing changed."""
MAX_AT_ONCE = 50
"""Orders that are taken in one go, so that workers share what lies there."""


@dataclass(frozen=True)
class InboxTender:
    """Claims orders and starts their runs."""

    inbox: OrderInbox
    engine: Engine
    store: Store
    ids: Ids
    settings: dict[str, Json]
    """Settings that runs record."""
    root: str
    notify: Callable[[str], None]
    """Takes what a person should know although nobody asked."""

    redact: Callable[[str], str]
    """The text without its secrets."""
    paused: str = ""
    """Reason why no orders are taken at present. Empty: they are."""
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def tend(self) -> int:
        """Take what lies there now, and what was taken and not started. Gives how many.

        One that cannot be started does not keep the others; the first error is raised at the end, and the
        next call tries that one again.
        """
        if self.paused:
            return 0
        async with self._one_at_a_time:
            await self.store.write(_open_book)
            taken = await asyncio.to_thread(self._claim_all)
            claims = (*taken, *await self._left_behind(taken))
            started = [await self._started(claim) for claim in claims]
            started += [await self._ended(run, claim) for run, claim in await self._stranded()]
        for error in started:
            if isinstance(error, PodiumError):
                raise error
        return sum(outcome is True for outcome in started)

    async def serve(self, stop: asyncio.Event) -> None:
        """Go on until told to stop. What cannot be done now is told once, and tried again."""
        reported = ""
        while not stop.is_set():
            taken = 0
            try:
                taken = await self.tend()
                reported = ""
            except PodiumError as error:
                if str(error) != reported:
                    reported = str(error)
                    self.notify(f"inbox: {reported}")
            try:
                async with asyncio.timeout(0 if taken else PAUSE_SECONDS):
                    await stop.wait()
            except TimeoutError:
                continue

    def _claim_all(self) -> list[Claim]:
        worker = self.engine.worker_id
        claims = (
            self.inbox.claim(file, run_id=self.ids.new("run"), worker=worker)
            for file in list(self.inbox.waiting())[:MAX_AT_ONCE]
        )
        return [claim for claim in claims if claim is not None]

    async def _left_behind(self, taken: Sequence[Claim]) -> list[Claim]:
        """Claims without a run whose worker is dead, or is this one: it never came to the record."""
        claims = [
            claim for claim in await asyncio.to_thread(self.inbox.claims) if claim not in taken
        ]
        if not claims:
            return []
        alive = await self.engine.alive()
        stored = await self.store.read(
            lambda view: {claim.run_id for claim in claims if view.run(claim.run_id) is not None}
        )
        orphans = [
            claim for claim in claims if _is_orphan(claim, stored, alive - {self.engine.worker_id})
        ]
        older = await self.store.read(
            lambda view: [orphan for orphan in orphans if _is_older(view, orphan)]
        )
        for claim in older:
            await asyncio.to_thread(self.inbox.put_away, claim, "parked", RECORD_GONE)
            self.notify(f"inbox: {claim.file!r} is parked: {RECORD_GONE}")
        return [orphan for orphan in orphans if orphan not in older]

    async def _stranded(self) -> list[tuple[Run, Claim]]:
        """Claims whose runs ended without putting them away: they were cancelled, or broke."""
        claims = await asyncio.to_thread(self.inbox.claims)
        if not claims:
            return []
        runs = await self.store.read(lambda view: [view.run(claim.run_id) for claim in claims])
        # Looked at again: a run puts its file away just before it ends.
        still = await asyncio.to_thread(self.inbox.claims)
        pairs = zip(runs, claims, strict=True)
        return [(run, claim) for run, claim in pairs if run and run.status.ended and claim in still]

    async def _ended(self, run: Run, claim: Claim) -> bool | PodiumError:
        """Answer and put away what its run left behind. Gives False: nothing was started."""
        try:
            ack = await self.store.read(partial(_ack_for, run, claim, self.engine.worker_id))
            answer = await asyncio.to_thread(self._answer, ack)
            shelf: Shelf = "done" if answer.status == "done" else "parked"
            if shelf == "parked":
                await self.store.write(lambda tx: free_name(tx, ack.wo_id, run.id, tx.now()))
            await asyncio.to_thread(self.inbox.put_away, claim, shelf, answer.error)
        except PodiumError as error:
            return error
        if shelf == "parked":
            self.notify(f"inbox: {claim.file!r} is parked: {answer.error}")
        return False

    def _answer(self, ack: Ack) -> Ack:
        """The answer to the order: what its run said of it, or else this one."""
        before = answer_to(self.inbox, ack.wo_id)
        if before is not None and before.run_id == ack.run_id:
            return before
        if before is None or before.status != "done":
            self.inbox.acknowledge(ack)
        return ack

    async def _started(self, claim: Claim) -> bool | PodiumError:
        try:
            return await self._start(claim)
        except PodiumError as error:
            return error

    async def _job(self, claim: Claim) -> OrderJob:
        opened = await asyncio.to_thread(self.inbox.open, claim)
        order, problem = opened.order, opened.fault
        if order is not None and self._holds_secret(order):
            # The record would keep it without the secret, and something else would be done than was sent.
            order, problem = self._addressed(order), problem or IN_PLAIN_TEXT
        return OrderJob(
            claim=claim.name, file=claim.file, order=order, fault=problem, root=self.root
        )

    def _addressed(self, order: WorkOrder) -> WorkOrder | None:
        """Reduce an order to what an answer needs; None if that holds a secret, too."""
        reduced = (WorkOrder(id=order.id, title=title) for title in (order.title, order.id))
        return next((candidate for candidate in reduced if not self._holds_secret(candidate)), None)

    def _holds_secret(self, order: WorkOrder) -> bool:
        text = json_of(order)
        return self.redact(text) != text

    async def _start(self, claim: Claim) -> bool:
        """Start the claim's run. False if another worker that found it left behind has stored it."""
        job = await self._job(claim)
        title = job.order.title if job.order else claim.file
        try:
            await self.engine.start(
                WORK_ORDER,
                job.model_dump(mode="json"),
                task=title,
                queue=ORDERS,
                settings=self.settings,
                run_id=claim.run_id,
            )
        except BadInput:
            if await self.store.read(lambda view: view.run(claim.run_id)) is None:
                raise
            return False
        return True


def _ack_for(run: Run, claim: Claim, worker: str, view: StoreView) -> Ack:
    """The answer to an order whose run ended without one."""
    job = OrderJob.model_validate_json(json.dumps(run.input))
    order, cancelled = job.order, run.status is RunStatus.CANCELLED
    why = f"run {short_id(run.id)} " + ("was cancelled" if cancelled else "ended without an answer")
    if run.failure is not None:
        why += f": {run.failure.message}"
    return Ack(
        wo_id=order.id if order else claim.file,
        status="parked" if cancelled else "failed",
        title=order.title if order else "",
        target=order.target if order else "",
        error=f"{why}; move it back to the inbox if it still has to be done",
        run_id=run.id,
        worker=worker,
        ops=op_results(view, run.id, order.ops) if order else (),
        finished_at=view.now(),
    )


def _open_book(tx: Transaction) -> None:
    """Note when this record first saw the inbox."""
    if not tx.counted(OPENED, BEGINNING):
        tx.count(OPENED, tx.now())


def _is_older(view: StoreView, claim: Claim) -> bool:
    """True if it was taken before this record began: its fate was recorded in another one, which is gone."""
    try:
        return view.counted(OPENED, minted_at(claim.run_id)) > 0
    except ValueError:
        return True


def _is_orphan(claim: Claim, stored: Collection[str], alive: Collection[str]) -> bool:
    return claim.run_id not in stored and claim.worker not in alive
