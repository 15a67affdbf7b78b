"""Who follows the same events: what they share, and what waits for each of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from podium.domain.events import Event
from podium.ports import EventQuery, Store, View

PAGE = 500
"""Events that one read of the past brings."""
WAITING = 256
"""Events that wait for one follower. With more it is read to from the journal again."""
REMEMBERED = 1000
"""The last events of a channel, so that those who join late need not read them."""
ENDS = frozenset({"run_succeeded", "run_failed", "run_cancelled"})
BEGINNINGS = frozenset({"run_started", "run_retried"})


class Gap(NamedTuple):
    """Events that a follower was too slow for, by `seq` of its run or by position: all in `(after, to]`."""

    after: int
    to: int


class Page(NamedTuple):
    """Events of the past, and whether they were the last ones."""

    events: Sequence[Event]
    last: int
    """Where the journal, or the run, ended when they were read."""
    more: bool
    ended: bool
    """Whether the run had ended then."""


class Follower:
    """One who follows, and what waits for them. It never grows: who is too slow reads the journal anew."""

    def __init__(self, after: int, types: frozenset[str], *, behind: bool) -> None:
        self.after = after
        """The last one it was told of."""
        self.types = types
        self.behind = behind
        """Whether there are events in the journal that it will not hear of otherwise."""
        self.over = False
        self.cut = False
        """Whether it ends at once, with what waits left out."""
        self.waiting: deque[Event] = deque()
        self.woken = asyncio.Event()

    def hear(self, event: Event) -> None:
        if self.behind or (self.types and event.body.type not in self.types):
            return
        if len(self.waiting) >= WAITING:
            self.behind = True
            self.waiting.clear()
        else:
            self.waiting.append(event)
        self.woken.set()

    def listen(self) -> None:
        """From here on it hears what is new; whatever came before is for it to read."""
        self.behind = False
        self.waiting.clear()

    def end(self, *, at_once: bool = False) -> None:
        self.over = True
        self.cut = self.cut or at_once
        self.woken.set()


class Channel:
    """The followers of one run, or of everything."""

    def __init__(self, run_id: str | None) -> None:
        self.run_id = run_id
        self.followers: set[Follower] = set()
        self._recent: deque[Event] = deque(maxlen=REMEMBERED)
        self._complete_after: int | None = None
        """Behind which all events are remembered. None: not known yet."""
        self._ended = False
        self._reading = asyncio.Lock()

    def place(self, event: Event) -> int:
        """What the events of this channel are counted by."""
        return event.position if self.run_id is None else event.seq

    def tell(self, event: Event) -> None:
        """Hand a new event to all who follow."""
        self._remember(event)
        for follower in self.followers:
            follower.hear(event)
        if event.body.type in ENDS:
            self._ended = self.run_id is not None
        elif event.body.type in BEGINNINGS:
            self._ended = False

    def end_if_over(self) -> None:
        """Let followers of a run that has ended go, once they were told everything."""
        if self._ended:
            for follower in self.followers:
                follower.end()

    async def page(self, store: Store, after: int, types: frozenset[str]) -> Page:
        """The next events behind this one: remembered, or read. Those who ask at once read once."""
        async with self._reading:
            if self._complete_after is not None and after >= self._complete_after:
                return self._remembered(after, types)
            page = await store.read(lambda view: self._read(view, after, types))
            if not page.more and not types:
                self._fill(after, page)
            return page

    def _read(self, view: View, after: int, types: frozenset[str]) -> Page:
        kinds = tuple(sorted(types))
        if self.run_id is None:
            query = EventQuery(after_position=after, types=kinds, limit=PAGE)
            last, ended = view.last_position(), False
        else:
            query = EventQuery(run_id=self.run_id, after_seq=after, types=kinds, limit=PAGE)
            run = view.run(self.run_id)
            last, ended = view.last_seq(self.run_id), run is None or run.status.ended
        events = view.events(query)
        return Page(events, last, more=len(events) == PAGE, ended=ended)

    def _remembered(self, after: int, types: frozenset[str]) -> Page:
        events = [
            event
            for event in self._recent
            if self.place(event) > after and (not types or event.body.type in types)
        ]
        last = self.place(self._recent[-1]) if self._recent else after
        return Page(events, last, more=False, ended=self._ended)

    def _fill(self, after: int, page: Page) -> None:
        """What was read to the end, and what has come since, is all there is behind `after`."""
        since = [event for event in self._recent if self.place(event) > page.last]
        self._recent.clear()
        self._complete_after = after
        for event in (*page.events, *since):
            self._remember(event)
        self._ended = page.ended if not since else self._ended

    def _remember(self, event: Event) -> None:
        if self._recent and self.place(event) <= self.place(self._recent[-1]):
            return  # a follower has read further than the hub had told
        if self._complete_after is not None and len(self._recent) == REMEMBERED:
            self._complete_after = self.place(self._recent[0])
        self._recent.append(event)
