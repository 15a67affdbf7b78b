"""Feedback beside a result: somebody decides whether it goes to the backlog, into the documentation, or nowhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.agents.turn_step import ask_until_answered
from podium.core.events import NoteTaken
from podium.core.model import Json
from podium.jobs.pipeline.branch_documents import Filed, clean_start, file
from podium.jobs.pipeline.deps import with_tools_for
from podium.jobs.pipeline.ledger import MAX_ITEMS
from podium.jobs.pipeline.payloads import Answer, Triage, feedback_points
from podium.jobs.pipeline.plain_text import key_of, shortened
from podium.jobs.pipeline.spec import DONE, FORWARD
from podium.jobs.pipeline.stage import visit
from podium.jobs.pipeline.stage_prompt import NONCE_SLOT, brief_triage
from podium.jobs.pipeline.state import SENT_BACK, Desk, Remark, Settled
from podium.ports import StepContext

_MAX_CHARACTERS = 4_000
_SAYS_NOTHING = re.compile(
    r"(?:[\w ]{1,80}:\s*)?(?:none|no|nothing|n/a|-|no (?:doubts?|remarks?|findings?))?\W*",
    re.IGNORECASE,
)


async def hear_feedback(desk: Desk, name: str, settled: Settled) -> None:
    """Have the feedback of accepted answers triaged, once the work is there that decides about it.

    What sent work back is dealt with already.
    """
    trip, stage = desk.trip, desk.stage(name)
    if stage.does == "work":
        trip.is_developed = settled.verdict == DONE
    if settled.feedback and settled.verdict != SENT_BACK:
        trip.remarks.append(
            Remark(
                stage=name,
                role=stage.role,
                round=trip.visits[name],
                verdict=settled.verdict,
                document=settled.document,
                text=_in_words(settled.feedback),
                rules=settled.rules,
            )
        )
    if not _is_time(desk, settled):
        return
    remarks, trip.remarks = trip.remarks, []
    for remark in remarks:
        if still_open := _still_open(desk, remark):
            await _decide(desk, still_open)


def _still_open(desk: Desk, remark: Remark) -> Remark | None:
    """The remark without the points that need no decision any more. None: none is left, and nobody is asked.

    Settled is what was said of a document that was written anew, what was decided about before, and a point that says
    that there is nothing.
    """
    trip = desk.trip
    if trip.job.spec.remarks == "at_once" or remark.rules < 1:
        return remark
    is_document = desk.stage(remark.stage).does in ("report", "plan")
    if is_document and remark.round < trip.visits[remark.stage]:
        _tell_settled(desk, remark, "its document was written anew since")
        return None
    points = [
        point
        for point in remark.text.split("\n\n")
        if key_of(point) not in trip.decided and not _SAYS_NOTHING.fullmatch(point.strip())
    ]
    trip.decided |= {key_of(point) for point in points}
    if not points:
        _tell_settled(desk, remark, "nothing in it is open")
        return None
    return remark.model_copy(update={"text": "\n\n".join(points)})


def _tell_settled(desk: Desk, remark: Remark, why: str) -> None:
    desk.ctx.note(NoteTaken(text=f"Feedback of {remark.stage}: settled, not triaged ({why})"))


def _is_time(desk: Desk, settled: Settled) -> bool:
    """Whether remarks are decided about now: not on a plan, nor on work that is sent back."""
    trip, spec = desk.trip, desk.trip.job.spec
    if spec.remarks == "at_once" or _goes_to_backlog(desk):
        return True
    has_work = any(stage.does == "work" for stage in spec.stages.values())
    return settled.verdict in FORWARD and (trip.is_developed or not has_work)


def _goes_to_backlog(desk: Desk) -> bool:
    """Whether nobody is asked about a remark: that costs as much as the review that a light run does without."""
    return desk.trip.is_light or not desk.trip.job.spec.triage_role


async def _decide(desk: Desk, remark: Remark) -> None:
    triage = await _triaged(desk, remark)
    entry = triage.entry.strip()
    entries = [entry] if entry else _entries(remark)
    entry = entry or remark.text
    desk.ctx.note(NoteTaken(text=f"Feedback of {remark.stage}: {triage.decision} ({entry[:200]})"))
    if triage.decision == "docs" and desk.trip.job.spec.document_stage:
        await _document(desk, entry)
    elif triage.decision != "ignore":
        await _to_backlog(desk, remark, entries)


async def _triaged(desk: Desk, remark: Remark) -> Triage:
    trip, role = desk.trip, desk.trip.job.spec.triage_role
    if _goes_to_backlog(desk):
        return Triage(decision="backlog")
    prompt = (await brief_triage(desk, remark)).prompt

    async def from_where_it_starts() -> bool:
        await trip.workspace.reset(trip.head, "a turn that did not end")
        return True

    reply = await ask_until_answered(
        desk.ctx,
        with_tools_for(desk.kit.player_for(role, trip.job.agent), "review"),
        prompt,
        budget=desk.kit.purse,
        name=f"triage-{remark.stage}-{remark.round}",
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


def _entries(remark: Remark) -> list[str]:
    """What a role said, for a list that people read: each point with who said it."""
    role = remark.role.replace("_", " ").capitalize()
    return [f"{role}: {point}" for point in remark.text.split("\n\n") if point.strip()]


async def _to_backlog(desk: Desk, remark: Remark, entries: Sequence[str]) -> None:
    trip = desk.trip
    label = f"feedback-{remark.stage}-{remark.round}"

    async def work(step: StepContext) -> Filed:
        await clean_start(desk, "before the backlog is written")
        answer = Answer(
            backlog_items=tuple(shortened(entry, 2_000) for entry in entries[:MAX_ITEMS])
        )
        return await file(desk, label, f"Backlog: {trip.feat}", written={}, answer=answer)

    filed = await desk.ctx.step(f"backlog:{remark.stage}", work, index=remark.round, returns=Filed)
    trip.head = filed.head
    trip.backlog += entries


def _in_words(feedback: Json) -> str:
    return shortened("\n\n".join(feedback_points(feedback)), _MAX_CHARACTERS)
