"""Editing what a person is asked about, for any door: what can be changed, and what comes of it.

a candidate          a new candidate with the edited order, which is asked about anew
an operator's plan   a new plan with the edited arguments, through the operator's own checks
an agent's call      a no with the edited arguments in its words: the agent asks again
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podium.domain.approvals import Approver
from podium.domain.errors import BadInput, NotPossibleNow, PlanNotGated, PlanRejected
from podium.domain.gating import Approval
from podium.domain.model import Json, Noun
from podium.domain.operating import OperatorJob, RunPlan
from podium.domain.schemas import validator_for
from podium.domain.work import Run
from podium.flows.operator import OPERATOR
from podium.flows.operator.quality_gate import must_be_sound
from podium.flows.operator.skills import edited_plan
from podium.flows.sense import CANDIDATE, SENSE, WORK_ORDER, CandidateJob
from podium.ports import Tx
from podium.telling.untrusted import shown_json
from podium.usecases import Card, CardKind, Resubmitted, reject, resubmit
from podium.wiring.order_editing import (
    asked_order,
    editable_text,
    edited_order,
    refuse_impossible,
)
from podium.wiring.submitting import ASKED_BY

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

MOST_CHARACTERS = 100_000
LONGEST_REASON = 20_000
"""What an agent is told of an edited call."""


class EditField(Noun):
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

    async def begin(run_id: str, along: Callable[[Tx], None]) -> Run:
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
    from podium.wiring.operating import brain_of, open_pack

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

    async def begin(run_id: str, along: Callable[[Tx], None]) -> Run:
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
    if len(why) > LONGEST_REASON:
        raise BadInput(f"an agent is told {LONGEST_REASON} characters at most; change less")
    store = await podium.store()
    return await reject(store, podium.clock, podium.ids, approval.id, by=by, why=why)


def _refuse_unfit(tool: str, arguments: dict[str, Json]) -> None:
    """What no call of one of Podium's own tools could have. Others are held to their schemas when they are asked for."""
    from podium.wiring.calling import callable_specs

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
    if sum(map(len, given.values())) > MOST_CHARACTERS:
        raise BadInput(f"an edit has {MOST_CHARACTERS} characters at most; say less")


def _json(value: Json) -> str:
    return shown_json(json.dumps(value, ensure_ascii=False, indent=2))


def _line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
