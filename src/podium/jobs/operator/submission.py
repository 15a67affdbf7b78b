"""Request for the operator, from any interface: queued, or answered at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from podium.app.chat import cut_line
from podium.app.work_request import ShallowJson, Submission, queue_named
from podium.core.approval_steps import approval_named_in
from podium.core.approvals import Approver
from podium.core.decisions import Approval
from podium.core.errors import BadInput, CallRefused, NotPossibleNow, UnknownId
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json
from podium.core.work import Run
from podium.jobs.operator.models import OperatorAnswer, OperatorMode
from podium.render.approval import what_line
from podium.render.text import escaped_line
from podium.tools.packs import list_packs, shipped_packs

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.jobs.operator.composition import WorkerIsThere

CHAT, CONSOLE = "chat", "console"
"""Sessions of a person in chats, and in the console."""
QUICK_MODES = (OperatorMode.ANALYZE, OperatorMode.PLAN, OperatorMode.ENQUEUE)
"""Modes that are answered at once."""


class OperatorRequest(FrozenModel):
    """Options of a message to the operator."""

    context: ShallowJson = Field(default_factory=dict)
    """Values already known, by name."""
    pack: str = ""
    """The tools: a pack's name. Empty: as podium.yaml says."""
    approve: bool = False
    """A yes to the very plan that comes of it, this once."""


async def submit(submission: Submission) -> Run:
    podium, options = submission.podium, submission.options
    submission.refuse_queue_slot()
    if options.approve and not submission.may_approve:
        raise CallRefused(
            f"{submission.by} is not an approver; submit it without approving its plan"
        )
    answer = await ask(
        podium,
        submission.text,
        mode=OperatorMode.ENQUEUE,
        context=options.context,
        pack=options.pack,
        approve=options.approve,
        by=submission.by,
        provenance=submission.provenance,
        approver=submission.approver,
    )
    if answer.run_id is None:
        raise NotPossibleNow(f"the operator started no run: {answer.status}: {_why(answer)}")
    store, run_id = await podium.store(), answer.run_id
    run = await store.read(lambda view: view.run(run_id))
    if run is None:
        raise UnknownId("run", run_id)
    return run


async def ask(
    podium: Podium,
    text: str,
    *,
    mode: str,
    context: Mapping[str, Json] | None = None,
    pack: str = "",
    approve: bool = False,
    by: str = "",
    provenance: tuple[str, ...] = (),
    worker_is_there: WorkerIsThere | None = None,
    approver: Approver | None = None,
    session: str = "",
) -> OperatorAnswer:
    """Answer a message, in a mode that is answered at once. With a `session` it is a part of that conversation of `by`.

    Raises `BadInput` for a mode that waits for the end of a run, and for words that would approve something: each
    door has its own way of knowing who says yes.
    """
    from podium.jobs.operator.composition import (
        OperatorSetup,
        build_conversation,
        build_selection,
        operator_options,
    )
    from podium.jobs.operator.session import StoredSession

    if mode not in QUICK_MODES:
        modes = ", ".join(QUICK_MODES)
        raise BadInput(
            f"mode {mode[:60]!r} is not available here; use {modes}, or enqueue the message and follow the run"
        )
    if (action_id := approval_named_in(text)) is not None:
        raise BadInput(
            f"approvals cannot be sent as messages here; run `podium approve {action_id}` or use the card"
        )
    if approve and provenance:
        raise BadInput(f"only a person can approve; {', '.join(provenance)} cannot")
    if mode == OperatorMode.ENQUEUE:
        queue_named(podium.configuration, operator_options(podium).queue)
    proved = (lambda: approver) if approver else None
    setup = OperatorSetup(pack, user=by, worker_is_there=worker_is_there, approver=proved)
    if session and by and not provenance:
        # Text of strangers neither answers a question nor says who `him` is.
        memory = StoredSession(podium, by, session)
        conversation = await build_conversation(podium, setup, memory, may_approve=False)
        return await conversation.process(text, mode, context, approve)
    operator = await build_selection(podium, setup)
    return await operator.process(text, mode, context, approve, provenance=provenance)


def _why(answer: OperatorAnswer) -> str:
    classification = answer.classification
    parts = (
        (classification.question, classification.reasoning, *classification.missing_evidence)
        if classification
        else ()
    )
    return "; ".join(part for part in (*parts, *answer.next_actions) if part)[:1000]


async def answer_chat(podium: Podium, text: str, by: str) -> str:
    """Queue what somebody asks in a chat, and say which approval it waits for, or why nothing is done."""
    answer = await ask(podium, text, mode=OperatorMode.ENQUEUE, by=by, session=CHAT)
    store, action = await podium.store(), answer.action_id or ""
    approval = await store.read(lambda view: view.approval(action))
    return "\n".join(_chat_lines(answer, approval))


def _chat_lines(answer: OperatorAnswer, approval: Approval | None) -> Iterator[str]:
    run = f", run {short_id(answer.run_id)}" if answer.run_id else ""
    yield f"{answer.status.replace('_', ' ').capitalize()}{run}."
    if approval is not None:
        yield f"{approval.tier}: {cut_line(what_line(approval))}"
        yield f"APPROVE: {short_id(approval.id)}"
    reading = answer.classification
    why = (reading.question or reading.reasoning) if reading and not run else ""
    yield from (cut_line(escaped_line(text)) for text in (answer.reason, why) if text)
    for number, option in enumerate(answer.options, start=1):
        yield cut_line(f"{number}. {escaped_line(option.label)} ({option.id})")


def option_choices(podium: Podium) -> Mapping[str, Iterable[str]]:
    """Values that options of a request can have."""
    packs = list_packs(project=podium.folders.project, shipped=shipped_packs())
    return {"pack": sorted(pack.name for pack in packs)}
