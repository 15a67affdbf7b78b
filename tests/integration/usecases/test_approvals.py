"""Approve, reject and list approvals."""

from __future__ import annotations

import asyncio

import pytest

from podium.app.approvals import approve, list_approvals, reject
from podium.core.approvals import Approver
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import AmbiguousId, ApprovalClosed, NotPossibleNow, UnknownId
from podium.core.events import read_body
from podium.core.ids import short_id
from podium.core.work import RunStatus
from podium.ports import EventQuery
from tests.unit.usecases.scene import Scene

ANN = "ann"


async def test_a_yes_is_recorded_and_wakes_the_run_in_one_step(scene: Scene) -> None:
    run = await scene.add_run()
    asked = await scene.add_approval(run)
    granted = await approve(scene.store, scene.clock, scene.ids, short_id(asked.id), by=ANN)
    assert granted.status is ApprovalStatus.GRANTED
    assert await scene.event_types(run) == ["approval_granted", "signal_sent"]
    (signal,) = await scene.signals(run)
    assert signal.name == f"approval:{asked.id}"
    assert signal.payload["status"] == "granted"
    assert signal.sent_by == ANN


async def test_the_words_approve_and_an_id_are_understood(scene: Scene) -> None:
    run = await scene.add_run()
    asked = await scene.add_approval(run)
    words = f"  approve: {short_id(asked.id)} "
    granted = await approve(scene.store, scene.clock, scene.ids, words, by=ANN)
    assert granted.id == asked.id


async def test_an_approval_is_answered_once(scene: Scene) -> None:
    run = await scene.add_run()
    asked = await scene.add_approval(run)
    answers = await asyncio.gather(
        *(approve(scene.store, scene.clock, scene.ids, asked.id, by=f"p{n}") for n in range(8)),
        return_exceptions=True,
    )
    assert sum(isinstance(answer, NotPossibleNow) for answer in answers) == 7
    assert len(await scene.signals(run)) == 1


async def test_a_chain_of_groups_is_complete_only_with_its_last_yes(scene: Scene) -> None:
    run = await scene.add_run()
    asked = await scene.add_approval(run, approvers=("ops", "owner"))
    groups = {"ops": ("ann",), "owner": ("bob",)}
    with pytest.raises(NotPossibleNow, match="'ops'"):
        await approve(scene.store, scene.clock, scene.ids, asked.id, by="bob", groups=groups)
    first = await approve(scene.store, scene.clock, scene.ids, asked.id, by="ann", groups=groups)
    assert first.status is ApprovalStatus.PENDING
    assert await scene.signals(run) == []
    last = await approve(scene.store, scene.clock, scene.ids, asked.id, by="bob", groups=groups)
    assert last.status is ApprovalStatus.GRANTED
    assert len(await scene.signals(run)) == 1


async def test_a_late_yes_is_refused_and_the_approval_stored_as_expired(scene: Scene) -> None:
    run = await scene.add_run()
    asked = await scene.add_approval(run, seconds=60)
    scene.clock.advance(61)
    with pytest.raises(NotPossibleNow, match="expired"):
        await approve(scene.store, scene.clock, scene.ids, asked.id, by=ANN)
    stored = await scene.store.read(lambda view: view.approval(asked.id))
    assert stored is not None
    assert stored.status is ApprovalStatus.EXPIRED
    assert await scene.event_types(run) == ["approval_expired"]


async def test_a_no_is_final_and_the_run_hears_why(scene: Scene) -> None:
    run = await scene.add_run()
    asked = await scene.add_approval(run)
    refused = await reject(scene.store, scene.clock, scene.ids, asked.id, by=ANN, why="not now")
    assert (refused.status, refused.why) == (ApprovalStatus.REJECTED, "not now")
    (signal,) = await scene.signals(run)
    assert signal.payload["status"] == "rejected"
    assert signal.payload["why"] == "not now"
    with pytest.raises(NotPossibleNow, match="rejected already"):
        await approve(scene.store, scene.clock, scene.ids, asked.id, by=ANN)


@pytest.mark.parametrize(
    ("status", "again"),
    [
        (RunStatus.SUCCEEDED, "podium retry {run} --from 'take-skill#1'"),
        (RunStatus.FAILED, "podium retry {run}"),
        (RunStatus.CANCELLED, "podium retry {run}"),
    ],
)
async def test_answer_after_the_runs_end_is_refused_with_how_to_be_asked_again(
    scene: Scene, status: RunStatus, again: str
) -> None:
    run = await scene.add_run(status=status)
    asked, refused = await scene.add_approval(run), await scene.add_approval(run)
    await scene.add_call(run, "develop", asked)
    scene.clock.advance(1)
    await scene.add_call(run, "take-skill#1", asked)
    for _ in range(2):
        with pytest.raises(ApprovalClosed) as late:
            await approve(scene.store, scene.clock, scene.ids, asked.id, by=ANN)
        assert late.value.exit_code == 4
        assert f"`{again.format(run=short_id(run.id))}`" in str(late.value)
    with pytest.raises(
        ApprovalClosed, match="before the approval was answered, and nothing was done"
    ):
        await reject(scene.store, scene.clock, scene.ids, refused.id, by=ANN, why="no")
    assert await scene.signals(run) == []
    assert await scene.event_types(run) == ["approval_expired", "approval_expired"]


