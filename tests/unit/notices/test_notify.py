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
from tests.unit.notices.notices_harness import add_run, ask, end
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
    def part(item: Happening) -> NoticeItem:
        again = " again?" if item.maybe_sent else ""
        return NoticeItem(text=f"{item.what} {item.card_id}{again}")

    return Notice(title="t", parts=tuple(map(part, happenings)))


def notifier(
    scene: Scene,
    book: FileDeliveryLog,
    outlet: MemoryOutlet,
    notice_filter: NoticeFilter | None = None,
    messages: list[str] | None = None,
) -> NoticeSender:
    say = (messages if messages is not None else []).append
    return NoticeSender(
        scene.store,
        book,
        outlet,
        notice_filter or NoticeFilter(),
        plain,
        say=say,
        pauses_seconds=(0.001,),
    )


async def begun(
    scene: Scene,
    book: FileDeliveryLog,
    outlet: MemoryOutlet,
    notice_filter: NoticeFilter | None = None,
) -> NoticeSender:
    """One that was there before anything happened."""
    made = notifier(scene, book, outlet, notice_filter)
    await made.catch_up()
    return made


async def test_waiting_and_ended_runs_are_reported_once_and_past_ones_not(
    scene: Scene, book: FileDeliveryLog
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    run = await add_run(*deps)
    await ask(*deps, run)
    outlet = MemoryOutlet()
    rendering = await begun(scene, book, outlet)
    asked = await ask(*deps, run)
    await rendering.catch_up()
    await end(scene.store, run)
    await rendering.catch_up()
    await rendering.catch_up()
    assert outlet.texts == [f"waits {asked.id}", f"ended {run.id}"]


async def test_restart_reports_what_happened_meanwhile_and_nothing_twice(
    scene: Scene, book: FileDeliveryLog
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    run = await add_run(*deps)
    outlet = MemoryOutlet()
    await begun(scene, book, outlet)
    first = await ask(*deps, run)
    await notifier(scene, book, outlet).catch_up()
    second = await ask(*deps, run)
    await notifier(scene, book, outlet).catch_up()
    assert outlet.texts == [f"waits {first.id}", f"waits {second.id}"]


async def test_a_service_that_refuses_is_tried_again_until_it_takes_it(
    scene: Scene, book: FileDeliveryLog
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    run = await add_run(*deps)
    outlet, output = MemoryOutlet(answers=[REFUSED, REFUSED, REFUSED]), list[str]()
    rendering = notifier(scene, book, outlet, messages=output)
    await rendering.catch_up()
    asked = await ask(*deps, run)
    await rendering.catch_up()
    assert (outlet.tries, outlet.texts) == (4, [f"waits {asked.id}"])
    assert output == [
        "a notice to memory could not be delivered; retrying: error=403",
        "notices to memory are delivered again",
    ]


async def test_possibly_delivered_notice_is_sent_again_and_marked_as_such(
    scene: Scene, book: FileDeliveryLog
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    run = await add_run(*deps)
    outlet = MemoryOutlet(answers=[NO_ANSWER])
    rendering = await begun(scene, book, outlet)
    asked = await ask(*deps, run)
    await rendering.catch_up()
    later = await ask(*deps, run)
    await rendering.catch_up()
    assert outlet.texts == [f"waits {asked.id} again?", f"waits {later.id}"]


async def test_approval_answered_before_its_notice_is_not_reported(
    scene: Scene, book: FileDeliveryLog
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    run = await add_run(*deps)
    outlet = MemoryOutlet()
    rendering = await begun(scene, book, outlet)
    asked = await ask(*deps, run)
    await approve(*deps, asked.id, by="ann")
    await rendering.catch_up()
    assert outlet.tries == 0


async def test_run_that_needs_a_person_is_reported_while_it_does(
    scene: Scene, book: FileDeliveryLog
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    outlet = MemoryOutlet()
    rendering = await begun(scene, book, outlet)
    stuck = await add_run(*deps, status=RunStatus.NEEDS_HUMAN)
    freed = await add_run(*deps, status=RunStatus.RUNNING)
    for run in (stuck, freed):
        await needs_human(scene, run)
    await rendering.catch_up()
    assert outlet.texts == [f"waits {stuck.id}"]


async def needs_human(scene: Scene, run: Run) -> None:
    await scene.store.write(lambda tx: tx.append(run.id, RunNeededHuman(reason="a doubt")))


@pytest.mark.parametrize(
    ("notice_filter", "output"),
    [
        (NoticeFilter(what=("ended",)), 1),
        (NoticeFilter(what=("waits",)), 2),
        (NoticeFilter(what=("waits",), min_tier=Tier.T3), 1),
        (NoticeFilter(flows=("other",)), 0),
        (NoticeFilter(flows=("demo",)), 3),
    ],
)
async def test_only_requested_notices_are_sent(
    scene: Scene, book: FileDeliveryLog, notice_filter: NoticeFilter, output: int
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    outlet = MemoryOutlet()
    rendering = await begun(scene, book, outlet, notice_filter=notice_filter)
    run = await add_run(*deps)
    await ask(*deps, run, tier=Tier.T2)
    await ask(*deps, run, tier=Tier.T3)
    await end(scene.store, run)
    await rendering.catch_up()
    assert len(outlet.texts) == output


async def test_end_of_a_part_is_reported_with_the_whole(
    scene: Scene, book: FileDeliveryLog
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    outlet = MemoryOutlet()
    rendering = await begun(scene, book, outlet)
    whole = await add_run(*deps)
    await end(scene.store, await add_run(*deps, parent_id=whole.id))
    await rendering.catch_up()
    assert outlet.tries == 0


async def test_a_burst_becomes_few_messages_and_nothing_is_left_out(
    scene: Scene, book: FileDeliveryLog
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    run = await add_run(*deps)
    outlet = MemoryOutlet()
    rendering = await begun(scene, book, outlet)
    asked = [await ask(*deps, run) for _ in range(23)]
    await rendering.catch_up()
    assert [len(notice.parts) for notice in outlet.delivered] == [10, 10, 3]
    assert outlet.texts == [f"waits {item.id}" for item in asked]


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
    deps = (scene.store, scene.clock, scene.ids)
    run = await add_run(*deps)
    killed, outlet = SlowOutlet(), MemoryOutlet()
    rendering = await begun(scene, book, killed)
    asked = await ask(*deps, run)
    following = asyncio.create_task(rendering.catch_up())
    await killed.began.wait()
    await notifier(scene, book, outlet).catch_up()
    following.cancel()
    await rendering.close(0)
    assert outlet.texts == [f"waits {asked.id} again?"]


async def test_closing_waits_for_a_message_on_its_way_so_it_is_not_sent_twice(
    scene: Scene, book: FileDeliveryLog
) -> None:
    deps = (scene.store, scene.clock, scene.ids)
    run = await add_run(*deps)
    outlet = SlowOutlet()
    rendering = await begun(scene, book, outlet)
    asked = await ask(*deps, run)
    following = asyncio.create_task(rendering.catch_up())
    await outlet.began.wait()
    following.cancel()
    outlet.may_end.set()
    await rendering.close(60)
    await notifier(scene, book, outlet).catch_up()
    assert outlet.texts == [f"waits {asked.id}"]


def test_one_process_notifies_and_another_takes_over_when_it_is_gone(tmp_path: Path) -> None:
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
