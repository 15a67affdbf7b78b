"""The inbox and the edit of what waits in it."""

from __future__ import annotations

import pytest

from podium.domain.errors import NotPossibleNow
from podium.domain.gating import ApprovalStatus, Tier
from podium.domain.work import Run, RunStatus
from podium.ports import Engine
from podium.usecases import approve, edited_into, reject, resubmit, see_card, see_inbox
from tests.usecases.scene import Scene


async def no_engine() -> Engine:
    raise AssertionError("nothing here has an owner")


async def test_cards_come_by_tier_and_then_by_deadline(scene: Scene) -> None:
    run = await scene.add_run()
    soon = await scene.add_approval(run, seconds=10)
    late = await scene.add_approval(run, seconds=99)
    risky = (await scene.add_approval(run)).model_copy(update={"tier": Tier.T3})
    await scene.store.write(lambda tx: tx.save_approval(risky))
    stuck = await scene.add_run(status=RunStatus.NEEDS_HUMAN)
    inbox = await see_inbox(scene.store, scene.clock, no_engine)
    assert [card.approval.id for card in inbox.cards] == [risky.id, soon.id, late.id]
    assert [each.run.id for each in inbox.blocked] == [stuck.id]
    assert inbox.count == 4
    scene.clock.advance(20)
    inbox = await see_inbox(scene.store, scene.clock, no_engine)
    assert [card.approval.id for card in inbox.cards] == [risky.id, late.id]
    gone = await see_card(scene.store, scene.clock, soon.id)
    assert (gone.is_open, gone.answer.at) == (False, soon.deadline)


async def test_an_answered_card_says_who_answered_when_and_why(scene: Scene) -> None:
    run = await scene.add_run()
    yes, no = await scene.add_approval(run), await scene.add_approval(run)
    await approve(scene.store, scene.clock, scene.ids, yes.id, by="ann", said="go on")
    await reject(scene.store, scene.clock, scene.ids, no.id, by="ben", why="too early")
    for approval, by, words in ((yes, "ann", "go on"), (no, "ben", "too early")):
        answer = (await see_card(scene.store, scene.clock, approval.id)).answer
        assert (answer.by, answer.words, answer.at) == (by, words, scene.clock.now())


async def test_a_yes_to_another_digest_is_refused_and_changes_nothing(scene: Scene) -> None:
    approval = await scene.add_approval(await scene.add_run())
    with pytest.raises(NotPossibleNow, match="what you saw is not what"):
        await approve(scene.store, scene.clock, scene.ids, approval.id, by="ann", digest="sha256:y")
    card = await see_card(scene.store, scene.clock, approval.id)
    assert card.is_open
    done = await approve(
        scene.store, scene.clock, scene.ids, approval.id, by="ann", digest="sha256:x"
    )
    assert done.status is ApprovalStatus.GRANTED


async def test_an_edit_rejects_the_old_question_and_begins_the_run_it_names(scene: Scene) -> None:
    run = await scene.add_run()
    approval = await scene.add_approval(run)

    async def begin(run_id: str) -> Run:
        return await scene.add_run(run_id=run_id)

    done = await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ann", begin=begin)
    assert done.approval.why == f"edited by ann; goes on as {done.run.id}"
    assert edited_into(done.approval) == done.run.id
    assert "approval_rejected" in await scene.event_types(run)
    assert len(await scene.signals(run)) == 1
    with pytest.raises(NotPossibleNow, match="rejected already"):
        await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ann", begin=begin)


async def test_an_edit_that_a_crash_cut_short_begins_the_very_run_that_was_named(
    scene: Scene,
) -> None:
    approval = await scene.add_approval(await scene.add_run())
    begun: list[str] = []

    async def dies(run_id: str) -> Run:
        begun.append(run_id)
        raise ConnectionError("the database is away")

    async def begin(run_id: str) -> Run:
        begun.append(run_id)
        return await scene.add_run(run_id=run_id)

    with pytest.raises(ConnectionError):
        await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ann", begin=dies)
    with pytest.raises(NotPossibleNow, match="'ann' edits"):
        await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ben", begin=begin)
    await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ann", begin=begin)
    assert begun[0] == begun[1]
    assert len(begun) == 2


async def test_nobody_edits_what_was_answered_first(scene: Scene) -> None:
    approval = await scene.add_approval(await scene.add_run())
    await approve(scene.store, scene.clock, scene.ids, approval.id, by="ben")

    async def begin(run_id: str) -> Run:
        raise AssertionError("nothing may begin")

    with pytest.raises(NotPossibleNow, match="granted already"):
        await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ann", begin=begin)
