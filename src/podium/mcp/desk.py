"""What the tools of this door work with, and what they have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.model import Json, Moment, Noun
from podium.domain.telling import cut_to, told_result
from podium.domain.work import Run
from podium.telling.approval_words import what_line
from podium.usecases import Standing, how_they_stand, list_approvals
from podium.usecases.list_approvals import MOST_OPEN
from podium.wiring import Podium
from podium.wiring.submitting import asked_by

PROVENANCE = ("mcp",)
"""What comes in here was said by a program: it raises tiers, and is nobody's yes."""
LONGEST_WORDS = 500

Served = Callable[[Podium, Run], Awaitable[str]]
"""Sees to it that somebody serves the run's queue, and says who."""


@dataclass(frozen=True)
class Desk:
    """The open Podium, and who is at this door."""

    podium: Podium
    served: Served

    @property
    def by(self) -> str:
        return f"mcp:{self.podium.settings.user}"


class RunLine(Noun):
    """A run, told shortly."""

    run_id: str
    flow: str
    task: str
    status: str
    """queued, running, interrupted, waiting, needs_human, succeeded, failed or cancelled."""
    ended: bool
    queue: str | None
    asked_by: str
    created_at: Moment
    finished_at: Moment | None
    waiting_for: str | None
    approvals: tuple[str, ...]
    """Ids of approvals that people have not answered yet."""
    failure: str


class ApprovalLine(Noun):
    """What a person is asked, and how they answer."""

    approval_id: str
    run_id: str
    status: str
    """pending, granted, reserved, consumed, rejected or expired."""
    what: str
    tier: str
    approvers: tuple[str, ...]
    deadline: Moment
    answered_by: tuple[str, ...]
    why: str
    """Why it was rejected."""
    said: str
    """What people said with their yes."""
    how: str
    """What a person does to decide, or to continue the answered run. No tool of this door approves."""


async def run_lines(desk: Desk, runs: list[Run]) -> list[RunLine]:
    """The runs as they really stand, with what each waits for people to say."""
    if not runs:
        return []
    podium = desk.podium
    standings = await how_they_stand(runs, podium.engine)
    waiting: dict[str, list[str]] = {}
    for each in await list_approvals(await podium.store(), podium.clock, limit=MOST_OPEN):
        waiting.setdefault(each.run_id, []).append(each.id)
    return [_line(each, tuple(waiting.get(each.run.id, ()))) for each in standings]


async def run_line(desk: Desk, run: Run) -> RunLine:
    (line,) = await run_lines(desk, [run])
    return line


def _line(standing: Standing, approvals: tuple[str, ...]) -> RunLine:
    run = standing.run
    return RunLine(
        run_id=run.id,
        flow=run.flow,
        task=run.task[:LONGEST_WORDS],
        status=standing.shown_status,
        ended=run.status.ended,
        queue=run.queue,
        asked_by=asked_by(run),
        created_at=run.created_at,
        finished_at=run.finished_at,
        waiting_for=run.waiting_for,
        approvals=approvals,
        failure=run.failure.message if run.failure else "",
    )


def approval_line(approval: Approval, goes_on: str = "") -> ApprovalLine:
    """The approval for a client; `goes_on` is what a person does for the run once it is answered."""
    open_ = approval.status is ApprovalStatus.PENDING
    return ApprovalLine(
        approval_id=approval.id,
        run_id=approval.run_id,
        status=approval.status.value,
        what=what_line(approval),
        tier=str(approval.tier),
        approvers=approval.approvers,
        deadline=approval.deadline,
        answered_by=tuple(each.by for each in approval.grants) or _rejected_by(approval),
        why=approval.why,
        said=approval.said,
        how=how_people_decide(approval.id) if open_ else goes_on,
    )


def _rejected_by(approval: Approval) -> tuple[str, ...]:
    return (approval.rejected_by,) if approval.rejected_by else ()


def how_people_decide(approval_id: str) -> str:
    return (
        f"a person decides: `podium approve {approval_id}` or `podium reject {approval_id} --why …`, "
        "or the card on the console"
    )


def bounded(value: Json, longest: int) -> Json:
    """The value, or the beginning of its JSON as text where it is longer."""
    text = told_result(value)
    return value if len(text) <= longest else cut_to(longest, text)
