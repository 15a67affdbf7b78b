"""Choice, time and number of notifications."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from podium.app.approvals import approve
from podium.app.notices import Happening, NoticeFilter, NoticeSender
from podium.core.decisions import Tier
from podium.core.events import RunNeededHuman
from podium.core.work import Run, RunStatus
from podium.notices import FileDeliveryLog
from podium.ports import DeliveryPosition, DeliveryStatus, Notice, NoticeItem
from podium.testing import MemoryOutlet
from tests.unit.notices.stage import add_run, ask, end
from tests.unit.usecases.scene import Scene

REFUSED = DeliveryStatus(done=False, why="error=403")
NO_ANSWER = DeliveryStatus(done=False, why="no answer", in_doubt=True)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    yield scene
    await scene.store.close()


@pytest.fixture
def book(tmp_path: Path) -> FileDeliveryLog:
    book = FileDeliveryLog(tmp_path)
    assert book.try_hold()
    return book


def plain(happenings: Sequence[Happening]) -> Notice:
    def part(each: Happening) -> NoticeItem:
        again = " again?" if each.maybe_sent else ""
        return NoticeItem(text=f"{each.what} {each.card_id}{again}")

    return Notice(title="t", parts=tuple(map(part, happenings)))


def teller(
    scene: Scene,
    book: FileDeliveryLog,
    outlet: MemoryOutlet,
    wish: NoticeFilter | None = None,
    said: list[str] | None = None,
) -> NoticeSender:
    say = (said if said is not None else []).append
    return NoticeSender(
        scene.store, book, outlet, wish or NoticeFilter(), plain, say=say, pauses_seconds=(0.001,)
    )


async def begun(
    scene: Scene, book: FileDeliveryLog, outlet: MemoryOutlet, **more: NoticeFilter
) -> NoticeSender:
    """One that was there before anything happened."""
    made = teller(scene, book, outlet, more.get("wish"))
    await made.catch_up()
    return made


async def test_what_waits_and_what_ended_is_told_once_and_the_past_not(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    run = await add_run(*kit)
    await ask(*kit, run)
    outlet = MemoryOutlet()
    telling = await begun(scene, book, outlet)
    asked = await ask(*kit, run)
    await telling.catch_up()
    await end(scene.store, run)
    await telling.catch_up()
    await telling.catch_up()
    assert outlet.texts == [f"waits {asked.id}", f"ended {run.id}"]


async def test_a_restart_tells_what_happened_meanwhile_and_nothing_twice(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    run = await add_run(*kit)
    outlet = MemoryOutlet()
    await begun(scene, book, outlet)
    first = await ask(*kit, run)
    await teller(scene, book, outlet).catch_up()
    second = await ask(*kit, run)
    await teller(scene, book, outlet).catch_up()
    assert outlet.texts == [f"waits {first.id}", f"waits {second.id}"]


async def test_a_service_that_refuses_is_tried_again_until_it_takes_it(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    run = await add_run(*kit)
    outlet, said = MemoryOutlet(answers=[REFUSED, REFUSED, REFUSED]), list[str]()
    telling = teller(scene, book, outlet, said=said)
    await telling.catch_up()
    asked = await ask(*kit, run)
    await telling.catch_up()
    assert (outlet.tries, outlet.texts) == (4, [f"waits {asked.id}"])
    assert said == [
        "a notice to memory could not be delivered; retrying: error=403",
        "notices to memory are delivered again",
    ]


async def test_what_may_have_arrived_is_told_again_and_says_so(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    run = await add_run(*kit)
    outlet = MemoryOutlet(answers=[NO_ANSWER])
    telling = await begun(scene, book, outlet)
    asked = await ask(*kit, run)
    await telling.catch_up()
    later = await ask(*kit, run)
    await telling.catch_up()
    assert outlet.texts == [f"waits {asked.id} again?", f"waits {later.id}"]


async def test_what_was_answered_before_it_could_be_told_is_not_told(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    run = await add_run(*kit)
    outlet = MemoryOutlet()
    telling = await begun(scene, book, outlet)
    asked = await ask(*kit, run)
    await approve(*kit, asked.id, by="ann")
    await telling.catch_up()
    assert outlet.tries == 0


async def test_a_run_that_needs_a_person_is_told_while_it_does(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    outlet = MemoryOutlet()
    telling = await begun(scene, book, outlet)
    stuck = await add_run(*kit, status=RunStatus.NEEDS_HUMAN)
    freed = await add_run(*kit, status=RunStatus.RUNNING)
    for run in (stuck, freed):
        await needs_human(scene, run)
    await telling.catch_up()
    assert outlet.texts == [f"waits {stuck.id}"]


async def needs_human(scene: Scene, run: Run) -> None:
    await scene.store.write(lambda tx: tx.append(run.id, RunNeededHuman(reason="a doubt")))


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (NoticeFilter(what=("ended",)), 1),
        (NoticeFilter(what=("waits",)), 2),
        (NoticeFilter(what=("waits",), min_tier=Tier.T3), 1),
        (NoticeFilter(flows=("other",)), 0),
        (NoticeFilter(flows=("demo",)), 3),
    ],
)
async def test_only_what_was_wished_for_is_told(
    scene: Scene, book: FileDeliveryLog, wish: NoticeFilter, told: int
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    outlet = MemoryOutlet()
    telling = await begun(scene, book, outlet, wish=wish)
    run = await add_run(*kit)
    await ask(*kit, run, tier=Tier.T2)
    await ask(*kit, run, tier=Tier.T3)
    await end(scene.store, run)
    await telling.catch_up()
    assert len(outlet.texts) == told


async def test_the_end_of_a_part_is_told_with_the_whole(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    outlet = MemoryOutlet()
    telling = await begun(scene, book, outlet)
    whole = await add_run(*kit)
    await end(scene.store, await add_run(*kit, parent_id=whole.id))
    await telling.catch_up()
    assert outlet.tries == 0


async def test_a_burst_becomes_few_messages_and_nothing_is_left_out(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    run = await add_run(*kit)
    outlet = MemoryOutlet()
    telling = await begun(scene, book, outlet)
    asked = [await ask(*kit, run) for _ in range(23)]
    await telling.catch_up()
    assert [len(notice.parts) for notice in outlet.delivered] == [10, 10, 3]
    assert outlet.texts == [f"waits {each.id}" for each in asked]


class SlowOutlet(MemoryOutlet):
    """Takes a message only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.may_end = asyncio.Event(), asyncio.Event()

    async def send(self, notice: Notice) -> DeliveryStatus:
        self.began.set()
        await self.may_end.wait()
        return await super().send(notice)


