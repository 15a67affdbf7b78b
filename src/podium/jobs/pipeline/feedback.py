"""Feedback beside a result: somebody decides whether it goes to the backlog, into the documentation, or nowhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from podium.agents.conversation import ask_until_answered
from podium.core.events import NoteTaken
from podium.core.model import Json
from podium.jobs.pipeline.agent_text import key_of, shortened
from podium.jobs.pipeline.branch_documents import Filed, clean_start, file
from podium.jobs.pipeline.memory import MAX_ITEMS
from podium.jobs.pipeline.payloads import Answer, Triage, feedback_points
from podium.jobs.pipeline.spec import DONE, FORWARD, NONCE_SLOT
from podium.jobs.pipeline.stage import run_stage
from podium.jobs.pipeline.stage_prompt import build_triage_brief
from podium.jobs.pipeline.state import SENT_BACK, Remark, Settled, StageContext, with_tools_for
from podium.ports import StepContext

_MAX_CHARACTERS = 4_000
_SAYS_NOTHING = re.compile(
    r"(?:[\w ]{1,80}:\s*)?(?:none|no|nothing|n/a|-|no (?:doubts?|remarks?|findings?))?\W*",
    re.IGNORECASE,
)


async def triage_feedback(context: StageContext, name: str, settled: Settled) -> StageContext:
    """Have the feedback of accepted answers triaged, once the work is there that decides about it.

    What sent work back is dealt with already.
    """
    state, stage = context.state, context.stage(name)
    if stage.does == "work":
        state = replace(state, is_developed=settled.verdict == DONE)
    if settled.feedback and settled.verdict != SENT_BACK:
        remark = Remark(
            stage=name,
            role=stage.role,
            round=state.stage_runs[name],
            verdict=settled.verdict,
            document=settled.document,
            text=_feedback_text(settled.feedback),
            rules=settled.rules,
        )
        state = replace(state, remarks=(*state.remarks, remark))
    context = context.with_state(state)
    if not _is_time(context, settled):
        return context
    context = context.with_state(replace(state, remarks=()))
    for remark in state.remarks:
        context, still_open = _still_open(context, remark)
        if still_open is not None:
            context = await _decide(context, still_open)
    return context


def _still_open(context: StageContext, remark: Remark) -> tuple[StageContext, Remark | None]:
    """The remark without the points that need no decision any more. None: none is left, and nobody is asked.

    Settled is what was said of a document that was written anew, what was decided about before, and a point that says
    that there is nothing.
    """
    state = context.state
    if state.job.spec.remarks == "at_once" or remark.rules < 1:
        return context, remark
    is_document = context.stage(remark.stage).does in ("report", "plan")
    if is_document and remark.round < state.stage_runs[remark.stage]:
        _note_settled(context, remark, "its document has been rewritten since")
        return context, None
    points = [
        point
        for point in remark.text.split("\n\n")
        if key_of(point) not in state.decided and not _SAYS_NOTHING.fullmatch(point.strip())
    ]
    if not points:
        _note_settled(context, remark, "nothing in it is still open")
        return context, None
    decided = state.decided | {key_of(point) for point in points}
    context = context.with_state(replace(state, decided=decided))
    return context, remark.model_copy(update={"text": "\n\n".join(points)})


def _note_settled(context: StageContext, remark: Remark, why: str) -> None:
    context.flow.note(NoteTaken(text=f"Feedback from {remark.stage}: not triaged ({why})"))


def _is_time(context: StageContext, settled: Settled) -> bool:
    """True when remarks are triaged now: not on a plan, nor on work that is sent back."""
    state, spec = context.state, context.state.job.spec
    if spec.remarks == "at_once" or _goes_to_backlog(context):
        return True
    has_work = any(stage.does == "work" for stage in spec.stages.values())
    return settled.verdict in FORWARD and (state.is_developed or not has_work)


def _goes_to_backlog(context: StageContext) -> bool:
    """True when no role is asked about a remark: that costs as much as the review that a light run skips."""
    return context.state.is_light or not context.state.job.spec.triage_role


async def _decide(context: StageContext, remark: Remark) -> StageContext:
    context, triage = await _triaged(context, remark)
    entry = triage.entry.strip()
    entries = [entry] if entry else _entries(remark)
    entry = entry or remark.text
    context.flow.note(
        NoteTaken(text=f"Feedback from {remark.stage}: {triage.decision} ({entry[:200]})")
    )
    if triage.decision == "docs" and context.state.job.spec.document_stage:
        return await _document(context, entry)
    if triage.decision != "ignore":
        return await _to_backlog(context, remark, entries)
    return context


async def _triaged(context: StageContext, remark: Remark) -> tuple[StageContext, Triage]:
    state, role = context.state, context.state.job.spec.triage_role
    if _goes_to_backlog(context):
        return context, Triage(decision="backlog")
    prompt = (await build_triage_brief(context, remark)).prompt

    async def from_where_it_starts() -> bool:
        await state.workspace.reset(state.head, "an unfinished turn")
        return True

    reply = await ask_until_answered(
        context.flow,
        with_tools_for(context.deps.role_agent_for(role, state.job.agent), "review"),
        prompt,
        budget=context.deps.budget,
        name=f"triage-{remark.stage}-{remark.round}",
        workspace=state.workspace,
        contract=Triage,
        nonce_slot=NONCE_SLOT,
        prepare=from_where_it_starts,
    )
    context = context.with_state(replace(state, usage=state.usage.plus(reply.usage)))
    return context, Triage.model_validate(reply.payload)


async def _document(context: StageContext, entry: str) -> StageContext:
    """Run the stage of documentation on the entry. Its verdict leads nowhere but back."""
    state = context.state
    asked = context.with_state(replace(state, feedback=entry))
    after, _ = await run_stage(asked, state.job.spec.document_stage)
    return after.with_state(replace(after.state, feedback=state.feedback))


def _entries(remark: Remark) -> list[str]:
    """Backlog entries of a role's remark, one per point, each with the role's name."""
    role = remark.role.replace("_", " ").capitalize()
    return [f"{role}: {point}" for point in remark.text.split("\n\n") if point.strip()]


async def _to_backlog(
    context: StageContext, remark: Remark, entries: Sequence[str]
) -> StageContext:
    state = context.state
    label = f"feedback-{remark.stage}-{remark.round}"

    async def work(step: StepContext) -> Filed:
        await clean_start(context, "before writing the backlog")
        answer = Answer(
            backlog_items=tuple(shortened(entry, 2_000) for entry in entries[:MAX_ITEMS])
        )
        return await file(context, label, f"Backlog: {state.feat}", written={}, answer=answer)

    filed = await context.flow.step(
        f"backlog:{remark.stage}", work, index=remark.round, returns=Filed
    )
    backlog = (*state.backlog, *entries)
    return context.with_state(replace(state, head=filed.head, backlog=backlog))


def _feedback_text(feedback: Json) -> str:
    return shortened("\n\n".join(feedback_points(feedback)), _MAX_CHARACTERS)
