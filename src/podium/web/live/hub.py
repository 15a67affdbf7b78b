"""One reader of the journal for all who follow."""

from __future__ import annotations

import asyncio
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

from podium.domain.events import Event
from podium.journal.listening import keep_up
from podium.ports import EventQuery, Store, View
from podium.web.live.channel import Channel, Follower, Gap

MOST_AT_ONCE = 1000
"""New events that one read brings."""


class Hub:
    """Hands events to whoever follows them. However many do, the journal is read once for each commit.

    It reads only while somebody follows.
    """

    def __init__(self, store: Callable[[], Awaitable[Store]]) -> None:
        self._store = store
        self._channels: dict[str | None, Channel] = {}
        self._reader: _Reader | None = None
        self._closed = False

    @property
    def followers(self) -> int:
        """How many follow something just now."""
        return sum(len(channel.followers) for channel in self._channels.values())

    async def follow(
        self,
        run_id: str | None = None,
        *,
        after: int | None = None,
        types: Collection[str] = (),
    ) -> AsyncIterator[Event | Gap]:
        """The events behind `after`, then those to come, of one run or of all runs, in order.

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
                    async for each in self._caught_up(store, channel, follower, patient=first):
                        yield each
                first = False
                while follower.waiting and not follower.cut:
                    event = follower.waiting.popleft()
                    if (place := channel.place(event)) > follower.after:
                        follower.after = place
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
        """The past behind a follower. Who is `patient` asked for it, however long it is."""
        more = True
        while more and not follower.cut:
            follower.listen()
            page = await channel.page(store, follower.after, follower.types)
            for event in page.events:
                follower.after = channel.place(event)
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
    """Reads what is new, and tells it in the channels that are there then."""

    def __init__(self, store: Store, channels: Mapping[str | None, Channel]) -> None:
        self._store = store
        self._channels = channels
        self.position = 0
        """What lies before was never told, and is for followers to read."""
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
            await keep_up(self._store, self._tell_new, lambda error: None)
            _let_go(self._channels)  # the store was closed
        finally:
            self.begun.set()

    async def _tell_new(self) -> None:
        if not self.begun.is_set():
            self.position = await self._store.read(lambda view: view.last_position())
            self.begun.set()
            return
        while len(events := await self._store.read(self._new)) == MOST_AT_ONCE:
            self._tell(events)
        self._tell(events)

    def _new(self, view: View) -> list[Event]:
        return view.events(EventQuery(after_position=self.position, limit=MOST_AT_ONCE))

    def _tell(self, events: Sequence[Event]) -> None:
        for event in events:
            self.position = event.position
            for key in (event.run_id, None):
                if channel := self._channels.get(key):
                    channel.tell(event)
        for run_id in {event.run_id for event in events}:
            if channel := self._channels.get(run_id):
                channel.end_if_over()


def _let_go(channels: Mapping[str | None, Channel]) -> None:
    for channel in channels.values():
        for follower in channel.followers:
            follower.end(at_once=True)


async def _end_of(store: Store, run_id: str | None, reader: _Reader) -> int:
    """The last event there is now, as its channel counts them."""
    if run_id is None:
        return reader.position
    return await store.read(lambda view: view.last_seq(run_id))
