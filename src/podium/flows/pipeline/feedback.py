"""Feedback beside a result: somebody decides whether it goes to the backlog, into the documentation, or nowhere."""

from __future__ import annotations

import json

from podium.domain.events import NoteTaken
from podium.domain.model import Json
from podium.flows.asking import ask_until_answered
from podium.flows.pipeline.briefing import NONCE_SLOT, filled
from podium.flows.pipeline.desk import Desk
from podium.flows.pipeline.filing import Filed, clean_start, file
from podium.flows.pipeline.payloads import Answer, Triage
from podium.flows.pipeline.plain_text import fenced
from podium.flows.pipeline.stage_tools import with_tools_for
from podium.flows.pipeline.trip import SENT_BACK, Settled
from podium.flows.pipeline.working import visit
from podium.ports import Step

_MOST_CHARACTERS = 4_000


async def hear_feedback(desk: Desk, name: str, settled: Settled) -> None:
    """Have the feedback of an accepted answer triaged. What sent work back is dealt with already."""
    if not settled.feedback or settled.verdict == SENT_BACK:
        return
    words = _in_words(settled.feedback)
    triage = await _triaged(desk, name, words)
    entry = triage.entry.strip() or words
    desk.ctx.note(NoteTaken(text=f"Feedback of {name}: {triage.decision} ({entry[:200]})"))
    if triage.decision == "docs" and desk.trip.job.spec.document_stage:
        await _document(desk, entry)
    elif triage.decision != "ignore":
        await _to_backlog(desk, name, entry)


async def _triaged(desk: Desk, name: str, said: str) -> Triage:
    trip, role = desk.trip, desk.trip.job.spec.triage_role
    is_light = bool(trip.job.spec.mode(trip.job.mode).skip) and not trip.too_large
    if not role or is_light:
        # A session to decide about a remark costs as much as the review that a light run does without.
        return Triage(decision="backlog")
    number = trip.visits[name]
    inputs = f"Stage: triage, round {number}.\n\nFeedback of {name}:\n{fenced(said)}"
    prompt = filled(trip.job.prompts["triage"], {"task": fenced(trip.job.task), "inputs": inputs})

    async def from_where_it_starts() -> bool:
        await trip.workspace.reset(trip.head, "a turn that did not end")
        return True

    reply = await ask_until_answered(
        desk.ctx,
        with_tools_for(desk.kit.player_for(role, trip.job.agent), "review"),
        prompt,
        purse=desk.kit.purse,
        name=f"triage-{name}-{number}",
        workspace=trip.workspace,
        contract=Triage,
        nonce_slot=NONCE_SLOT,
        prepare=from_where_it_starts,
    )
    trip.usage = trip.usage.plus(reply.usage)
    return Triage.model_validate(reply.payload)


async def _document(desk: Desk, entry: str) -> None:
    """A step of documentation, whose verdict leads nowhere but back."""
    kept, desk.trip.feedback = desk.trip.feedback, entry
    await visit(desk, desk.trip.job.spec.document_stage)
    desk.trip.feedback = kept


async def _to_backlog(desk: Desk, name: str, entry: str) -> None:
    trip = desk.trip
    label = f"feedback-{name}-{trip.visits[name]}"

    async def work(step: Step) -> Filed:
        await clean_start(desk, "before the backlog is written")
        answer = Answer(backlog_items=(entry[:2_000],))
        return await file(desk, label, f"Backlog: {trip.feat}", written={}, answer=answer)

    filed = await desk.ctx.step(f"backlog:{name}", work, index=trip.visits[name], returns=Filed)
    trip.head = filed.head
    trip.backlog.append(entry)


def _in_words(feedback: Json) -> str:
    told = feedback if isinstance(feedback, str) else json.dumps(feedback, ensure_ascii=False)
    return told[:_MOST_CHARACTERS]
