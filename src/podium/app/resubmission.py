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
from podium.app.inbox import Card, CardKind, EditField, Resubmitted, job_approvals
from podium.core.approval_steps import approver_of
from podium.core.approval_steps import reject as rejected_approval
from podium.core.approvals import Approver
from podium.core.decisions import Approval
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.work import Run
from podium.ports import Clock, Ids, Store, Transaction
from podium.render.text import escaped_json

if TYPE_CHECKING:
    from podium.app.app import Podium


Begin = Callable[[str, Callable[[Transaction], None]], Awaitable[Run]]
"""Stores the run of the edited work under this id, and does the rest in the very transaction."""


async def resubmit(
    store: Store, clock: Clock, ids: Ids, approval: str, *, by: Approver | str, begin: Begin
) -> Resubmitted:
    """Reject the approval as edited, and begin the edited work as a run of its own.

    Both are one transaction: wherever a process ends, the question is open still, or the edit is asked
    about. Raises `NotPossibleNow` when somebody answered first.
    """
    run_id = ids.new("run")
    current = refuse_expired(await show_approval(store, clock, approval))
    run = await begin(run_id, lambda tx: close_as_edited(tx, clock, ids, current.id, by, run_id))
    return Resubmitted(approval=await show_approval(store, clock, current.id), run=run)


def close_as_edited(
    tx: Transaction, clock: Clock, ids: Ids, approval: str, by: Approver | str, run_id: str
) -> None:
    """Reject an approval because the work goes on, changed, as another run. Raises when somebody answered first."""
    now = clock.now()
    why = f"edited by {approver_of(by).name}; continues as {run_id}"
    rejected = rejected_approval(open_approval(tx, approval, now), by, now, why).model_copy(
        update={"edited_into": run_id}
    )
    store_rejection(tx, rejected, now, ids)


MAX_CHARACTERS = 100_000
MAX_REASON = 20_000
"""Longest message to an agent about an edited call."""


def cannot_be_edited(card: Card) -> str:
    """Reason why the card cannot be edited; empty when it can."""
    if card.kind is CardKind.QUESTION:
        return "a question is answered, not edited"
    if card.run is None:
        return "the run that asked is gone"
    return job_approvals(card.run).why_not_editable(card)


def edit_fields(card: Card) -> tuple[EditField, ...]:
    """The texts as they stand."""
    if (fields := job_approvals(card.run).edit_fields(card)) is not None:
        return fields
    label = f"{card.approval.tool}, as JSON"
    text = readable_json(card.approval.arguments)
    return (EditField(name="arguments", label=label, text=text),)


async def edit_and_resubmit(
    podium: Podium, card: Card, texts: Mapping[str, str], *, by: Approver
) -> Resubmitted | Approval:
    """The old question with the run that asks the new one; of an agent's call the rejected question alone.

    Raises `BadInput` for what does not hold, before anything is changed, and `NotPossibleNow` when somebody
    answered first.
    """
    if why := cannot_be_edited(card):
        raise NotPossibleNow(f"approval {card.approval.id} cannot be edited: {why}")
    _refuse_huge(texts)
    if card.kind is CardKind.CALL:
        return await _return_to_agent(podium, card.approval, texts.get("arguments", ""), by)
    return await job_approvals(card.run).resubmit(podium, card, texts, by)


async def _return_to_agent(podium: Podium, approval: Approval, text: str, by: Approver) -> Approval:
    arguments = json_object(text, approval.tool)
    if arguments == approval.arguments:
        raise BadInput("nothing was changed; approve it as it is, or change something")
    _refuse_unfit(approval.tool, arguments)
    why = (
        f"edited by {by.name}. Ask for {approval.tool} again, with exactly these arguments: "
        + _line(arguments)
    )
    if len(why) > MAX_REASON:
        raise BadInput(
            f"the edit does not fit into the {MAX_REASON} characters that an agent is told; change less"
        )
    store = await podium.store()
    return await reject(store, podium.clock, podium.ids, approval.id, by=by, why=why)


def _refuse_unfit(tool: str, arguments: dict[str, Json]) -> None:
    """Raise `BadInput` for arguments that do not fit the schema of one of Podium's own tools. Other tools check theirs when they are called."""
    from podium.app.kernel_flows import callable_specs

    schema = next((spec.input_schema for spec in callable_specs() if spec.name == tool), None)
    problems = [error.message[:300] for error in validator_for(schema).iter_errors(arguments)] if schema else []  # fmt: skip
    if problems:
        raise BadInput(f"invalid arguments for {tool}: {'; '.join(problems[:5])}")


def json_object(text: str, what: str) -> dict[str, Json]:
    """Arguments as a person wrote them. Raises `BadInput`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the arguments of {what} are not valid JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise BadInput(f"the arguments of {what} must be a JSON object: {{…}}")
    return value


def _refuse_huge(texts: Mapping[str, str]) -> None:
    if sum(map(len, texts.values())) > MAX_CHARACTERS:
        raise BadInput(f"an edit can have at most {MAX_CHARACTERS} characters; shorten it")


def readable_json(value: Json) -> str:
    """Indented, with what cannot be seen written out."""
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=2))


def _line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