async def test_a_crash_between_sending_and_noting_it_is_a_doubt(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    run = await add_run(*kit)
    killed, outlet = SlowOutlet(), MemoryOutlet()
    telling = await begun(scene, book, killed)
    asked = await ask(*kit, run)
    following = asyncio.create_task(telling.catch_up())
    await killed.began.wait()
    await teller(scene, book, outlet).catch_up()
    following.cancel()
    await telling.close(0)
    assert outlet.texts == [f"waits {asked.id} again?"]


async def test_closing_waits_for_a_message_on_its_way_so_that_it_is_not_told_twice(
    scene: Scene, book: FileDeliveryLog
) -> None:
    kit = (scene.store, scene.clock, scene.ids)
    run = await add_run(*kit)
    outlet = SlowOutlet()
    telling = await begun(scene, book, outlet)
    asked = await ask(*kit, run)
    following = asyncio.create_task(telling.catch_up())
    await outlet.began.wait()
    following.cancel()
    outlet.may_end.set()
    await telling.close(60)
    await teller(scene, book, outlet).catch_up()
    assert outlet.texts == [f"waits {asked.id}"]


def test_one_process_tells_and_another_takes_over_when_it_is_gone(tmp_path: Path) -> None:
    first, second = FileDeliveryLog(tmp_path), FileDeliveryLog(tmp_path)
    assert first.try_hold()
    assert first.try_hold()
    assert not second.try_hold()
    first.let_go()
    assert second.try_hold()
    second.let_go()


def test_a_mark_that_cannot_be_read_is_none(book: FileDeliveryLog, tmp_path: Path) -> None:
    book.save("a/../b", DeliveryPosition(told=7))
    assert book.position("a/../b") == DeliveryPosition(told=7)
    (file,) = tmp_path.glob("*.json")
    file.write_text('{"told": "x')
    assert book.position("a/../b") is None
