"""Hub of live events: one reader of the journal for all subscribers, and the channel of each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from typing import NamedTuple

from podium.core.events import Event
from podium.ports import EventQuery, Store, StoreView
from podium.telemetry.event_feed import keep_up

PAGE = 500
"""Events per read of the past."""
WAITING = 256
"""Events that wait for one follower; beyond it the follower reads the journal."""
REMEMBERED = 1000
"""Latest events a channel remembers, so that late followers need not read them."""
ENDS = frozenset({"run_succeeded", "run_failed", "run_cancelled"})
BEGINNINGS = frozenset({"run_started", "run_retried"})


class Gap(NamedTuple):
    """Events a follower was too slow for: all in `(after, to]`, by `seq` of its run or by position."""

    after: int
    to: int


class Page(NamedTuple):
    """Events of the past, and whether they were the last ones."""

    events: Sequence[Event]
    last: int
    """Last position of the journal, or `seq` of the run, when they were read."""
    more: bool
    ended: bool
    """True when the run had ended then."""


class Follower:
    """A subscriber with a bounded queue; one that is too slow reads the journal again."""

    def __init__(self, after: int, types: frozenset[str], *, behind: bool) -> None:
        self.after = after
        """Last event it received."""
        self.types = types
        self.behind = behind
        """True when it has to read events from the journal first."""
        self.over = False
        self.cut = False
        """True when it ends at once, dropping waiting events."""
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
        """Queue new events from here on; earlier ones it reads itself."""
        self.behind = False
        self.waiting.clear()

    def end(self, *, at_once: bool = False) -> None:
        self.over = True
        self.cut = self.cut or at_once
        self.woken.set()


class Channel:
    """Followers of one run, or of all runs."""

    def __init__(self, run_id: str | None) -> None:
        self.run_id = run_id
        self.followers: set[Follower] = set()
        self._recent: deque[Event] = deque(maxlen=REMEMBERED)
        self._complete_after: int | None = None
        """All events behind this one are remembered. None: not known yet."""
        self._ended = False
        self._reading = asyncio.Lock()

    def position_of(self, event: Event) -> int:
        """Return the number that orders events in this channel: `seq` or position."""
        return event.position if self.run_id is None else event.seq

    def publish(self, event: Event) -> None:
        """Publish a new event to all followers."""
        self._remember(event)
        for follower in self.followers:
            follower.hear(event)
        if event.body.type in ENDS:
            self._ended = self.run_id is not None
        elif event.body.type in BEGINNINGS:
            self._ended = False

    def end_if_over(self) -> None:
        """End the followers of a run that has ended, once they have every event."""
        if self._ended:
            for follower in self.followers:
                follower.end()

    async def page(self, store: Store, after: int, types: frozenset[str]) -> Page:
        """Return the next events after this one, from memory or the journal. Concurrent callers share one read."""
        async with self._reading:
            if self._complete_after is not None and after >= self._complete_after:
                return self._remembered(after, types)
            page = await store.read(lambda view: self._read(view, after, types))
            if not page.more and not types:
                self._fill(after, page)
            return page

    def _read(self, view: StoreView, after: int, types: frozenset[str]) -> Page:
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
            if self.position_of(event) > after and (not types or event.body.type in types)
        ]
        last = self.position_of(self._recent[-1]) if self._recent else after
        return Page(events, last, more=False, ended=self._ended)

    def _fill(self, after: int, page: Page) -> None:
        """Remember a page read to the end with the events since: all there are behind `after`."""
        since = [event for event in self._recent if self.position_of(event) > page.last]
        self._recent.clear()
        self._complete_after = after
        for event in (*page.events, *since):
            self._remember(event)
        self._ended = page.ended if not since else self._ended

    def _remember(self, event: Event) -> None:
        if self._recent and self.position_of(event) <= self.position_of(self._recent[-1]):
            return  # a follower has read further than the hub had told
        if self._complete_after is not None and len(self._recent) == REMEMBERED:
            self._complete_after = self.position_of(self._recent[0])
        self._recent.append(event)


MAX_AT_ONCE = 1000
"""New events per read."""


class Hub:
    """Publishes events to followers. However many there are, the journal is read once per commit.

    It reads only while somebody follows.
    """

    def __init__(self, store: Callable[[], Awaitable[Store]]) -> None:
        self._store = store
        self._channels: dict[str | None, Channel] = {}
        self._reader: _Reader | None = None
        self._closed = False

    @property
    def followers(self) -> int:
        """Number of followers."""
        return sum(len(channel.followers) for channel in self._channels.values())

    async def follow(
        self,
        run_id: str | None = None,
        *,
        after: int | None = None,
        types: Collection[str] = (),
    ) -> AsyncIterator[Event | Gap]:
        """Yield the events after `after`, then new ones, of one run or of all runs, in order.

        `after` is a `seq` of the run, or a position when no run is named. None: only what is new. Who
        falls behind by more than one read is told of a `Gap` and goes on with what is new. It ends with
        the run, and when the hub is closed.
        """
        store = await self._store()
        follower = Follower(after or 0, frozenset(types), behind=after is not None)
        with self._following(store, run_id, follower) as (channel, reader):
            await reader.begun.wait()
            if after is None:
                follower.after = await _end_of(store, run_id, reader)
                follower.behind = run_id is not None  # the run may have ended
            first = True
            while not follower.cut:
                if follower.behind:
                    async for item in self._caught_up(store, channel, follower, patient=first):
                        yield item
                first = False
                while follower.waiting and not follower.cut:
                    event = follower.waiting.popleft()
                    if (position := channel.position_of(event)) > follower.after:
                        follower.after = position
                        yield event
                if follower.behind:
                    continue
                if follower.over:
                    return
                await follower.woken.wait()
                follower.woken.clear()

    async def close(self) -> None:
        """End every stream."""
        self._closed = True
        _let_go(self._channels)
        if self._reader is not None:
            await self._reader.stop()

    async def _caught_up(
        self, store: Store, channel: Channel, follower: Follower, *, patient: bool
    ) -> AsyncIterator[Event | Gap]:
        """Yield the past a follower has not seen; a `patient` one gets all of it."""
        more = True
        while more and not follower.cut:
            follower.listen()
            page = await channel.page(store, follower.after, follower.types)
            for event in page.events:
                follower.after = channel.position_of(event)
                yield event
            more = page.more
            if more and not patient:
                yield Gap(follower.after, page.last)
                follower.after, more = page.last, False
            if page.ended and not more:
                follower.end()

    @contextmanager
    def _following(
        self, store: Store, run_id: str | None, follower: Follower
    ) -> Iterator[tuple[Channel, _Reader]]:
        channel = self._channels.setdefault(run_id, Channel(run_id))
        channel.followers.add(follower)
        if self._reader is None:
            self._reader = _Reader(store, self._channels)
        if self._closed:
            follower.end(at_once=True)
        try:
            yield channel, self._reader
        finally:
            channel.followers.discard(follower)
            if not channel.followers and self._channels.get(run_id) is channel:
                del self._channels[run_id]
            if not self._channels and self._reader is not None:
                self._reader.cancel()
                self._reader = None


class _Reader:
    """Reads new events and publishes them to the current channels."""

    def __init__(self, store: Store, channels: Mapping[str | None, Channel]) -> None:
        self._store = store
        self._channels = channels
        self.position = 0
        """Events up to here were not published; followers read them from the journal."""
        self.begun = asyncio.Event()
        self._task = asyncio.create_task(self._read_on())

    def cancel(self) -> None:
        self._task.cancel()

    async def stop(self) -> None:
        self.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _read_on(self) -> None:
        try:
            await keep_up(self._store, self._publish_new, lambda error: None)
            _let_go(self._channels)  # the store was closed
        finally:
            self.begun.set()

    async def _publish_new(self) -> None:
        if not self.begun.is_set():
            self.position = await self._store.read(lambda view: view.last_position())
            self.begun.set()
            return
        while len(events := await self._store.read(self._new)) == MAX_AT_ONCE:
            self._publish(events)
        self._publish(events)

    def _new(self, view: StoreView) -> list[Event]:
        return view.events(EventQuery(after_position=self.position, limit=MAX_AT_ONCE))

    def _publish(self, events: Sequence[Event]) -> None:
        for event in events:
            self.position = event.position
            for key in (event.run_id, None):
                if channel := self._channels.get(key):
                    channel.publish(event)
        for run_id in {event.run_id for event in events}:
            if channel := self._channels.get(run_id):
                channel.end_if_over()


def _let_go(channels: Mapping[str | None, Channel]) -> None:
    for channel in channels.values():
        for follower in channel.followers:
            follower.end(at_once=True)


async def _end_of(store: Store, run_id: str | None, reader: _Reader) -> int:
    """Return the number of the latest event, as its channel counts."""
    if run_id is None:
        return reader.position
    return await store.read(lambda view: view.last_seq(run_id))
