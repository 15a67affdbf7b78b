"""Contract of every `Journal`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from podium.core.events import AgentProgressed, AgentReplied, Event, NoteTaken, RunParked
from podium.ports import EventQuery, Journal, Store
from podium.testing import retry_until
from tests.integration.contract.databases import Database
from tests.unit.contract.nouns import a_note


async def take(following: AsyncIterator[Event], count: int) -> list[str]:
    """The next notes of a follower, which must come."""
    taken: list[str] = []
    async with asyncio.timeout(120):
        while len(taken) < count:
            event = await anext(following)
            taken.append(event.body.text if isinstance(event.body, NoteTaken) else event.body.type)
    return taken


async def test_append_gives_the_number_in_the_run(journal: Journal) -> None:
    numbers = [await journal.append(run, a_note()) for run in ("run_a", "run_b", "run_a")]
    assert numbers == [1, 1, 2]


async def test_an_appended_event_is_there_for_every_handle(
    journal: Journal, database: Database
) -> None:
    await journal.append("run_a", a_note("seen"))
    other = await database.open()
    (event,) = await other.read(lambda view: view.events(EventQuery(run_id="run_a")))
    assert event.body == a_note("seen")


async def test_read_gives_what_the_query_asks_for(journal: Journal) -> None:
    await journal.append("run_a", a_note("1"))
    await journal.append("run_a", RunParked(reason="test"))
    await journal.append("run_b", a_note("2"))
    (event,) = await journal.read(EventQuery(run_id="run_a", types=("note_taken",)))
    assert (event.run_id, event.seq, event.body) == ("run_a", 1, a_note("1"))


async def test_note_precedes_what_is_appended_after_it(journal: Journal) -> None:
    journal.note("run_a", a_note("first"))
    await journal.append("run_a", a_note("second"))
    events = await journal.read(EventQuery(run_id="run_a"))
    assert [event.body for event in events] == [a_note("first"), a_note("second")]


async def test_a_follower_gets_the_past_and_then_what_comes(journal: Journal) -> None:
    await journal.append("run_a", a_note("past"))
    following = journal.follow(EventQuery(run_id="run_a"))
    assert await take(following, 1) == ["past"]
    await journal.append("run_b", a_note("elsewhere"))
    await journal.append("run_a", a_note("present"))
    assert await take(following, 1) == ["present"]


async def test_a_follower_may_start_behind_what_it_has_seen(journal: Journal) -> None:
    for text in "123":
        await journal.append("run_a", a_note(text))
    seen = await journal.read(EventQuery(limit=2))
    following = journal.follow(EventQuery(after_position=seen[-1].position))
    assert await take(following, 1) == ["3"]


async def test_a_follower_reads_on_past_its_page(journal: Journal) -> None:
    for number in range(7):
        await journal.append("run_a", a_note(str(number)))
    following = journal.follow(EventQuery(limit=2))
    assert await take(following, 7) == list("0123456")


async def test_a_follower_gets_notes_without_anybody_writing(journal: Journal) -> None:
    following = journal.follow(EventQuery())
    waiting = asyncio.ensure_future(take(following, 1))
    journal.note("run_a", a_note("soon"))
    assert await waiting == ["soon"]


async def test_a_follower_never_skips_an_event_of_many_writers(
    journal: Journal, database: Database
) -> None:
    here, there = await database.open(), await database.open()

    async def write(store: Store, name: str, text: str) -> None:
        await store.write(lambda tx: tx.append(f"run_{name}", a_note(text)))

    async def writer(store: Store, name: str) -> None:
        for number in range(25):
            await write(store, name, f"{name}{number}")

    following = journal.follow(EventQuery())
    reading = asyncio.ensure_future(take(following, 150))
    await asyncio.gather(*(writer((here, there)[n % 2], name) for n, name in enumerate("abcdef")))
    seen = await reading
    for name in "abcdef":
        own = [text for text in seen if text.startswith(name)]
        assert own == [f"{name}{number}" for number in range(25)]


async def test_following_ends_when_the_store_is_closed(journal: Journal, store: Store) -> None:
    seen: list[Event] = []

    async def follow() -> None:
        async for event in journal.follow(EventQuery()):
            seen.append(event)

    following = asyncio.create_task(follow())
    await journal.append("run_a", a_note())
    await retry_until(lambda: seen)
    await store.close()
    await asyncio.wait_for(following, 120)


async def test_half_a_surrogate_pair_keeps_nothing_from_being_written(journal: Journal) -> None:
    half = AgentProgressed(role="r", agent="a", kind="text", text="half \ud83d of a pair")
    journal.note("run_1", half)
    await journal.append("run_1", AgentReplied(role="r", agent="a", text="\udc00 too"))
    await journal.append("run_1", NoteTaken(text="and on it goes"))
    texts = [getattr(event.body, "text", "") for event in await journal.read(EventQuery())]
    assert texts == ["half ? of a pair", "? too", "and on it goes"]