async def test_a_run_that_has_ended_asks_nobody_any_more(scene: Scene) -> None:
    run = await scene.add_run()
    asked, granted = await scene.add_approval(run), await scene.add_approval(run)
    await approve(scene.store, scene.clock, scene.ids, granted.id, by=ANN)
    assert [approval.id for approval in await list_approvals(scene.store, scene.clock)] == [
        asked.id
    ]
    await scene.end(run)
    assert await list_approvals(scene.store, scene.clock) == []
    stored = {
        approval.id: approval
        for approval in await list_approvals(scene.store, scene.clock, statuses=())
    }
    assert stored[asked.id].status is ApprovalStatus.EXPIRED
    assert (
        f"run {short_id(run.id)} succeeded before the approval was answered" in stored[asked.id].why
    )
    assert stored[granted.id].status is ApprovalStatus.GRANTED, "`podium retry` may use it"


async def test_unknown_and_ambiguous_ids_are_distinguished(scene: Scene) -> None:
    run = await scene.add_run()
    with pytest.raises(UnknownId, match="no approval 'abcd1234'"):
        await approve(scene.store, scene.clock, scene.ids, "abcd1234", by=ANN)
    twins = [
        asked.model_copy(update={"id": f"apr_{n}0000000000000000000feedfacecafe"[:36]})
        for n, asked in enumerate([await scene.add_approval(run)] * 2)
    ]
    for twin in twins:
        await scene.store.write(lambda tx, twin=twin: tx.save_approval(twin))  # type: ignore[misc]
    with pytest.raises(AmbiguousId) as caught:
        await approve(scene.store, scene.clock, scene.ids, twins[0].id[-12:-4], by=ANN)
    assert set(caught.value.candidates) == {twin.id for twin in twins}


async def test_listing_marks_what_is_overdue(scene: Scene) -> None:
    run = await scene.add_run()
    late = await scene.add_approval(run, seconds=10)
    open_still = await scene.add_approval(run, seconds=1000)
    scene.clock.advance(20)
    listed = await list_approvals(scene.store, scene.clock)
    assert [approval.id for approval in listed] == [open_still.id]
    everything = await list_approvals(scene.store, scene.clock, statuses=())
    states = {approval.id: approval.status for approval in everything}
    assert states[late.id] is ApprovalStatus.EXPIRED
    assert await scene.event_types(run) == ["approval_expired"]


def _proved(name: str, credential: str) -> Approver:
    return Approver(name=name, authentication="token", credential=credential)


@pytest.mark.parametrize(
    "second",
    [
        _proved("ann", "token:2"),
        _proved("Ann", "token:2"),
        _proved("ａｎｎ ", "token:2"),
        _proved("bob", "token:1"),
    ],
    ids=["the same name", "another case", "another alphabet's letters", "the same token"],
)
async def test_one_person_counts_once_in_a_chain_by_name_and_by_proof(
    scene: Scene, second: Approver
) -> None:
    asked = await scene.add_approval(await scene.add_run(), approvers=("ops", "owner"))
    groups = {"ops": ("ann",), "owner": ("ann", "Ann", "ａｎｎ ", "bob")}
    first = _proved("ann", "token:1")
    await approve(scene.store, scene.clock, scene.ids, asked.id, by=first, groups=groups)
    with pytest.raises(NotPossibleNow, match="already"):
        await approve(scene.store, scene.clock, scene.ids, asked.id, by=second, groups=groups)


async def test_how_somebody_was_authenticated_is_recorded_and_old_records_say_nothing_of_it(
    scene: Scene,
) -> None:
    run = await scene.add_run()
    asked, other = await scene.add_approval(run), await scene.add_approval(run)
    by = Approver(name="ann", authentication="os_user", credential="os:1000@here", account="ann")
    granted = await approve(scene.store, scene.clock, scene.ids, asked.id, by=by)
    await reject(scene.store, scene.clock, scene.ids, other.id, by=by, why="no")
    assert (granted.grants[0].authentication, granted.grants[0].how) == ("os_user", "os user")
    events = await scene.store.read(lambda view: view.events(EventQuery(run_id=run.id)))
    proofs = [event.body.model_dump().get("authentication") for event in events]
    assert proofs == ["os_user", None, "os_user", None]
    old = granted.model_dump(mode="json", exclude={"rejected_how"})
    old["grants"] = [{"by": "ann", "group": "", "at": old["grants"][0]["at"]}]
    read = Approval.model_validate(old)
    assert (read.grants[0].authentication, read.grants[0].how, read.rejected_how) == ("", "", "")
    body = read_body({"type": "approval_granted", "approval_id": "apr_1", "by": "ann"})
    assert body.model_dump()["authentication"] == ""
