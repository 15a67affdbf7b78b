"""Edits of what a person is asked about: the old question is rejected and a new one submitted."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from podium.app.approvals import (
    open_approval,
    refuse_expired,
    reject,
    show_approval,
    store_rejection,
)
from podium.app.inbox import Card, CardKind
from podium.app.submission import ASKED_BY
from podium.core.approval_steps import approver_of
from podium.core.approval_steps import reject as rejected_approval
from podium.core.approvals import Approver
from podium.core.decisions import Approval
from podium.core.errors import BadInput, NotPossibleNow, PlanNotGated, PlanRejected
from podium.core.json_schema import validator_for
from podium.core.model import FrozenModel, Json
from podium.core.work import Run
from podium.jobs.operator import OPERATOR
from podium.jobs.operator.models import OperatorJob, RunPlan
from podium.jobs.operator.quality_gate import must_be_sound
from podium.jobs.operator.skills import edited_plan
from podium.jobs.sense import CANDIDATE, SENSE, WORK_ORDER, CandidateJob
from podium.jobs.sense.orders.order_edit import (
    asked_order,
    editable_text,
    edited_order,
    refuse_impossible,
)
from podium.ports import Clock, Ids, Store, Transaction
from podium.render.text import escaped_json

if TYPE_CHECKING:
    from podium.app.app import Podium


Begin = Callable[[str, Callable[[Transaction], None]], Awaitable[Run]]
"""Stores the run of the edited work under this id, and does the rest in the very transaction."""


class Resubmitted(FrozenModel):
    """The old question, and the run that asks the new one."""

    approval: Approval
    run: Run


async def resubmit(
    store: Store, clock: Clock, ids: Ids, approval: str, *, by: Approver | str, begin: Begin
) -> Resubmitted:
    """Reject the approval as edited, and begin the edited work as a run of its own.

    Both are one transaction: wherever a process ends, the question is open still, or the edit is asked
    about. Raises `NotPossibleNow` when somebody answered first.
    """
    run_id = ids.new("run")
    known = refuse_expired(await show_approval(store, clock, approval))
    run = await begin(run_id, lambda tx: _reject(tx, clock, ids, known.id, by, run_id))
    return Resubmitted(approval=await show_approval(store, clock, known.id), run=run)


def _reject(
    tx: Transaction, clock: Clock, ids: Ids, approval: str, by: Approver | str, run_id: str
) -> None:
    now = clock.now()
    why = f"edited by {approver_of(by).name}; goes on as {run_id}"
    rejected = rejected_approval(open_approval(tx, approval, now), by, now, why).model_copy(
        update={"edited_into": run_id}
    )
    store_rejection(tx, rejected, now, ids)


MAX_CHARACTERS = 100_000
MAX_REASON = 20_000
"""What an agent is told of an edited call."""


class EditField(FrozenModel):
    """One text that can be changed."""

    name: str
    label: str
    text: str


def cannot_be_edited(card: Card) -> str:
    """Why nothing comes of an edit; empty when something does."""
    if card.kind is CardKind.QUESTION:
        return "a question is answered, not edited"
    if card.run is None:
        return "the run that asks is gone"
    if card.kind is CardKind.PLAN and card.run.flow != OPERATOR:
        return "it is no plan of the operator"
    if card.kind is CardKind.PLAN and _job(card).plan.undoes:
        return "it reverses a receipt, exactly as that says"
    if card.run.flow == WORK_ORDER:
        return "it stands in an order of the inbox: put a changed order there"
    return ""


def edit_fields(card: Card) -> tuple[EditField, ...]:
    """The texts as they stand."""
    arguments = card.approval.arguments
    match card.kind:
        case CardKind.CANDIDATE:
            text = editable_text(asked_order(card.approval))
            return (EditField(name="order", label="The order, as YAML", text=text),)
        case CardKind.PLAN:
            return tuple(
                EditField(
                    name=f"call_{step.number}",
                    label=f"{step.number}. {step.tool}, as JSON",
                    text=_json(step.arguments),
                )
                for step in _job(card).plan.steps
            )
        case _:
            label = f"{card.approval.tool}, as JSON"
            return (EditField(name="arguments", label=label, text=_json(arguments)),)


async def edit_and_resubmit(
    podium: Podium, card: Card, given: Mapping[str, str], *, by: Approver
) -> Resubmitted | Approval:
    """The old question with the run that asks the new one; of an agent's call the rejected question alone.

    Raises `BadInput` for what does not hold, before anything is changed, and `NotPossibleNow` when somebody
    answered first.
    """
    if why := cannot_be_edited(card):
        raise NotPossibleNow(f"approval {card.approval.id} cannot be edited: {why}")
    _refuse_huge(given)
    match card.kind:
        case CardKind.CANDIDATE:
            return await _candidate(podium, card, given.get("order", ""), by)
        case CardKind.PLAN:
            return await _plan(podium, card, given, by)
        case _:
            return await _tell_agent(podium, card.approval, given.get("arguments", ""), by)


async def _candidate(podium: Podium, card: Card, text: str, by: Approver) -> Resubmitted:
    old = card.run
    if old is None:
        raise AssertionError("a card without its run cannot be edited")
    order = edited_order(asked_order(card.approval), text)
    await refuse_impossible(podium, order)
    job = CandidateJob(wo_id=order.id, order=order, subject=str(old.input.get("subject", "")))

    async def begin(run_id: str, along: Callable[[Transaction], None]) -> Run:
        engine = await podium.hosting_engine()
        return await engine.start(
            CANDIDATE,
            job.model_dump(mode="json"),
            task=f"{order.id}: {order.title}",
            queue=old.queue or SENSE,
            settings={**old.settings, ASKED_BY: by.name},
            run_id=run_id,
            along=along,
        )

    store = await podium.store()
    return await resubmit(store, podium.clock, podium.ids, card.approval.id, by=by, begin=begin)


async def _plan(podium: Podium, card: Card, given: Mapping[str, str], by: Approver) -> Resubmitted:
    from podium.app.packs import open_pack
    from podium.jobs.operator.composition import brain_of

    job = _job(card)
    pack = open_pack(podium, job.pack_folder or job.plan.pack)
    arguments = {
        step.number: _object(given[name], f"call {step.number}")
        for step in job.plan.steps
        if (name := f"call_{step.number}") in given
    }
    try:
        plan = edited_plan(
            job.plan,
            arguments,
            pack,
            plan_id=podium.ids.new("plan"),
            provenance=job.provenance,
        )
        must_be_sound(plan, pack, max_tool_calls=job.max_tool_calls)
    except (PlanRejected, PlanNotGated) as error:
        raise BadInput(f"the plan does not hold: {error}") from None
    _refuse_unasked(job.plan, plan)
    edited = job.model_copy(
        update={"plan": plan, "asked_by": by.name, "approver": None, "explicit_approval": False}
    )

    async def begin(run_id: str, along: Callable[[Transaction], None]) -> Run:
        brain = await brain_of(podium)
        run, _ = await brain.begin(edited, pack, queued=True, run_id=run_id, along=along)
        return run

    store = await podium.store()
    return await resubmit(store, podium.clock, podium.ids, card.approval.id, by=by, begin=begin)


def _refuse_unasked(before: RunPlan, plan: RunPlan) -> None:
    if plan.plan_hash == before.plan_hash:
        raise BadInput("nothing was changed; approve it as it is, or change something")
    if not plan.requires_approval:
        raise BadInput("as edited it needs nobody's yes; ask the operator for it instead")


async def _tell_agent(podium: Podium, approval: Approval, text: str, by: Approver) -> Approval:
    arguments = _object(text, approval.tool)
    if arguments == approval.arguments:
        raise BadInput("nothing was changed; approve it as it is, or change something")
    _refuse_unfit(approval.tool, arguments)
    why = (
        f"edited by {by.name}. Ask for {approval.tool} again, with exactly these arguments: "
        + _line(arguments)
    )
    if len(why) > MAX_REASON:
        raise BadInput(f"an agent is told {MAX_REASON} characters at most; change less")
    store = await podium.store()
    return await reject(store, podium.clock, podium.ids, approval.id, by=by, why=why)


def _refuse_unfit(tool: str, arguments: dict[str, Json]) -> None:
    """What no call of one of Podium's own tools could have. Others are held to their schemas when they are asked for."""
    from podium.app.flow_builders import callable_specs

    schema = next((spec.input_schema for spec in callable_specs() if spec.name == tool), None)
    faults = [fault.message[:300] for fault in validator_for(schema).iter_errors(arguments)] if schema else []  # fmt: skip
    if faults:
        raise BadInput(f"{tool} takes no such arguments: {'; '.join(faults[:5])}")


def _job(card: Card) -> OperatorJob:
    if card.run is None:
        raise AssertionError("a plan without its run cannot be edited")
    return OperatorJob.model_validate(card.run.input)


def _object(text: str, what: str) -> dict[str, Json]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the arguments of {what} are no JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise BadInput(f"the arguments of {what} are a JSON object: {{…}}")
    return value


def _refuse_huge(given: Mapping[str, str]) -> None:
    if sum(map(len, given.values())) > MAX_CHARACTERS:
        raise BadInput(f"an edit has {MAX_CHARACTERS} characters at most; say less")


def _json(value: Json) -> str:
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=2))


def _line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
