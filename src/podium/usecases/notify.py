"""Following the journal, and telling an outlet what waits for a person and what ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

from podium.domain.events import ApprovalRequested, Event, RunNeededHuman
from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.model import Noun
from podium.domain.tiers import Tier
from podium.domain.work import Run, RunStatus
from podium.ports import EventQuery, Notice, Outlet, Store, Told, ToldBook, ToldMark, View

What = Literal["waits", "ended"]

WAITS = ("approval_requested", "run_needed_human")
ENDED = ("run_succeeded", "run_failed", "run_cancelled")

MOST_AT_ONCE = 10
"""Things in one message: a burst becomes few messages, and nobody's chat a flood."""
PAGE = 200
LONGEST_FAULT = 300
PAUSES_SECONDS = (1.0, 5.0, 30.0, 120.0, 300.0)
"""Before each other try; the last one again and again, for nothing is given up."""


class NoticeWish(Noun):
    """What somebody wants to be told of."""

    what: tuple[What, ...] = ("waits", "ended")
    flows: tuple[str, ...] = ()
    """Empty: of all."""
    min_tier: Tier = Tier.T0
    """Of approvals: this tier and above."""


class Happening(Noun):
    """Something to be told, as things stand now."""

    what: What
    event: Event
    run: Run
    approval: Approval | None = None
    perhaps_told: bool = False
    """A message about it was begun before, and it is not known whether it arrived."""

    @property
    def card_id(self) -> str:
        """Of what a person looks at: the approval, else the run."""
        return self.approval.id if self.approval else self.run.id


Wording = Callable[[Sequence[Happening]], Notice]


class Teller:
    """Keeps one outlet up with the journal: nothing left out, and nothing twice that is known to have arrived.

    What was answered before it could be told is not told any more.
    """

    def __init__(
        self,
        store: Store,
        book: ToldBook,
        outlet: Outlet,
        wish: NoticeWish,
        word: Wording,
        *,
        say: Callable[[str], None],
        pauses_seconds: Sequence[float] = PAUSES_SECONDS,
    ) -> None:
        """`say` tells whoever looks after this process of trouble, and of its end."""
        self._store = store
        self._book = book
        self._outlet = outlet
        self._wish = wish
        self._word = word
        self._say = say
        self._pauses = pauses_seconds
        self._failures = 0
        self._sending: asyncio.Task[ToldMark] | None = None

    async def catch_up(self) -> None:
        """Tell all there is. Waits a service out that does not take it."""
        mark = await self._mark()
        while True:
            found, position = await self._store.read(partial(_page, self._wish, mark))
            if position == mark.told:
                return
            before = mark
            if found:
                self._sending = asyncio.create_task(self._send(found, mark, position))
                mark = await asyncio.shield(self._sending)
            else:
                mark = await self._save(mark.model_copy(update={"told": position}))
            if mark.told == before.told:
                await asyncio.sleep(self._pauses[min(self._failures, len(self._pauses)) - 1])

    def stumbled(self, error: Exception) -> None:
        """Take note that catching up raised, such as when the record could not be read."""
        self._report(Told(done=False, why=f"{type(error).__name__}: {error}"[:LONGEST_FAULT]))

    async def close(self, seconds: float) -> None:
        """Wait for a message that is on its way, so that its end is known. Call it when nobody catches up."""
        if self._sending is not None and not self._sending.done():
            await asyncio.wait([self._sending], timeout=seconds)
            self._sending.cancel()

    async def _mark(self) -> ToldMark:
        known = await asyncio.to_thread(self._book.mark, self._outlet.name)
        if known is not None:
            return known
        # Whoever is told for the first time has no use for the past.
        last = await self._store.read(lambda view: view.last_position())
        return await self._save(ToldMark(told=last))

    async def _send(self, found: Sequence[Happening], mark: ToldMark, position: int) -> ToldMark:
        doubtful = ToldMark(told=mark.told, telling=max(position, mark.telling))
        await self._save(doubtful)
        told = await self._outlet.tell(self._word(found))
        self._report(told)
        if told.done:
            return await self._save(ToldMark(told=position, telling=mark.telling))
        return doubtful if told.in_doubt else await self._save(mark)

    def _report(self, told: Told) -> None:
        if told.done and self._failures:
            self._say(f"notices to {self._outlet.name} are told again")
        elif not told.done and not self._failures:
            self._say(
                f"a notice to {self._outlet.name} could not be told, and is tried on: {told.why}"
            )
        self._failures = 0 if told.done else self._failures + 1

    async def _save(self, mark: ToldMark) -> ToldMark:
        await asyncio.to_thread(self._book.save, self._outlet.name, mark)
        return mark


def _page(wish: NoticeWish, mark: ToldMark, view: View) -> tuple[list[Happening], int]:
    """What is to be told next, and the position behind which the rest begins."""
    types = (*(WAITS if "waits" in wish.what else ()), *(ENDED if "ended" in wish.what else ()))
    query = EventQuery(types=types, after_position=mark.told, limit=PAGE)
    events = view.events(query)
    found: list[Happening] = []
    for event in events:
        found.extend(_told_of(view, wish, event, perhaps_told=event.position <= mark.telling))
        if len(found) == MOST_AT_ONCE:
            return found, event.position
    return found, events[-1].position if events else mark.told


def _told_of(
    view: View, wish: NoticeWish, event: Event, *, perhaps_told: bool
) -> Iterator[Happening]:
    run = view.run(event.run_id)
    if run is None or (wish.flows and run.flow not in wish.flows):
        return
    body = event.body
    if isinstance(body, ApprovalRequested):
        asked = view.approval(body.approval_id)
        if asked and asked.status is ApprovalStatus.PENDING and asked.tier >= wish.min_tier:
            yield Happening(
                what="waits", event=event, run=run, approval=asked, perhaps_told=perhaps_told
            )
    elif isinstance(body, RunNeededHuman):
        if run.status is RunStatus.NEEDS_HUMAN:
            yield Happening(what="waits", event=event, run=run, perhaps_told=perhaps_told)
    elif run.parent_id is None:
        # The end of a part is told with the whole.
        yield Happening(what="ended", event=event, run=run, perhaps_told=perhaps_told)
