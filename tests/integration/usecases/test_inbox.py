"""The inbox and the edit of what waits in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podium.app.approvals import approve, reject
from podium.app.inbox import see_card, see_inbox
from podium.app.resubmission import Begin, resubmit
from podium.core.decisions import ApprovalStatus, Tier
from podium.core.errors import NotPossibleNow
from podium.core.work import Run, RunStatus
from podium.ports import Engine, Transaction
from tests.unit.usecases.scene import Scene


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
    assert [item.run.id for item in inbox.blocked] == [stuck.id]
    assert inbox.count == 4
    scene.clock.advance(20)
    inbox = await see_inbox(scene.store, scene.clock, no_engine)
    assert [card.approval.id for card in inbox.cards] == [risky.id, late.id]
    gone = await see_card(scene.store, scene.clock, soon.id)
    assert (gone.is_open, gone.answer.at) == (False, soon.deadline)


async def test_what_is_overdue_is_found_behind_many_that_are_not(scene: Scene) -> None:
    run = await scene.add_run()
    due = await scene.add_approval(run, seconds=10)
    for _ in range(201):
        await scene.add_approval(run, seconds=99)
    scene.clock.advance(20)
    inbox = await see_inbox(scene.store, scene.clock, no_engine)
    assert (len(inbox.cards), inbox.more) == (100, 101)
    gone = await see_card(scene.store, scene.clock, due.id)
    assert gone.approval.status is ApprovalStatus.EXPIRED


async def test_an_answered_card_says_who_answered_when_and_why(scene: Scene) -> None:
    run = await scene.add_run()
    yes, no = await scene.add_approval(run), await scene.add_approval(run)
    await approve(scene.store, scene.clock, scene.ids, yes.id, by="ann", comment="go on")
    await reject(scene.store, scene.clock, scene.ids, no.id, by="ben", why="too early")
    for approval, by, words in ((yes, "ann", "go on"), (no, "ben", "too early")):
        answer = (await see_card(scene.store, scene.clock, approval.id)).answer
        assert (answer.by, answer.words, answer.at) == (by, words, scene.clock.now())


async def test_a_yes_to_another_digest_is_refused_and_changes_nothing(scene: Scene) -> None:
    approval = await scene.add_approval(await scene.add_run())
    with pytest.raises(NotPossibleNow, match="does not match what you were shown"):
        await approve(scene.store, scene.clock, scene.ids, approval.id, by="ann", digest="sha256:y")
    card = await see_card(scene.store, scene.clock, approval.id)
    assert card.is_open
    done = await approve(
        scene.store, scene.clock, scene.ids, approval.id, by="ann", digest="sha256:x"
    )
    assert done.status is ApprovalStatus.GRANTED


def beginning(scene: Scene) -> Begin:
    async def begin(run_id: str, along: Callable[[Transaction], None]) -> Run:
        await scene.store.write(along)
        return await scene.add_run(run_id=run_id)

    return begin


async def test_an_edit_rejects_the_old_question_and_begins_the_run_it_names(scene: Scene) -> None:
    run = await scene.add_run()
    approval = await scene.add_approval(run)
    begin = beginning(scene)
    done = await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ann", begin=begin)
    assert done.approval.status is ApprovalStatus.REJECTED
    assert done.approval.why == f"edited by ann; continues as {done.run.id}"
    assert done.approval.edited_into == done.run.id
    assert "approval_rejected" in await scene.event_types(run)
    assert len(await scene.signals(run)) == 1
    with pytest.raises(NotPossibleNow, match="rejected already"):
        await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ann", begin=begin)


async def test_an_edit_that_cannot_be_begun_leaves_the_question_open_for_anybody(
    scene: Scene,
) -> None:
    approval = await scene.add_approval(await scene.add_run())

    async def dies(run_id: str, along: Callable[[Transaction], None]) -> Run:
        def cut_short(tx: Transaction) -> None:
            along(tx)
            raise ConnectionError("the database is away")

        await scene.store.write(cut_short)
        raise AssertionError("nothing was stored")

    with pytest.raises(ConnectionError):
        await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ann", begin=dies)
    [card] = (await see_inbox(scene.store, scene.clock, no_engine)).cards
    assert card.approval == approval
    begin = beginning(scene)
    done = await resubmit(scene.store, scene.clock, scene.ids, approval.id, by="ben", begin=begin)
    assert done.approval.edited_into == done.run.id


async def test_words_that_look_like_those_of_an_edit_lead_to_no_run(scene: Scene) -> None:
    run = await scene.add_run()
    approval = await scene.add_approval(run)
    why = f"edited by ann; continues as {run.id}"
    await reject(scene.store, scene.clock, scene.ids, approval.id, by="eve", why=why)
    card = await see_card(scene.store, scene.clock, approval.id)
    assert (card.answer.words, card.approval.edited_into) == (why, "")


async def test_nobody_edits_what_was_answered_first_or_too_late(scene: Scene) -> None:
    run = await scene.add_run()
    approval, late = await scene.add_approval(run), await scene.add_approval(run, seconds=10)
    await approve(scene.store, scene.clock, scene.ids, approval.id, by="ben")
    scene.clock.advance(20)
    for asked, words in ((approval, "granted already"), (late, "nothing was done")):
        with pytest.raises(NotPossibleNow, match=words):
            await resubmit(
                scene.store, scene.clock, scene.ids, asked.id, by="ann", begin=beginning(scene)
            )
    known = await see_card(scene.store, scene.clock, late.id)
    assert known.approval.status is ApprovalStatus.EXPIRED
