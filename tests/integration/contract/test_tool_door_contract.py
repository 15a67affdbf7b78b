"""The tool door, on every store: who may act, how often, and what is left in the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from podium.app.run_control import resolve_call
from podium.core.approval_steps import grant, reject
from podium.core.decisions import (
    Access,
    Approval,
    ApprovalStatus,
    Budget,
    Call,
    CallOutcome,
    CallRecord,
    CallStatus,
    Decision,
    Effect,
    GateContext,
    PathUse,
    Permit,
    Quota,
    Receipt,
    Refusal,
    Tier,
    ToolSpec,
    Usage,
)
from podium.core.errors import CallInDoubt, NotPossibleNow
from podium.core.events import (
    AnyEvent,
    ApprovalConsumed,
    ApprovalExpired,
    ApprovalRequested,
    RunRetried,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
    ToolResolved,
)
from podium.core.model import FrozenModel
from podium.ports import EventQuery, Gate, Store, ToolDoor, Transaction
from podium.testing import FixedClock, ScriptedGate, ScriptedToolDoor, SteadyIds, decision
from podium.tools import DoorSettings, GatedDoor
from tests.integration.contract.databases import Database

RUN = "run_1"
DONE = CallOutcome(ok=True, result={"number": 7, "note": "x"}, duration_seconds=1.5)

SPECS = {
    "send": ToolSpec(name="send", tier=Tier.T3, receipt_fields=("number",)),
    "look": ToolSpec(name="look", tier=Tier.T0, receipt_fields=("number",), idempotent=True),
    "put": ToolSpec(
        name="put", tier=Tier.T1, receipt_fields=("number",), idempotent=True, undo="send"
    ),
}


def a_call(tool: str = "send", index: int = 0, **changes: Any) -> Call:
    complete: dict[str, Any] = {"run_id": RUN, "step_key": "work#0", "index": index, "tool": tool}
    return Call(**complete | changes)


KEY = a_call().key


def leading_to(real: str) -> tuple[PathUse, ...]:
    """Return the path that a call touches. The same arguments may lead elsewhere later."""
    return (PathUse(argument="path", given="link", real=real, access=Access.WRITE),)


def ask_until_approved(call: Call, context: GateContext) -> Decision:
    """As the real gate does with a tool that needs a person."""
    if context.approval is not None:
        return Decision(
            effect=Effect.ALLOW,
            rule=f"approval:{context.approval.id}",
            reason="a person said yes",
            tier=Tier.T3,
        )
    return decision(Effect.ASK, "it leaves the machine", Tier.T3)


def allow(call: Call, context: GateContext) -> Decision:
    return decision(Effect.ALLOW)


@dataclass
class Harness:
    """A store with as many doors as a test opens on it."""

    store: Store
    clock: FixedClock
    opened: int = 0

    def door(self, gate: Gate | None = None, **settings: Any) -> GatedDoor:
        """Another door on the same store, as after a restart."""
        self.opened += 1
        return GatedDoor(
            self.store,
            gate or ScriptedGate(allow),
            SPECS.get,
            clock=self.clock,
            ids=SteadyIds(seed=self.opened),
            settings=DoorSettings(**{"root": "/work"} | settings),
            redact=lambda text: text.replace("s3cret", "***"),
        )

    async def events(self) -> list[AnyEvent]:
        found = await self.store.read(lambda view: view.events(EventQuery(run_id=RUN)))
        return [event.body for event in found]

    async def kinds(self) -> list[type]:
        return [type(event) for event in await self.events()]

    async def record(self, key: str = KEY) -> CallRecord:
        record = await self.store.read(lambda view: view.call(key))
        assert record is not None
        return record

    async def receipts(self) -> list[Receipt]:
        return await self.store.read(lambda view: view.receipts(RUN))

    async def approval(self, approval_id: str | None) -> Approval:
        assert approval_id is not None
        approval = await self.store.read(lambda view: view.approval(approval_id))
        assert approval is not None
        return approval

    async def change(self, change: Callable[[Approval], Approval], approval_id: str | None) -> None:
        changed = change(await self.approval(approval_id))
        await self.store.write(lambda tx: tx.save_approval(changed))

    async def approve(self, approval_id: str | None, by: str = "ann") -> None:
        await self.change(lambda approval: grant(approval, by, self.clock.now()), approval_id)


@pytest.fixture
async def harness(database: Database, clock: FixedClock) -> Harness:
    return Harness(await database.open(), clock)


async def permitted(door: ToolDoor, call: Call) -> Permit:
    answer = await door.request(call)
    assert isinstance(answer, Permit), answer
    return answer


async def refused(door: ToolDoor, call: Call) -> Refusal:
    answer = await door.request(call)
    assert isinstance(answer, Refusal), answer
    return answer


# What any door promises, the fake one too.

DOORS: list[Callable[[Harness, Gate], ToolDoor]] = [
    lambda harness, gate: harness.door(gate),
    lambda harness, gate: ScriptedToolDoor(harness.store, gate, harness.clock),
]


@pytest.fixture(params=DOORS, ids=["GatedDoor", "ScriptedToolDoor"])
def make_door(request: pytest.FixtureRequest, harness: Harness) -> Callable[[Gate], ToolDoor]:
    return lambda gate: request.param(harness, gate)


async def test_the_request_is_durable_before_the_permit_is_given(
    harness: Harness, make_door: Callable[[Gate], ToolDoor]
) -> None:
    await permitted(make_door(ScriptedGate(allow)), a_call())

    assert await harness.kinds() == [ToolRequested]
    assert (await harness.record()).status is CallStatus.REQUESTED


async def test_settling_writes_receipt_end_and_checkpoint_in_one_transaction(
    harness: Harness, make_door: Callable[[Gate], ToolDoor]
) -> None:
    door = make_door(ScriptedGate(allow))
    permit = await permitted(door, a_call())

    def crash(tx: Transaction, outcome: FrozenModel) -> None:
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        await door.settle(permit, DONE, crash)
    assert (await harness.receipts(), await harness.kinds()) == ([], [ToolRequested])

    receipt = await door.settle(permit, DONE)
    assert (receipt.number, receipt.status) == (1, "completed")
    assert await harness.kinds() == [ToolRequested, ToolCompleted]


async def test_a_settled_call_is_permitted_with_its_outcome(
    make_door: Callable[[Gate], ToolDoor],
) -> None:
    door = make_door(ScriptedGate(allow))
    await door.settle(await permitted(door, a_call()), DONE)

    assert (await permitted(door, a_call())).settled == DONE


async def test_what_was_never_requested_cannot_be_settled(
    make_door: Callable[[Gate], ToolDoor],
) -> None:
    forged = Permit(call=a_call(), digest="sha256:0", decision=decision(Effect.ALLOW))

    with pytest.raises(NotPossibleNow):
        await make_door(ScriptedGate(allow)).settle(forged, DONE)


async def test_a_call_that_was_permitted_and_not_settled_is_in_doubt(
    make_door: Callable[[Gate], ToolDoor],
) -> None:
    await permitted(make_door(ScriptedGate(allow)), a_call())

    with pytest.raises(CallInDoubt):
        await make_door(ScriptedGate(allow)).request(a_call())


async def test_an_abandoned_call_is_recorded_as_one_and_may_be_asked_for_again(
    harness: Harness, make_door: Callable[[Gate], ToolDoor]
) -> None:
    door = make_door(ScriptedGate(allow))
    permit = await permitted(door, a_call(observed=True))

    receipt = await door.abandon(permit)

    assert (receipt.number, receipt.status, receipt.error) == (1, "abandoned", "")
    assert (await harness.events())[1:] == [ToolAbandoned(call=KEY, tool="send", receipt=1)]
    assert (await harness.record()).status is CallStatus.ABANDONED
    assert await door.abandon(permit) == receipt
    assert (await permitted(door, a_call(observed=True))).settled is None


async def test_what_podium_performs_is_never_abandoned(
    harness: Harness, make_door: Callable[[Gate], ToolDoor]
) -> None:
    door = make_door(ScriptedGate(allow))
    permit = await permitted(door, a_call())

    with pytest.raises(NotPossibleNow):
        await door.abandon(permit)

    assert (await harness.record()).status is CallStatus.REQUESTED


async def test_what_was_never_requested_cannot_be_abandoned(
    make_door: Callable[[Gate], ToolDoor],
) -> None:
    call = a_call(observed=True)
    forged = Permit(call=call, digest="sha256:0", decision=decision(Effect.ALLOW))

    with pytest.raises(NotPossibleNow):
        await make_door(ScriptedGate(allow)).abandon(forged)


async def test_an_observed_call_that_was_settled_is_judged_again_when_its_turn_is(
    make_door: Callable[[Gate], ToolDoor],
) -> None:
    door = make_door(ScriptedGate(allow))
    await door.settle(await permitted(door, a_call(observed=True)), DONE)

    again = await permitted(door, a_call(observed=True))

    assert again.settled is None


async def test_looking_back_abandons_what_a_cli_left_open_and_doubts_what_podium_did(
    harness: Harness, make_door: Callable[[Gate], ToolDoor]
) -> None:
    door = make_door(ScriptedGate(allow))
    await permitted(door, a_call(observed=True))
    await permitted(door, a_call(index=1, step_key="other#0"))

    await door.look_back(RUN, "work#0")

    assert (await harness.record()).status is CallStatus.ABANDONED
    with pytest.raises(CallInDoubt):
        await door.look_back(RUN, "other#0")


# What the real door promises beyond that.


async def test_an_abandoned_call_uses_up_its_approval_and_cannot_be_settled_any_more(
    harness: Harness,
) -> None:
    door = harness.door(ScriptedGate(ask_until_approved))
    call = a_call(observed=True)
    first = await refused(door, call)
    await harness.approve(first.approval_id)
    permit = await permitted(door, call)

    receipt = await door.abandon(permit)

    assert (await harness.approval(first.approval_id)).status is ApprovalStatus.CONSUMED
    assert receipt.approved_by == ("ann",)
    assert await door.settle(permit, DONE) == receipt
    assert (await harness.kinds())[3:] == [ToolAbandoned, ApprovalConsumed]


async def test_a_settled_call_is_not_abandoned_afterwards(harness: Harness) -> None:
    door = harness.door()
    permit = await permitted(door, a_call(observed=True))
    receipt = await door.settle(permit, DONE)

    assert await door.abandon(permit) == receipt

    assert (await harness.record()).status is CallStatus.COMPLETED


async def test_denied_call_is_recorded_and_the_agent_is_given_the_reason(harness: Harness) -> None:
    gate = ScriptedGate([decision(Effect.DENY, "outside office hours", Tier.T3)])

    call = a_call(arguments={"to": "ann"})
    refusal = await refused(harness.door(gate), call)

    assert refusal.say.startswith("outside office hours (rule scripted). Nothing was done.")
    assert await harness.events() == [
        ToolRefused(
            call=call.key,
            tool="send",
            arguments={"to": "ann"},
            effect="deny",
            tier="T3",
            rule="scripted",
            reason="outside office hours",
        )
    ]
    assert (await harness.record(call.key)).status is CallStatus.REFUSED


async def test_a_refused_call_is_judged_again_by_the_policy_of_the_day(harness: Harness) -> None:
    await refused(harness.door(ScriptedGate([Effect.DENY])), a_call())

    await permitted(harness.door(), a_call())

    assert await harness.kinds() == [ToolRefused, ToolRequested]


class CrashingGate(ScriptedGate):
    """Breaks its promise never to raise, in one of its four places."""

    def __init__(self, place: str) -> None:
        super().__init__([Effect.ASK])
        self.place = place

    def decide(self, call: Call, context: GateContext) -> Decision:
        self._maybe_crash("decide")
        return super().decide(call, context)

    def quotas_for(self, call: Call, context: GateContext) -> tuple[Quota, ...]:
        self._maybe_crash("quotas_for")
        return ()

    @property
    def budgets(self) -> tuple[Budget, ...]:
        self._maybe_crash("budgets")
        return ()

    @property
    def approval_seconds(self) -> float:
        self._maybe_crash("approval_seconds")
        return 60.0

    def _maybe_crash(self, place: str) -> None:
        if place == self.place:
            raise ZeroDivisionError(place)


@pytest.mark.parametrize("place", ["decide", "quotas_for", "budgets", "approval_seconds"])
async def test_a_gate_that_crashes_is_a_recorded_no(harness: Harness, place: str) -> None:
    refusal = await refused(harness.door(CrashingGate(place)), a_call())

    assert (refusal.decision.effect, refusal.decision.rule) == (Effect.DENY, "gate-error")
    assert refusal.approval_id is None
    (event,) = await harness.events()
    assert isinstance(event, ToolRefused)
    assert f"ZeroDivisionError: {place}" in event.reason


async def test_the_gate_is_shown_tool_mode_root_and_time(harness: Harness) -> None:
    seen: list[GateContext] = []

    def judge(call: Call, context: GateContext) -> Decision:
        seen.append(context)
        return decision(Effect.DENY)

    door = harness.door(ScriptedGate(judge), mode="sensing", attended=True)
    await door.request(a_call())
    await door.request(a_call("fly", 1))

    assert seen[0].tool == SPECS["send"]
    assert (seen[0].mode, seen[0].attended, seen[0].root) == ("sensing", True, "/work")
    assert seen[0].now == harness.clock.now()
    assert seen[1].tool is None


async def test_quotas_are_counted_by_permits_alone_and_within_their_window(
    harness: Harness,
) -> None:
    used: list[int] = []

    def judge(call: Call, context: GateContext) -> Decision:
        used.append(context.quotas[0].used)
        return decision(Effect.DENY if call.index == 1 else Effect.ALLOW)

    gate = ScriptedGate(judge, quotas=(Quota(name="mails", limit=9, seconds=60),))
    for index in range(3):
        await harness.door(gate).request(a_call(index=index))
    harness.clock.advance(61)
    await harness.door(gate).request(a_call(index=3))

    assert used == [0, 1, 1, 0]


async def test_budgets_of_policy_and_run_are_shown_with_what_was_used(harness: Harness) -> None:
    seen: list[GateContext] = []

    def judge(call: Call, context: GateContext) -> Decision:
        seen.append(context)
        return decision(Effect.ALLOW)

    gate = ScriptedGate(judge, budgets=(Budget(scope="day", usd=9.0),))
    door = harness.door(
        gate, budgets=(Budget(scope="run", tokens=100), Budget(scope="call", usd=1))
    )
    cost = Usage(usd=0.25, input_tokens=30, output_tokens=12, turns=1, seconds=2.5)
    await door.settle(await permitted(door, a_call()), DONE.model_copy(update={"usage": cost}))
    await door.request(a_call(index=1))
    harness.clock.advance(86_400)
    await door.request(a_call(index=2))

    assert [state.used for state in seen[0].budgets] == [Usage()] * 3
    assert [state.used for state in seen[1].budgets] == [cost, cost, Usage()]
    assert [state.used for state in seen[2].budgets] == [Usage(), cost, Usage()]
    assert [state.budget.scope for state in seen[2].budgets] == ["day", "run", "call"]


async def test_asking_a_person_leaves_the_whole_story_in_the_journal(harness: Harness) -> None:
    door = harness.door(ScriptedGate(ask_until_approved, approval_seconds=600))
    call = a_call(arguments={"to": "ann", "key": "secret://MAIL"})
    deadline = harness.clock.now() + timedelta(seconds=600)

    refusal = await refused(door, call)
    await harness.approve(refusal.approval_id)
    receipt = await door.settle(await permitted(door, call), DONE)

    approval_id = refusal.approval_id or ""
    digest = call.digest(SPECS["send"])
    assert refusal.say.startswith(f"Waiting for approval {approval_id}; end your turn.")
    assert refusal.deadline == deadline
    assert await harness.events() == [
        ApprovalRequested(
            approval_id=approval_id,
            call=call.key,
            tool="send",
            summary="send\n  to: ann\n  key: secret://MAIL",
            digest=digest,
            tier="T3",
            deadline=deadline,
        ),
        ToolRefused(
            call=call.key,
            tool="send",
            arguments=call.arguments,
            effect="ask",
            tier="T3",
            rule="scripted",
            reason="it leaves the machine",
            approval_id=approval_id,
        ),
        ToolRequested(
            call=call.key,
            tool="send",
            arguments=call.arguments,
            digest=digest,
            tier="T3",
            rule=f"approval:{approval_id}",
            reason="a person said yes",
            approval_id=approval_id,
        ),
        ToolCompleted(call=call.key, tool="send", result=DONE.result, seconds=1.5, receipt=1),
        ApprovalConsumed(approval_id=approval_id, receipt=1),
    ]
    assert receipt.approved_by == ("ann",)
    assert receipt.approval_id == approval_id
    assert receipt.fields == {"number": 7}
    consumed = await harness.approval(approval_id)
    assert (consumed.status, consumed.receipt_number) == (ApprovalStatus.CONSUMED, 1)


async def test_the_same_question_is_not_asked_twice_while_it_is_open(harness: Harness) -> None:
    gate = ScriptedGate(ask_until_approved)

    first = await refused(harness.door(gate), a_call())
    again = await refused(harness.door(gate), a_call())
    elsewhere = await refused(harness.door(gate), a_call(index=5))

    assert first.approval_id == again.approval_id == elsewhere.approval_id
    assert (await harness.kinds()).count(ApprovalRequested) == 1


async def test_an_approval_is_for_exactly_one_digest(harness: Harness) -> None:
    door = harness.door(ScriptedGate(ask_until_approved))
    first = await refused(door, a_call(arguments={"to": "ann"}))
    await harness.approve(first.approval_id)

    other = await refused(door, a_call(arguments={"to": "bob"}))

    assert other.approval_id != first.approval_id


async def test_an_approval_lets_one_call_pass_and_the_next_is_asked_about(harness: Harness) -> None:
    door = harness.door(ScriptedGate(ask_until_approved))
    first = await refused(door, a_call())
    await harness.approve(first.approval_id)

    permit = await permitted(door, a_call())
    second = await refused(door, a_call(index=1))
    await door.settle(permit, CallOutcome(ok=False, error="no line"))
    third = await refused(door, a_call(index=2))

    assert permit.approval_id == first.approval_id
    assert second.approval_id not in (None, first.approval_id)
    assert third.approval_id == second.approval_id
    assert (await harness.approval(first.approval_id)).status is ApprovalStatus.CONSUMED


async def test_many_calls_raced_for_one_approval_have_one_winner(harness: Harness) -> None:
    gate = ScriptedGate(ask_until_approved)
    first = await refused(harness.door(gate), a_call())
    await harness.approve(first.approval_id)
    doors = [harness.door(gate) for _ in range(25)]

    answers = await asyncio.gather(
        *(door.request(a_call(index=index)) for index, door in enumerate(doors))
    )

    winners = [answer for answer in answers if isinstance(answer, Permit)]
    losers = [answer.approval_id for answer in answers if isinstance(answer, Refusal)]
    assert len(winners) == 1
    assert len(losers) == 24
    assert len(set(losers)) == 1


async def test_an_approval_is_used_up_even_where_the_policy_needs_none_any_more(
    harness: Harness,
) -> None:
    first = await refused(harness.door(ScriptedGate(ask_until_approved)), a_call())
    await harness.approve(first.approval_id)

    door = harness.door()
    receipt = await door.settle(await permitted(door, a_call()), DONE)

    assert receipt.approved_by == ("ann",)


async def test_a_rejected_call_is_denied_with_who_and_why(harness: Harness) -> None:
    gate = ScriptedGate(ask_until_approved)
    first = await refused(harness.door(gate), a_call())
    await harness.change(
        lambda approval: reject(approval, "bob", harness.clock.now(), "wrong address"),
        first.approval_id,
    )

    refusal = await refused(harness.door(gate), a_call())

    assert refusal.decision.effect is Effect.DENY
    assert "bob rejected this call: wrong address" in refusal.say
    assert (await harness.kinds()).count(ApprovalRequested) == 1


@pytest.mark.parametrize("approved", [True, False])
async def test_an_approval_past_its_deadline_expires_and_a_person_is_asked_anew(
    harness: Harness, approved: bool
) -> None:
    gate = ScriptedGate(ask_until_approved, approval_seconds=60)
    door = harness.door(gate)
    first = await refused(door, a_call())
    if approved:
        await harness.approve(first.approval_id)
    harness.clock.advance(60)

    second = await refused(door, a_call())

    assert second.approval_id not in (None, first.approval_id)
    assert (await harness.approval(first.approval_id)).status is ApprovalStatus.EXPIRED
    assert ApprovalExpired(approval_id=first.approval_id or "") in await harness.events()


async def test_the_approvers_come_from_the_decision_or_else_from_the_tool(harness: Harness) -> None:
    spec = SPECS["send"].model_copy(update={"approvals": ("ops", "owner")})
    ask = decision(Effect.ASK)
    gate = ScriptedGate([ask, ask.model_copy(update={"approvers": ("legal",)})])
    door = GatedDoor(
        harness.store,
        gate,
        {"send": spec}.get,
        clock=harness.clock,
        ids=SteadyIds(),
        settings=DoorSettings(root="/work"),
        redact=str,
    )

    first = await refused(door, a_call())
    second = await refused(door, a_call(index=1, arguments={"to": "bob"}))

    assert (await harness.approval(first.approval_id)).approvers == ("ops", "owner")
    assert (await harness.approval(second.approval_id)).approvers == ("legal",)


async def test_a_crash_between_act_and_record_is_a_doubt_that_stays_until_it_is_resolved(
    harness: Harness,
) -> None:
    await permitted(harness.door(), a_call())

    for _ in range(2):
        with pytest.raises(CallInDoubt) as caught:
            await harness.door().request(a_call())
        assert caught.value.call_key == KEY

    assert await harness.kinds() == [ToolRequested, ToolInDoubt]
    assert [receipt.status for receipt in await harness.receipts()] == ["in_doubt"]
    assert (await harness.record()).status is CallStatus.IN_DOUBT


async def test_an_idempotent_call_gets_its_permit_back_after_a_crash(harness: Harness) -> None:
    first = await permitted(harness.door(), a_call("put"))
    door = harness.door(ScriptedGate([]))

    second = await permitted(door, a_call("put"))
    await door.settle(second, DONE)

    assert first == second
    assert await harness.kinds() == [ToolRequested, ToolCompleted]


async def test_after_a_crash_a_write_that_leads_elsewhere_by_now_is_a_doubt(
    harness: Harness,
) -> None:
    await permitted(harness.door(), a_call("put", paths=leading_to("/shop/a")))

    with pytest.raises(CallInDoubt):
        await harness.door().request(a_call("put", paths=leading_to("/shop/b")))


async def test_after_a_crash_a_read_that_leads_elsewhere_by_now_is_abandoned_and_judged_again(
    harness: Harness,
) -> None:
    read = ScriptedGate([decision(Effect.ALLOW, tier=Tier.T0)])
    await permitted(harness.door(read), a_call("look", paths=leading_to("/shop/a")))

    await permitted(harness.door(), a_call("look", paths=leading_to("/shop/b")))

    assert await harness.kinds() == [ToolRequested, ToolAbandoned, ToolRequested]
    assert [receipt.status for receipt in await harness.receipts()] == ["abandoned"]


async def test_an_observed_call_is_abandoned_with_its_approval_and_judged_on_its_own(
    harness: Harness,
) -> None:
    door = harness.door(ScriptedGate(ask_until_approved))
    call = a_call(observed=True)
    first = await refused(door, call)
    await harness.approve(first.approval_id)
    await permitted(door, call)

    second = await refused(harness.door(ScriptedGate(ask_until_approved)), call)

    assert second.approval_id != first.approval_id
    assert (await harness.approval(first.approval_id)).status is ApprovalStatus.CONSUMED
    assert (await harness.kinds())[2:] == [
        ToolRequested,
        ToolAbandoned,
        ApprovalConsumed,
        ApprovalRequested,
        ToolRefused,
    ]


async def test_a_settled_call_that_leads_elsewhere_by_now_is_refused_and_changes_nothing(
    harness: Harness,
) -> None:
    door = harness.door()
    first = await permitted(door, a_call(paths=leading_to("/shop/a")))
    await door.settle(first, DONE)

    refusal = await refused(door, a_call(paths=leading_to("/shop/b")))

    assert refusal.decision.rule == "call-changed"
    assert (await harness.record()).digest == first.digest
    assert await harness.kinds() == [ToolRequested, ToolCompleted, ToolRefused]
    await permitted(door, a_call(index=1, paths=leading_to("/shop/b")))


async def test_a_call_of_a_step_that_was_retried_is_judged_again(harness: Harness) -> None:
    door = harness.door()
    await door.settle(await permitted(door, a_call()), DONE)
    harness.clock.advance(1)
    await harness.store.write(
        lambda tx: tx.append(RUN, RunRetried(by="ann", discarded_steps=("work#0",)))
    )

    again = await permitted(door, a_call())
    harness.clock.advance(1)
    await door.settle(again, DONE)

    assert again.settled is None
    assert (await permitted(door, a_call())).settled == DONE
    assert [receipt.number for receipt in await harness.receipts()] == [1, 2]


async def test_a_retry_of_another_step_does_not_bring_a_call_back(harness: Harness) -> None:
    door = harness.door()
    await door.settle(await permitted(door, a_call()), DONE)
    await harness.store.write(
        lambda tx: tx.append(RUN, RunRetried(by="ann", discarded_steps=("other#0",)))
    )

    assert (await permitted(door, a_call())).settled == DONE


async def test_a_failed_call_is_recorded_as_one_and_not_performed_again(harness: Harness) -> None:
    door = harness.door()
    failed = CallOutcome(ok=False, error="no line", duration_seconds=0.5)
    receipt = await door.settle(await permitted(door, a_call()), failed)

    assert (receipt.status, receipt.error) == ("failed", "no line")
    assert (await harness.events())[-1] == ToolFailed(
        call=KEY, tool="send", error="no line", seconds=0.5, receipt=1
    )
    assert (await permitted(harness.door(), a_call())).settled == failed


async def test_settling_twice_gives_the_first_receipt_and_records_nothing_more(
    harness: Harness,
) -> None:
    door = harness.door()
    permit = await permitted(door, a_call())
    seen: list[FrozenModel] = []

    first = await door.settle(permit, DONE)
    second = await door.settle(
        permit, CallOutcome(ok=False, error="late"), lambda tx, outcome: seen.append(outcome)
    )

    assert first == second
    assert seen == [DONE]
    assert len(await harness.events()) == 2


async def test_whoever_acted_may_settle_a_call_that_others_hold_in_doubt(harness: Harness) -> None:
    slow = harness.door()
    permit = await permitted(slow, a_call())
    with pytest.raises(CallInDoubt):
        await harness.door().request(a_call())

    await slow.settle(permit, DONE)

    assert (await permitted(harness.door(), a_call())).settled == DONE
    assert [receipt.status for receipt in await harness.receipts()] == ["in_doubt", "completed"]


async def test_a_permit_that_was_overtaken_by_a_refusal_cannot_be_settled(harness: Harness) -> None:
    door = harness.door()
    permit = await permitted(door, a_call())
    with pytest.raises(CallInDoubt):
        await door.request(a_call())
    await resolve_call(harness.store, harness.clock, KEY, happened=False, by="ann")

    with pytest.raises(NotPossibleNow, match="is refused"):
        await door.settle(permit, DONE)


async def test_a_permit_cannot_be_settled_for_another_call_than_it_was_given_for(
    harness: Harness,
) -> None:
    door = harness.door()
    permit = await permitted(door, a_call(paths=leading_to("/shop/a")))
    edited = permit.model_copy(update={"digest": a_call(paths=leading_to("/shop/b")).digest()})

    with pytest.raises(NotPossibleNow, match="differs from the call that was permitted"):
        await door.settle(edited, DONE)


async def test_the_receipt_names_the_call_that_would_undo_it(harness: Harness) -> None:
    door = harness.door()
    outcome = CallOutcome(ok=True, result={"number": 1, "undo": {"number": 1}})

    put = await door.settle(await permitted(door, a_call("put")), outcome)
    send = await door.settle(await permitted(door, a_call("send", 1)), outcome)

    assert put.undo == {"tool": "send", "arguments": {"number": 1}}
    assert send.undo is None


async def test_a_failed_call_has_nothing_to_undo(harness: Harness) -> None:
    door = harness.door()
    outcome = CallOutcome(ok=False, result={"undo": {"number": 1}}, error="no line")

    receipt = await door.settle(await permitted(door, a_call("put")), outcome)

    assert receipt.undo is None


async def test_what_is_kept_of_a_result_or_of_arguments_is_bounded_and_redacted(
    harness: Harness,
) -> None:
    door = harness.door(result_bytes=500)
    call = a_call(observed=True, arguments={"text": "x" * 9000})
    result = {"number": "s3cret", "text": "y" * 9000}

    receipt = await door.settle(await permitted(door, call), CallOutcome(ok=True, result=result))

    requested, completed = await harness.events()
    assert isinstance(requested, ToolRequested)
    assert isinstance(completed, ToolCompleted)
    assert "[cut: 9000 bytes in all]" in requested.arguments["text"]
    assert "[cut: 9000 bytes in all]" in completed.result["text"]
    assert receipt.fields == {"number": "***"}
    assert (await harness.record(call.key)).arguments == call.arguments


# Resolving a doubt.


async def in_doubt_with_approval(harness: Harness) -> str:
    gate = ScriptedGate(ask_until_approved)
    refusal = await refused(harness.door(gate), a_call())
    await harness.approve(refusal.approval_id)
    await permitted(harness.door(gate), a_call())
    with pytest.raises(CallInDoubt):
        await harness.door(gate).request(a_call())
    assert refusal.approval_id
    return refusal.approval_id


async def test_a_doubt_resolved_as_happened_is_a_completed_call(harness: Harness) -> None:
    approval_id = await in_doubt_with_approval(harness)

    record = await resolve_call(harness.store, harness.clock, KEY, happened=True, by="ann")

    assert record.status is CallStatus.COMPLETED
    assert (await harness.approval(approval_id)).status is ApprovalStatus.CONSUMED
    assert (await harness.events())[-3:] == [
        ToolResolved(call=KEY, by="ann", happened=True),
        ToolCompleted(call=KEY, tool="send", result={"resolved_by": "ann"}, receipt=2),
        ApprovalConsumed(approval_id=approval_id, receipt=2),
    ]
    assert (await harness.receipts())[-1].fields == {"resolved_by": "ann"}
    settled = (await permitted(harness.door(), a_call())).settled
    assert settled == CallOutcome(ok=True, result={"resolved_by": "ann"})


async def test_a_doubt_resolved_as_not_happened_frees_call_and_approval(harness: Harness) -> None:
    approval_id = await in_doubt_with_approval(harness)

    record = await resolve_call(harness.store, harness.clock, KEY, happened=False, by="ann")

    assert record.status is CallStatus.REFUSED
    assert (await harness.events())[-1] == ToolResolved(call=KEY, by="ann", happened=False)
    permit = await permitted(harness.door(ScriptedGate(ask_until_approved)), a_call())
    assert (permit.settled, permit.approval_id) == (None, approval_id)


async def test_only_a_doubt_can_be_resolved_and_only_once(harness: Harness) -> None:
    await permitted(harness.door(), a_call())
    with pytest.raises(NotPossibleNow, match="is requested"):
        await resolve_call(harness.store, harness.clock, KEY, happened=True, by="ann")
    with pytest.raises(CallInDoubt):
        await harness.door().request(a_call())
    await resolve_call(harness.store, harness.clock, KEY, happened=True, by="ann")

    with pytest.raises(NotPossibleNow, match="is completed"):
        await resolve_call(harness.store, harness.clock, KEY, happened=False, by="bob")
    with pytest.raises(Exception, match="no call 'nonsense'"):
        await resolve_call(harness.store, harness.clock, "nonsense", happened=True, by="ann")
